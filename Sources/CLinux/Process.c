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

int clinux_close_from_in_child(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
