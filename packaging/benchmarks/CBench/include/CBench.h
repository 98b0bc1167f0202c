// The parts of the benchmark that must cost as little as C does: the only client of all servers.
// Functions return 0 or the errno of the failure, unless stated otherwise. EPROTO: a reply was not the expected one.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The way in which a request is repeated.
struct bench_load {
    /// `digits` bytes of the request, at `digits_at`, are a counter, so that no two requests are the same.
    size_t digits_at;
    size_t digits;
    uint64_t counter;
    /// `key_digits` bytes of the request, at `key_at`, are the number of the connection.
    size_t key_at;
    size_t key_digits;
    /// The number of bytes at the beginning of every reply that must be as expected. All replies have
    /// the expected length.
    size_t reply_same;
    uint32_t connections;
    /// The number of requests that are sent together on each connection.
    uint32_t depth;
};

/// The results of requests over a period of time.
struct bench_slice {
    uint64_t requests;
    uint64_t nanoseconds;
    /// The median time from a request, or from `depth` requests, to the last reply.
    uint64_t median_nanoseconds;
    /// The median of these times weighted by duration: half of the total time is spent in shorter ones. A client
    /// that repeats requests sends few while replies are late. This median shows how long the request under way
    /// takes at any moment.
    uint64_t median_by_time_nanoseconds;
};

/// A request, its reply, and the event that others receive from it. Of reply and event, only `reply_same` and
/// `event_same` bytes are compared.
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

/// Connections that repeat the same request. See `bench_load`.
struct bench_client;

/// Connects, and sends one request on each connection, after the greeting if there is one. A client without connections
/// is for the functions that open their own, which do not greet.
int bench_client_open(
    const char *path, const void *request, size_t request_length, const void *reply, size_t reply_length,
    const struct bench_exchange *greeting, const struct bench_load *load, struct bench_client **client);
void bench_client_close(struct bench_client *client);
/// Sends requests for a period of time: `depth` together on each connection, and the next as soon as
/// these are answered.
int bench_client_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice);
/// Sends `depth` requests together on the first connection, and repeats that `count` times.
int bench_client_repeat(struct bench_client *client, uint64_t count);
/// Connects, sends the request, receives the reply and closes: once, or repeatedly for a period of time.
int bench_connect_and_ask(struct bench_client *client);
int bench_connects_run(struct bench_client *client, uint64_t limit_nanoseconds, struct bench_slice *slice);

/// A client that sends requests in a separate thread, on the CPUs of a mask, until it is stopped.
struct bench_background;
int bench_background_start(struct bench_client *client, uint64_t mask, struct bench_background **background);
int bench_background_stop(struct bench_background *background, uint64_t *requests);

/// Connections that wait for events, and one that causes them. Each begins with an exchange, if it is not empty.
struct bench_subscribers;
int bench_subscribers_open(
    const char *path, const struct bench_exchange *subscribing, const struct bench_exchange *publishing, uint32_t count,
    struct bench_subscribers **subscribers);
void bench_subscribers_close(struct bench_subscribers *subscribers);
/// Sends a change, and measures the time until the last subscriber has its event.
int bench_subscribers_run(
    struct bench_subscribers *subscribers, const struct bench_exchange *change, uint64_t *nanoseconds);

/// Starts a program with its output to a log, and sends a request as soon as it listens. Measures the time from before
/// the start to the complete reply. Returns ECHILD if the program ended instead.
int bench_start(
    char *const *arguments, const char *log, struct bench_client *client, pid_t *process, uint64_t *nanoseconds);
/// Sends a signal to a process, and waits for its end.
int bench_stop(pid_t process, int signal, int *status);

/// Restricts this thread, another thread, or every thread of a process to the CPUs of a mask (sched_setaffinity(2)).
/// The ID of the first thread of a process is the process ID.
int bench_pin_self(uint64_t mask);
int bench_pin_thread(pid_t thread, uint64_t mask);
int bench_pin_process(pid_t process, uint64_t mask);
/// Adds up the time that all threads of a process have run on a CPU.
int bench_processor_time(pid_t process, uint64_t *nanoseconds);
/// Raises RLIMIT_NOFILE to at least this number, for this process and its children.
int bench_allow_descriptors(uint64_t count);

/// Sends a request line as each of these users, on separate connections. Every reply must say OK. Needs root.
int bench_users_ask(const char *path, const char *request, uid_t first, uint32_t count);

/// Repeats durable changes with SQLite alone: one transaction each, write-ahead log, `synchronous=FULL`.
int bench_sqlite_run(const char *path, uint64_t limit_nanoseconds, struct bench_slice *slice);
