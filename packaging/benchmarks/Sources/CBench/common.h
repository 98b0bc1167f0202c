// What the files of this target share.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct bench_exchange;

enum { ready_at_once = 256, patience_seconds = 60 };

/// The monotonic clock, in nanoseconds.
static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/// A connection to a path, or -1 with errno.
int bench_connect(const char *path);
/// The same, with what it has to say first behind it.
int bench_connect_and_greet(const char *path, const struct bench_exchange *greeting);
/// The whole of it goes out, or all of that many bytes come in: 0, or the errno of what failed.
int bench_send(int connection, const char *bytes, size_t length);
int bench_receive(int connection, char *bytes, size_t length);
