#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CBench.h"
#include "common.h"

struct bench_subscribers {
    uint32_t count;
    int set;
    int changing;
    int *descriptors;
    size_t *missing;
    char *received;
    size_t room;
};

int bench_subscribers_open(
    const char *path, const struct bench_exchange *subscribing, const struct bench_exchange *publishing, uint32_t count,
    struct bench_subscribers **made) {
    struct bench_subscribers *all = calloc(1, sizeof *all);
    if (!all) return ENOMEM;
    all->room = 4096;
    all->changing = -1;
    all->descriptors = calloc(count, sizeof *all->descriptors);
    all->missing = calloc(count, sizeof *all->missing);
    all->received = malloc(all->room);
    all->set = epoll_create1(EPOLL_CLOEXEC);
    int error = !all->descriptors || !all->missing || !all->received ? ENOMEM : all->set < 0 ? errno : 0;
    if (!error && (all->changing = bench_connect_and_greet(path, publishing)) < 0) error = errno;
    while (!error && all->count < count) {
        struct epoll_event interest = {.events = EPOLLIN, .data.u32 = all->count};
        int connection = bench_connect_and_greet(path, subscribing);
        if (connection < 0) {
            error = errno;
            break;
        }
        all->descriptors[all->count++] = connection;
        if (epoll_ctl(all->set, EPOLL_CTL_ADD, connection, &interest)) error = errno;
    }
    if (error) bench_subscribers_close(all);
    else *made = all;
    return error;
}

void bench_subscribers_close(struct bench_subscribers *all) {
    for (uint32_t place = 0; place < all->count; place++) close(all->descriptors[place]);
    if (all->changing >= 0) close(all->changing);
    if (all->set >= 0) close(all->set);
    free(all->descriptors);
    free(all->missing);
    free(all->received);
    free(all);
}

/// Receives bytes of one subscriber, and checks them.
static int take(struct bench_subscribers *all, uint32_t place, const struct bench_exchange *change) {
    ssize_t length = recv(all->descriptors[place], all->received, all->room, 0);
    if (length <= 0) return length ? errno : ECONNRESET;
    if ((size_t)length > all->missing[place]) return EPROTO;
    // At least the beginning of an event comes in one piece.
    bool is_first = all->missing[place] == change->event_length;
    if (is_first && ((size_t)length < change->event_same || memcmp(all->received, change->event, change->event_same)))
        return EPROTO;
    all->missing[place] -= (size_t)length;
    return 0;
}

int bench_subscribers_run(struct bench_subscribers *all, const struct bench_exchange *change, uint64_t *nanoseconds) {
    if (change->reply_length > all->room || !change->event_length) return EINVAL;
    for (uint32_t place = 0; place < all->count; place++) all->missing[place] = change->event_length;
    uint64_t started = now();
    int error = bench_send(all->changing, change->request, change->request_length);
    for (uint32_t waiting = all->count; waiting && !error;) {
        struct epoll_event ready[ready_at_once];
        int found = epoll_wait(all->set, ready, ready_at_once, patience_seconds * 1000);
        if (found <= 0) return found ? errno : ETIMEDOUT;
        for (int index = 0; index < found && !error; index++) {
            error = take(all, ready[index].data.u32, change);
            if (!error && !all->missing[ready[index].data.u32]) waiting--;
        }
    }
    *nanoseconds = now() - started;
    if (!error) error = bench_receive(all->changing, all->received, change->reply_length);
    if (!error && memcmp(all->received, change->reply, change->reply_same)) error = EPROTO;
    return error;
}
