#define _GNU_SOURCE
#include "CLinux.h"

#include <unistd.h>

static int argument_count;
static char **argument_vector;

__attribute__((constructor)) static void keep_arguments(int count, char **arguments) {
    argument_count = count;
    argument_vector = arguments;
}

char *const *clinux_arguments(int *count) {
    *count = argument_count;
    return argument_vector;
}

char *const *clinux_environment(void) { return environ; }
