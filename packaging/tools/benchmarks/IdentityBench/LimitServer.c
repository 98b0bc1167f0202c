// The limit of any server: fixed replies to fixed requests, in one thread with epoll, and nothing else.
//
//     LimitServer SOCKET REQUEST REPLY
//
// REQUEST is answered with REPLY, and no other line is answered. The only clients are those of the benchmark. They send
// whole lines, and have room for the replies.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ready_at_once = 256, input_length = 1 << 16, output_length = 1 << 18 };

/// Bytes that are known from the start.
struct text {
    const char *bytes;
    size_t length;
};

static struct text request, reply;

static void answer(int connection) {
    static char input[input_length], output[output_length];
    ssize_t length = recv(connection, input, sizeof input, 0);
    if (length <= 0) {
        close(connection);
        return;
    }
    size_t filled = 0;
    for (const char *line = input, *end = input + length, *newline;
         line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
        size_t count = (size_t)(newline + 1 - line);
        if (count != request.length || memcmp(line, request.bytes, count)) continue;
        if (filled + reply.length > sizeof output) {
            send(connection, output, filled, MSG_NOSIGNAL);
            filled = 0;
        }
        memcpy(output + filled, reply.bytes, reply.length);
        filled += reply.length;
    }
    send(connection, output, filled, MSG_NOSIGNAL);
}

static int serve(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return ENAMETOOLONG;
    strcpy(address.sun_path, path);
    unlink(path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {.events = EPOLLIN, .data.fd = listener};
    if (listener < 0 || set < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)
        || epoll_ctl(set, EPOLL_CTL_ADD, listener, &interest))
        return errno;
    for (;;) {
        struct epoll_event ready[ready_at_once];
        int count = epoll_wait(set, ready, ready_at_once, -1);
        if (count < 0 && errno != EINTR) return errno;
        for (int index = 0; index < count; index++) {
            if (ready[index].data.fd != listener) {
                answer(ready[index].data.fd);
                continue;
            }
            for (int connection; (connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
                interest.data.fd = connection;
                if (epoll_ctl(set, EPOLL_CTL_ADD, connection, &interest)) return errno;
            }
        }
    }
}

/// Returns an argument as a line.
static struct text line(const char *argument) {
    char *bytes = NULL;
    int length = asprintf(&bytes, "%s\n", argument);
    if (length < 0 || length > output_length) exit(1);
    return (struct text){bytes, (size_t)length};
}

int main(int count, char **arguments) {
    if (count != 4) return fprintf(stderr, "usage: LimitServer SOCKET REQUEST REPLY\n"), 64;
    request = line(arguments[2]);
    reply = line(arguments[3]);
    return fprintf(stderr, "LimitServer: %s\n", strerror(serve(arguments[1]))), 1;
}
