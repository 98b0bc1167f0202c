#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "CBench.h"
#include "common.h"

/// The duration of one slice. A stop takes effect after the current slice.
enum { slice_nanoseconds = 5000000 };

struct bench_background {
    pthread_t thread;
    struct bench_client *client;
    atomic_bool is_over;
    uint64_t requests;
    int error;
    uint64_t mask;
};

static void *go_on(void *pointer) {
    struct bench_background *background = pointer;
    struct bench_slice slice;
    background->error = bench_pin_self(background->mask);
    while (!background->error && !background->is_over) {
        background->error = bench_client_run(background->client, slice_nanoseconds, &slice);
        background->requests += slice.requests;
    }
    return NULL;
}

int bench_background_start(struct bench_client *client, uint64_t mask, struct bench_background **made) {
    struct bench_background *background = calloc(1, sizeof *background);
    if (!background) return ENOMEM;
    background->client = client;
    background->mask = mask;
    int error = pthread_create(&background->thread, NULL, go_on, background);
    if (error) free(background);
    else *made = background;
    return error;
}

int bench_background_stop(struct bench_background *background, uint64_t *requests) {
    background->is_over = true;
    pthread_join(background->thread, NULL);
    int error = background->error;
    *requests = background->requests;
    free(background);
    return error;
}
