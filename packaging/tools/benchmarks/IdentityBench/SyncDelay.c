// A library to preload: a sync of a file waits for a given time and writes nothing, as on a disk of that speed.
//
// The time stands in the environment, in microseconds.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct timespec delay;

__attribute__((constructor)) static void read_delay(void) {
    const char *text = getenv("IDENTITYBENCH_SYNC_DELAY");
    long microseconds = text ? atol(text) : 0;
    delay = (struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
}

static int wait_instead(void) {
    if (!delay.tv_sec && !delay.tv_nsec) return 0;
    // Makes the timer of this thread expire on time, not up to 50 µs later.
    static _Thread_local int is_exact;
    if (!is_exact) is_exact = !prctl(PR_SET_TIMERSLACK, 1);
    struct timespec rest = delay;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) continue;
    return 0;
}

int fsync(int file) {
    (void)file;
    return wait_instead();
}

int fdatasync(int file) {
    (void)file;
    return wait_instead();
}
