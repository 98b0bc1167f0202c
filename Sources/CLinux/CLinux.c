#define _GNU_SOURCE
#include "CLinux.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <link.h>
#include <linux/magic.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

// The headers of Debian 12 are older than some kernels that the program may run on.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

int clinux_accept(int socket) { return accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

int clinux_unix_stream(int nonblocking) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0);
}

static int unix_address(const char *path, struct sockaddr_un *address) {
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
    return 0;
}

int clinux_bind_path(int socket, const char *path) {
    struct sockaddr_un address;
    if (unix_address(path, &address) < 0) return -1;
    return bind(socket, (struct sockaddr *) &address, sizeof address);
}

int clinux_connect_path(int socket, const char *path) {
    struct sockaddr_un address;
    if (unix_address(path, &address) < 0) return -1;
    return connect(socket, (struct sockaddr *) &address, sizeof address);
}

static int socket_option(int descriptor, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) < 0 ? -1 : value;
}

int clinux_is_connected_unix_stream(int descriptor) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return socket_option(descriptor, SO_DOMAIN) == AF_UNIX && socket_option(descriptor, SO_TYPE) == SOCK_STREAM &&
           socket_option(descriptor, SO_ACCEPTCONN) == 0 &&
           getpeername(descriptor, (struct sockaddr *) &peer, &length) == 0;
}

int clinux_peer_credentials(int socket, struct clinux_credentials *credentials) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -1;
    credentials->process = peer.pid;
    credentials->user = peer.uid;
    credentials->group = peer.gid;
    return 0;
}

int clinux_peer_pidfd(int socket) {
    int descriptor = -1;
    socklen_t length = sizeof descriptor;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) < 0) return -1;
    return descriptor;
}

int clinux_pidfd_open(int process) {
    return (int) syscall(SYS_pidfd_open, process, 0);
}

// The first version of the structure in <linux/pidfd.h>.
struct process_information {
    uint64_t mask, control_group;
    uint32_t process, thread_group, parent, users_and_groups[8];
    int32_t exit_code;
};
enum { with_control_group = 1 << 2 };

int clinux_process_group(int process, uint64_t *group) {
    struct process_information information = {.mask = with_control_group};
    if (ioctl(process, _IOWR(0xFF, 11, struct process_information), &information) < 0) return -1;
    if (!(information.mask & with_control_group)) {
        errno = ENODATA;
        return -1;
    }
    *group = information.control_group;
    return 0;
}

int clinux_has_user_map(int number, const uint8_t *map, size_t length) {
    // Written by hand, because snprintf() costs as much as the rest of a connection.
    char path[32] = "/proc/", digits[10], found[4096];
    size_t end = 6, count_of_digits = 0;
    unsigned rest = (unsigned)number;
    do digits[count_of_digits++] = '0' + rest % 10; while ((rest /= 10) != 0);
    while (count_of_digits > 0) path[end++] = digits[--count_of_digits];
    memcpy(path + end, "/uid_map", sizeof "/uid_map");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t count = read(file, found, sizeof found);
    int error = errno;
    close(file);
    errno = error;
    if (count < 0) return -1;
    return (size_t)count == length && memcmp(found, map, length) == 0;
}

int clinux_unread(int socket) {
    int count = 0;
    if (ioctl(socket, FIONREAD, &count) < 0) return -1;
    return count;
}

int clinux_is_all_read(int socket) {
    int count = 0, error = 0;
    socklen_t length = sizeof error;
    if (ioctl(socket, SIOCOUTQ, &count) < 0) return -1;
    if (count > 1) return 0;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return -1;
    errno = error;
    return error == 0 ? 1 : -1;
}

int clinux_refuse_descriptors(int socket) {
    int passes = 0;
    return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &passes, sizeof passes);
}

int clinux_peer_groups(int socket, uint32_t *groups, int room) {
    socklen_t length = (socklen_t) room * sizeof *groups;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0) return -1;
    return (int) (length / sizeof *groups);
}

ssize_t clinux_send(int socket, const void *bytes, size_t length) {
    return syscall(SYS_sendto, socket, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

ssize_t clinux_receive(int socket, void *bytes, size_t length) {
    return syscall(SYS_recvfrom, socket, bytes, length, MSG_DONTWAIT, NULL, NULL);
}

ssize_t clinux_receive_message(int socket, void *bytes, size_t length, int *is_cut) {
    struct iovec room = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1};
    ssize_t count = syscall(SYS_recvmsg, socket, &message, MSG_DONTWAIT);
    *is_cut = count >= 0 && message.msg_flags & MSG_CTRUNC;
    return count;
}

int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_control(int set, int operation, int descriptor, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data = {.u64 = token}};
    return epoll_ctl(set, operation, descriptor, &event);
}

int clinux_epoll_wait(int set, struct epoll_event *ready, int room, int milliseconds) {
#ifdef SYS_epoll_wait
    return (int) syscall(SYS_epoll_wait, set, ready, room, milliseconds);
#else
    return (int) syscall(SYS_epoll_pwait, set, ready, room, milliseconds, NULL, 0);
#endif
}

int clinux_eventfd(int nonblocking) { return eventfd(0, EFD_CLOEXEC | (nonblocking ? EFD_NONBLOCK : 0)); }

int clinux_memory_file(const char *name) {
    // With vm.memfd_noexec=2 the kernel creates no other kind of memory file. Kernels before 6.3 do not know the flag.
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (descriptor < 0 && errno == EINVAL) descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor;
}

enum { all_seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int clinux_seal(int descriptor) { return fcntl(descriptor, F_ADD_SEALS, all_seals); }

int clinux_is_sealed(int descriptor) {
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals < 0 ? -1 : (seals & all_seals) == all_seals;
}

int clinux_punch_hole(int descriptor, off_t offset, off_t length) {
    return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

long clinux_cached_pages(int descriptor, size_t length) {
    if (length == 0) return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (length + page - 1) / page;
    void *start = mmap(NULL, length, PROT_READ, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) return -1;
    unsigned char *states = malloc(pages);
    int failed = states == NULL || mincore(start, length, states) != 0;
    int code = errno;
    long cached = 0;
    for (size_t place = 0; !failed && place < pages; place++) cached += states[place] & 1;
    free(states);
    munmap(start, length);
    errno = code;
    return failed ? -1 : cached;
}

int clinux_is_in_memory(int descriptor) {
    struct statfs system;
    if (fstatfs(descriptor, &system) != 0) return -1;
    return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

void *clinux_map_shared(int descriptor, size_t length) {
    void *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return start == MAP_FAILED ? NULL : start;
}

uint64_t clinux_load_word(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

void clinux_store_word(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    // Without the fence, the effect of the next system call could become visible before a release store.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static int set_lock(int descriptor, short type) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &whole);
}

int clinux_lock(int descriptor, int is_shared) { return set_lock(descriptor, is_shared ? F_RDLCK : F_WRLCK); }

int clinux_unlock(int descriptor) { return set_lock(descriptor, F_UNLCK); }

int clinux_open(const char *path, int flags, mode_t mode) { return open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode); }

int clinux_openat(int folder, const char *path, int flags, mode_t mode) {
    return openat(folder, path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
}

int clinux_openat_path(int folder, const char *path) { return openat(folder, path, O_PATH | O_CLOEXEC | O_NOFOLLOW); }

int clinux_openat_direct(int folder, const char *path) {
    return openat(folder, path, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

ssize_t clinux_random(void *bytes, size_t count) { return getrandom(bytes, count, 0); }

int clinux_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

static int release_segments(struct dl_phdr_info *object, size_t size, void *page) {
    (void) size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        // Only the pages of read-only segments can be read from the file again.
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t first = start & -*(uintptr_t *) page;
        madvise((void *) first, start + segment->p_memsz - first, MADV_DONTNEED);
    }
    return 0;
}

void clinux_release_memory(void) {
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
    malloc_trim(0);
    dl_iterate_phdr(release_segments, &page);
}

void clinux_release_stack(void) {
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (!pthread_attr_getstack(&attributes, &lowest, &size)) {
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
        // One page below this frame, because the call of madvise() needs stack as well.
        uintptr_t used = ((uintptr_t) __builtin_frame_address(0) - page) & -page;
        // Only part of the main thread's stack is mapped. For the unmapped rest madvise() fails, without any effect.
        madvise(lowest, used - (uintptr_t) lowest, MADV_DONTNEED);
    }
    pthread_attr_destroy(&attributes);
}

int clinux_name_thread(pthread_t thread, const char *name) { return pthread_setname_np(thread, name); }

// From shadow/subid.h. The program loads libsubid at run time and does not link to it, because few machines have
// another source than /etc/subuid.
struct subid_range {
    unsigned long start;
    unsigned long count;
};
static int (*subid_get_uid_ranges)(const char *owner, struct subid_range **ranges);
// Before version 5, libsubid has no subid_free() and its callers use free().
static void (*subid_free)(void *) = free;

static void load_libsubid(void) {
    void *library = dlopen("libsubid.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) library = dlopen("libsubid.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    // Without this call, libsubid writes messages to standard error.
    bool (*subid_init)(const char *program, FILE *log);
    *(void **)&subid_init = dlsym(library, "subid_init");
    if (subid_init != NULL) subid_init("identityd", NULL);
    void *own_free = dlsym(library, "subid_free");
    if (own_free != NULL) *(void **)&subid_free = own_free;
    *(void **)&subid_get_uid_ranges = dlsym(library, "subid_get_uid_ranges");
}

int clinux_subordinate_ranges(const char *owner, struct clinux_user_range *ranges, int room) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_libsubid);
    if (subid_get_uid_ranges == NULL) {
        errno = ENOSYS;
        return -1;
    }
    struct subid_range *found = NULL;
    int count = subid_get_uid_ranges(owner, &found);
    for (int place = 0; place < count && place < room; place++)
        ranges[place] = (struct clinux_user_range){.first = found[place].start, .count = found[place].count};
    subid_free(found);
    return count < 0 ? 0 : count;
}

int clinux_next_option(int count, char **arguments, const char *const *names, const char *letters, const int *takes,
                       int options, int *next, const char **value) {
    enum { most = 64 };
    struct option table[most + 1] = {0};
    char list[2 * most + 2] = ":";
    size_t length = 1;
    if (options > most) return -1;
    for (int i = 0; i < options; i++) {
        table[i].name = names[i];
        table[i].has_arg = takes[i];
        table[i].val = 256 + i;
        if (letters[i] == 0) continue;
        list[length++] = letters[i];
        if (takes[i]) list[length++] = ':';
    }
    opterr = 0;
    if (*next == 0) optind = 0;  // glibc: 0 restarts the scan
    int found = getopt_long(count, arguments, list, table, NULL);
    *next = optind;
    *value = optarg;
    if (found == -1) return -1;
    if (found == '?' && optopt < 256) return -2;
    if (found == ':' || found == '?') return -3;
    for (int i = 0; i < options && found < 256; i++)
        if (letters[i] == found) return i;
    return found - 256;
}

int clinux_is_clock_synchronized(void) {
    struct timex state = {.modes = 0};
    if (adjtimex(&state) < 0) return -1;
    return (state.status & STA_UNSYNC) == 0;
}

int clinux_pipe(int *reading, int *writing) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    *reading = ends[0];
    *writing = ends[1];
    return 0;
}
