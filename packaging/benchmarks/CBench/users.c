#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CBench.h"
#include "common.h"

/// The number of users that send requests at the same time.
enum { at_once = 256 };

/// Connects as another user. Uses the system call itself, because glibc's function changes the user of all threads.
static int connect_as(uid_t user, const char *path) {
    if (syscall(SYS_setresuid, -1, user, -1)) return -1;
    int connection = bench_connect(path), error = errno;
    if (syscall(SYS_setresuid, -1, 0, -1)) {
        if (connection >= 0) close(connection);
        return -1;
    }
    return errno = error, connection;
}

/// Receives one line, which must say OK.
static int take_line(int connection) {
    char bytes[4096];
    size_t filled = 0;
    while (filled < sizeof bytes && !memchr(bytes, '\n', filled)) {
        ssize_t count = recv(connection, bytes + filled, sizeof bytes - filled, 0);
        if (count <= 0) return count ? errno : ECONNRESET;
        filled += (size_t)count;
    }
    return filled >= 2 && !memcmp(bytes, "OK", 2) ? 0 : EPROTO;
}

int bench_users_ask(const char *path, const char *request, uid_t first, uint32_t count) {
    int connections[at_once], error = 0;
    for (uint32_t begun = 0; begun < count && !error;) {
        uint32_t open = 0;
        for (; open < at_once && begun + open < count && !error; open++) {
            connections[open] = connect_as(first + begun + open, path);
            if (connections[open] < 0) {
                error = errno;
                break;
            }
            error = bench_send(connections[open], request, strlen(request));
        }
        begun += open;
        while (open--) {
            if (!error) error = take_line(connections[open]);
            close(connections[open]);
        }
    }
    return error;
}
