// Preloaded into the daemon (LD_PRELOAD). Slows the monotonic clock of the daemon's own code, not of its libraries, which
// give the kernel absolute times.
//
// valgrind slows a program about fifty times. A turn, which the clock ends, would carry out a few requests instead of all
// that were sent together, and a count of instructions would depend on the machine.
//
//   cc -shared -fPIC -O1 -o slow-clock.so slow-clock.c

#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FACTOR = 100, SECOND = 1000000000 };

static struct timespec first;
static uintptr_t program, program_end;

// Called for the program itself first (dl_iterate_phdr(3)).
static int measure(struct dl_phdr_info *object, size_t size, void *data) {
    (void) size, (void) data;
    program = object->dlpi_addr;
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[index];
        uintptr_t end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && end > program_end) program_end = end;
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &first);
    dl_iterate_phdr(measure, NULL);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    uintptr_t caller = (uintptr_t) __builtin_return_address(0);
    if (result || clock != CLOCK_MONOTONIC || caller < program || caller >= program_end) return result;
    int64_t passed = (int64_t) (time->tv_sec - first.tv_sec) * SECOND + time->tv_nsec - first.tv_nsec;
    int64_t now = first.tv_nsec + passed / FACTOR;
    time->tv_sec = first.tv_sec + now / SECOND;
    time->tv_nsec = now % SECOND;
    return 0;
}
