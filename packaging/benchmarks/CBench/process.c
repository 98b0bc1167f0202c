#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CBench.h"
#include "common.h"

extern char **environ;

static cpu_set_t processors(uint64_t mask) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t number = 0; number < 64; number++)
        if (mask >> number & 1) CPU_SET(number, &set);
    return set;
}

int bench_pin_thread(pid_t thread, uint64_t mask) {
    cpu_set_t set = processors(mask);
    return sched_setaffinity(thread, sizeof set, &set) ? errno : 0;
}

int bench_pin_self(uint64_t mask) { return bench_pin_thread(0, mask); }

/// Calls a function for every thread of a process.
static int for_each_thread(pid_t process, int (*act)(pid_t process, pid_t thread, void *context), void *context) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *threads = opendir(path);
    if (!threads) return errno;
    int error = 0;
    for (struct dirent *entry; !error && (entry = readdir(threads));) {
        pid_t thread = atoi(entry->d_name);
        if (thread) error = act(process, thread, context);
    }
    closedir(threads);
    return error;
}

static int pin(pid_t process, pid_t thread, void *context) {
    (void)process;
    return sched_setaffinity(thread, sizeof(cpu_set_t), context) && errno != ESRCH ? errno : 0;
}

int bench_pin_process(pid_t process, uint64_t mask) {
    cpu_set_t set = processors(mask);
    return for_each_thread(process, pin, &set);
}

static int add_time(pid_t process, pid_t thread, void *context) {
    char path[64];
    unsigned long long nanoseconds = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", process, thread);
    FILE *file = fopen(path, "re");
    if (!file) return errno == ENOENT ? 0 : errno;
    int found = fscanf(file, "%llu", &nanoseconds);
    fclose(file);
    *(uint64_t *)context += nanoseconds;
    return found == 1 ? 0 : EPROTO;
}

int bench_processor_time(pid_t process, uint64_t *nanoseconds) {
    *nanoseconds = 0;
    return for_each_thread(process, add_time, nanoseconds);
}

int bench_allow_descriptors(uint64_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return errno;
    if (limit.rlim_cur >= count) return 0;
    limit.rlim_cur = count;
    if (limit.rlim_max < count) limit.rlim_max = count;
    return setrlimit(RLIMIT_NOFILE, &limit) ? errno : 0;
}

static int spawn(char *const *arguments, const char *log, pid_t *process) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!error) error = posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (!error) error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
        if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
        if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
        if (!error) error = posix_spawn(process, arguments[0], &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int bench_start(
    char *const *arguments, const char *log, struct bench_client *client, pid_t *process, uint64_t *nanoseconds) {
    // Makes timers expire on time, not up to 50 µs later.
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t started = now();
    int error = spawn(arguments, log, process);
    if (error) return error;
    while ((error = bench_connect_and_ask(client)) == ENOENT || error == ECONNREFUSED) {
        if (waitpid(*process, NULL, WNOHANG) == *process) return ECHILD;
        if (now() - started > (uint64_t)patience_seconds * 1000000000) return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    *nanoseconds = now() - started;
    return error;
}

int bench_stop(pid_t process, int signal, int *status) {
    if (kill(process, signal)) return errno;
    for (uint64_t started = now(); now() - started < (uint64_t)patience_seconds * 1000000000;) {
        pid_t ended = waitpid(process, status, WNOHANG);
        if (ended) return ended == process ? 0 : errno;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return ETIMEDOUT;
}
