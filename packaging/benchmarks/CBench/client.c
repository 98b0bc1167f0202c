#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CBench.h"
#include "common.h"

/// The highest number of times that are kept from one slice.
enum { times_room = 1 << 18 };

struct asking {
    int descriptor;
    /// The bytes of the replies that have not come yet.
    size_t missing;
    uint64_t asked;
};

struct bench_client {
    struct bench_load load;
    size_t request_length;
    size_t reply_length;
    char *path;
    /// The requests that are sent together, and the expected replies.
    char *batch;
    char *replies;
    /// Room for these replies and one more byte, which shows surplus bytes.
    char *received;
    uint32_t *times;
    size_t times_count;
    int set;
    struct asking *connections;
};

static void write_number(char *place, size_t digits, uint64_t number) {
    for (; digits; number /= 10) place[--digits] = (char)('0' + number % 10);
}

/// Sends the next requests.
static int ask(struct bench_client *client, struct asking *asking, uint32_t depth) {
    struct bench_load *load = &client->load;
    for (uint32_t place = 0; place < depth; place++) {
        char *request = client->batch + place * client->request_length;
        if (load->digits) write_number(request + load->digits_at, load->digits, load->counter++ * 1000003);
        if (load->key_digits)
            write_number(request + load->key_at, load->key_digits, (uint64_t)(asking - client->connections));
    }
    asking->missing = client->reply_length * depth;
    asking->asked = now();
    return bench_send(asking->descriptor, client->batch, client->request_length * depth);
}

/// Whether bytes of the replies, from an offset on, are as expected.
static bool is_expected(const struct bench_client *client, size_t from, const char *bytes, size_t length) {
    size_t whole = client->reply_length, same = client->load.reply_same;
    if (same == whole) return !memcmp(client->replies + from, bytes, length);
    while (length) {
        size_t begun = from % whole;
        size_t part = length < whole - begun ? length : whole - begun;
        size_t compared = begun >= same ? 0 : part < same - begun ? part : same - begun;
        if (memcmp(client->replies + from, bytes, compared)) return false;
        from += part;
        bytes += part;
        length -= part;
    }
    return true;
}

/// Receives bytes once, and checks them.
static int take(struct bench_client *client, struct asking *asking, uint32_t depth) {
    size_t all = client->reply_length * depth;
    ssize_t length = recv(asking->descriptor, client->received, asking->missing + 1, 0);
    if (length <= 0) return length ? errno : ECONNRESET;
    if ((size_t)length > asking->missing) return EPROTO;
    if (!is_expected(client, all - asking->missing, client->received, (size_t)length)) return EPROTO;
    asking->missing -= (size_t)length;
    return 0;
}

static int ask_once(struct bench_client *client, struct asking *asking) {
    int error = ask(client, asking, 1);
    while (!error && asking->missing) error = take(client, asking, 1);
    return error;
}

static char *repeated(const void *bytes, size_t length, uint32_t count, size_t more) {
    char *copies = malloc(length * count + more);
    for (uint32_t place = 0; copies && place < count; place++) memcpy(copies + place * length, bytes, length);
    return copies;
}

int bench_client_open(
    const char *path, const void *request, size_t request_length, const void *reply, size_t reply_length,
    const struct bench_exchange *greeting, const struct bench_load *load, struct bench_client **made) {
    if (!request_length || !reply_length || load->reply_same > reply_length) return EINVAL;
    struct bench_client *client = calloc(1, sizeof *client);
    if (!client) return ENOMEM;
    client->load = *load;
    if (!client->load.depth) client->load.depth = 1;
    client->load.connections = 0;
    client->request_length = request_length;
    client->reply_length = reply_length;
    client->path = strdup(path);
    client->batch = repeated(request, request_length, client->load.depth, 0);
    client->replies = repeated(reply, reply_length, client->load.depth, 0);
    client->received = malloc(reply_length * client->load.depth + 1);
    client->times = malloc(times_room * sizeof *client->times);
    client->connections = calloc(load->connections + 1, sizeof *client->connections);
    client->set = epoll_create1(EPOLL_CLOEXEC);
    int error = 0;
    if (!client->path || !client->batch || !client->replies || !client->received || !client->times
        || !client->connections)
        error = ENOMEM;
    else if (client->set < 0)
        error = errno;
    while (!error && client->load.connections < load->connections) {
        uint32_t place = client->load.connections;
        struct asking *asking = client->connections + place;
        struct epoll_event interest = {.events = EPOLLIN, .data.u32 = place};
        asking->descriptor = bench_connect_and_greet(path, greeting);
        if (asking->descriptor < 0) {
            error = errno;
            break;
        }
        client->load.connections++;
        error = epoll_ctl(client->set, EPOLL_CTL_ADD, asking->descriptor, &interest) ? errno : ask_once(client, asking);
    }
    if (error) bench_client_close(client);
    else *made = client;
    return error;
}

void bench_client_close(struct bench_client *client) {
    for (uint32_t place = 0; place < client->load.connections; place++) close(client->connections[place].descriptor);
    if (client->set >= 0) close(client->set);
    free(client->connections);
    free(client->times);
    free(client->received);
    free(client->replies);
    free(client->batch);
    free(client->path);
    free(client);
}

static void keep(struct bench_client *client, uint64_t time) {
    if (client->times_count < times_room)
        client->times[client->times_count++] = time < UINT32_MAX ? (uint32_t)time : UINT32_MAX;
}

static int compare(const void *one, const void *other) {
    uint32_t first = *(const uint32_t *)one, second = *(const uint32_t *)other;
    return first < second ? -1 : first > second;
}

static void finish(struct bench_client *client, uint64_t nanoseconds, struct bench_slice *slice) {
    qsort(client->times, client->times_count, sizeof *client->times, compare);
    slice->nanoseconds = nanoseconds;
    slice->median_nanoseconds = client->times_count ? client->times[client->times_count / 2] : 0;
    uint64_t sum = 0, before = 0;
    for (size_t place = 0; place < client->times_count; place++) sum += client->times[place];
    for (size_t place = 0; place < client->times_count && before <= sum / 2; place++) {
        slice->median_by_time_nanoseconds = client->times[place];
        before += client->times[place];
    }
    client->times_count = 0;
}

/// Runs a single connection, which needs no epoll.
static int run_alone(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice) {
    struct asking *only = client->connections;
    uint64_t started = now(), time = started;
    int error = 0;
    while (!error && time - started < limit_nanoseconds) {
        error = ask(client, only, client->load.depth);
        while (!error && only->missing) error = take(client, only, client->load.depth);
        time = now();
        slice->requests += client->load.depth;
        keep(client, time - only->asked);
    }
    finish(client, time - started, slice);
    return error;
}

int bench_client_repeat(struct bench_client *client, uint64_t count) {
    int error = 0;
    for (struct asking *first = client->connections; count && !error; count--) {
        error = ask(client, first, client->load.depth);
        while (!error && first->missing) error = take(client, first, client->load.depth);
    }
    return error;
}

int bench_client_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice) {
    uint32_t depth = client->load.depth, waiting = 0;
    *slice = (struct bench_slice){0};
    if (client->load.connections == 1) return run_alone(client, limit_nanoseconds, slice);
    uint64_t started = now(), time = started;
    int error = 0;
    for (; waiting < client->load.connections && !error; waiting++)
        error = ask(client, client->connections + waiting, depth);
    while (waiting && !error) {
        struct epoll_event ready[ready_at_once];
        int found = epoll_wait(client->set, ready, ready_at_once, patience_seconds * 1000);
        if (found <= 0) return found ? errno : ETIMEDOUT;
        for (int index = 0; index < found && !error; index++) {
            struct asking *asking = client->connections + ready[index].data.u32;
            error = take(client, asking, depth);
            if (error || asking->missing) continue;
            time = now();
            slice->requests += depth;
            keep(client, time - asking->asked);
            if (time - started >= limit_nanoseconds) waiting--;
            else error = ask(client, asking, depth);
        }
    }
    finish(client, time - started, slice);
    return error;
}

int bench_connect_and_ask(struct bench_client *client) {
    struct asking *asking = client->connections + client->load.connections;
    asking->descriptor = bench_connect(client->path);
    if (asking->descriptor < 0) return errno;
    int error = ask_once(client, asking);
    close(asking->descriptor);
    return error;
}

int bench_connects_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice) {
    uint64_t started = now(), time = started;
    *slice = (struct bench_slice){0};
    int error = 0;
    while (!error && time - started < limit_nanoseconds) {
        uint64_t begun = time;
        error = bench_connect_and_ask(client);
        time = now();
        slice->requests++;
        keep(client, time - begun);
    }
    finish(client, time - started, slice);
    return error;
}
