// Declarations that the files of this target share.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct bench_exchange;

enum { ready_at_once = 256, patience_seconds = 60 };

/// Returns the monotonic clock, in nanoseconds.
static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/// Connects to a path. Returns -1 with errno on failure.
int bench_connect(const char *path);
/// Connects to a path and exchanges the greeting. Returns -1 with errno on failure.
int bench_connect_and_greet(const char *path, const struct bench_exchange *greeting);
/// Sends all bytes, or receives this number of bytes. Returns 0 or the errno of the failure.
int bench_send(int connection, const char *bytes, size_t length);
int bench_receive(int connection, char *bytes, size_t length);
