#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int clinux_open_below(int root, const char *path, int flags) {
    struct open_how how = {.flags = (unsigned) flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    return (int) syscall(SYS_openat2, root, path, &how, sizeof how);
}
