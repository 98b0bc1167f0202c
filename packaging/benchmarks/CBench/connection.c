#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "CBench.h"
#include "common.h"

int bench_connect(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
    strcpy(address.sun_path, path);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) return -1;
    // A server that never answers must not hang the benchmark.
    struct timeval limit = {.tv_sec = patience_seconds};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (!connect(connection, (struct sockaddr *)&address, sizeof address)) return connection;
    int error = errno;
    close(connection);
    return errno = error, -1;
}

int bench_connect_and_greet(const char *path, const struct bench_exchange *greeting) {
    char received[4096];
    int connection = bench_connect(path);
    if (connection < 0 || !greeting || !greeting->request_length) return connection;
    int error = greeting->reply_length > sizeof received ? EINVAL : 0;
    if (!error) error = bench_send(connection, greeting->request, greeting->request_length);
    if (!error) error = bench_receive(connection, received, greeting->reply_length);
    if (!error && memcmp(received, greeting->reply, greeting->reply_same)) error = EPROTO;
    if (!error) return connection;
    close(connection);
    return errno = error, -1;
}

int bench_send(int connection, const char *bytes, size_t length) {
    while (length) {
        ssize_t count = send(connection, bytes, length, MSG_NOSIGNAL);
        if (count < 0) return errno;
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}

int bench_receive(int connection, char *bytes, size_t length) {
    while (length) {
        ssize_t count = recv(connection, bytes, length, 0);
        if (count <= 0) return count ? errno : ECONNRESET;
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}
