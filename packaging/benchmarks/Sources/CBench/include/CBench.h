// What must cost as little as C does: the one client that asks all the servers.
// Functions return 0, or the errno of what failed, unless they say otherwise. EPROTO: an answer was not the expected one.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// How a request is asked over and over.
struct bench_load {
    /// That many bytes of the request, at `digits_at`, count up, so that no two requests are the same.
    size_t digits_at;
    size_t digits;
    uint64_t counter;
    /// That many bytes of it, at `key_at`, are the number of the connection.
    size_t key_at;
    size_t key_digits;
    /// How many bytes every reply begins with as the one that is expected; all have its length.
    size_t reply_same;
    uint32_t connections;
    /// Requests that are under way on each connection together.
    uint32_t depth;
};

/// What came of asking for a while.
struct bench_slice {
    uint64_t requests;
    uint64_t nanoseconds;
    /// Of the times from a request, or from `depth` of them, to the last of the answers.
    uint64_t median_nanoseconds;
    /// The median of them by time: half of all the time goes into shorter ones. Who asks again and again asks seldom while
    /// answers are late; this is how long the one under way takes at any time.
    uint64_t median_by_time_nanoseconds;
};

/// A request, its reply, and what it has others receive; of reply and event only so many bytes are compared.
struct bench_exchange {
    const char *request;
    size_t request_length;
    const char *reply;
    size_t reply_length;
    size_t reply_same;
    const char *event;
    size_t event_length;
    size_t event_same;
};

/// Connections that ask the same; see `bench_load`.
struct bench_client;

/// Connects, and asks once over each connection, behind the greeting if there is one. Without connections it is for the
/// functions that make their own; those do not greet.
int bench_client_open(
    const char *path, const void *request, size_t request_length, const void *reply, size_t reply_length,
    const struct bench_exchange *greeting, const struct bench_load *load, struct bench_client **client);
void bench_client_close(struct bench_client *client);
/// Asks for a while: as many requests under way as there may be, and the next as soon as those are answered.
int bench_client_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice);
/// Asks over the first connection, `depth` requests together, and that so many times.
int bench_client_repeat(struct bench_client *client, uint64_t count);
/// Connects, asks, takes the answer and closes: once, or one after the other for a while.
int bench_connect_and_ask(struct bench_client *client);
int bench_connects_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice);

/// A client that asks in a thread of its own, on the processors of a mask, until it is stopped.
struct bench_background;
int bench_background_start(struct bench_client *client, uint64_t mask, struct bench_background **background);
int bench_background_stop(struct bench_background *background, uint64_t *requests);

/// Connections that wait for events, and one that brings them about; each begins with an exchange, if it is not empty.
struct bench_subscribers;
int bench_subscribers_open(
    const char *path, const struct bench_exchange *subscribing, const struct bench_exchange *publishing, uint32_t count,
    struct bench_subscribers **subscribers);
void bench_subscribers_close(struct bench_subscribers *subscribers);
/// Sends a change, and takes the time until the last subscriber has its event.
int bench_subscribers_run(
    struct bench_subscribers *subscribers, const struct bench_exchange *change, uint64_t *nanoseconds);

/// Starts a program, its output to a log, and asks as soon as somebody listens: the time from before the start to the
/// whole answer. ECHILD where it ended instead.
int bench_start(
    char *const *arguments, const char *log, struct bench_client *client, pid_t *process, uint64_t *nanoseconds);
/// Sends it a signal, and waits for its end.
int bench_stop(pid_t process, int signal, int *status);

/// Has this thread, another one, or every thread of a process, run on the processors of a mask alone
/// (sched_setaffinity(2)). The first thread of a process has its number.
int bench_pin_self(uint64_t mask);
int bench_pin_thread(pid_t thread, uint64_t mask);
int bench_pin_process(pid_t process, uint64_t mask);
/// The time that all threads of a process have had on a processor.
int bench_processor_time(pid_t process, uint64_t *nanoseconds);
/// Raises RLIMIT_NOFILE to that many, for this process and those that it starts.
int bench_allow_descriptors(uint64_t count);

/// Has users ask a request line, each over a connection of its own; every answer has to say OK. It takes root.
int bench_users_ask(const char *path, const char *request, uid_t first, uint32_t count);

/// A loop of durable changes by SQLite alone: one transaction each, write-ahead log, `synchronous=FULL`.
int bench_sqlite_run(const char *path, uint64_t limit_nanoseconds, struct bench_slice *slice);
