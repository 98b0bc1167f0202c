// Wrappers for parts of glibc that Swift's Glibc module does not expose: functions behind _GNU_SOURCE, variadic
// functions, and structures whose members are macros. Unless noted otherwise, each wrapper returns the result of its
// system call and leaves errno as the call set it.
#pragma once
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/// accept4() with SOCK_CLOEXEC and SOCK_NONBLOCK.
int clinux_accept(int socket);
/// socket() for a Unix stream socket, with SOCK_CLOEXEC, and with SOCK_NONBLOCK if `nonblocking` is set.
int clinux_unix_stream(int nonblocking);
/// bind() or connect() with a path in the file system. ENAMETOOLONG if the path is empty or does
/// not fit into the address.
int clinux_bind_path(int socket, const char *path);
int clinux_connect_path(int socket, const char *path);

/// Returns 1 if the descriptor is a Unix stream socket that has or had a peer and does not listen, otherwise 0.
int clinux_is_connected_unix_stream(int descriptor);

/// The peer's credentials (SO_PEERCRED).
struct clinux_credentials {
    int32_t process;
    uint32_t user;
    uint32_t group;
};
int clinux_peer_credentials(int socket, struct clinux_credentials *credentials);
/// Returns a pidfd of the peer (SO_PEERPIDFD, Linux 6.5), or -1 with ENOPROTOOPT on older kernels.
int clinux_peer_pidfd(int socket);
/// Returns a pidfd of the process with the ID `process` (pidfd_open()), or -1.
int clinux_pidfd_open(int process);
/// Reads the ID of a process's cgroup in the unified hierarchy (PIDFD_GET_INFO, Linux 6.13). `process` is
/// a pidfd. Returns 0 or -1.
int clinux_process_group(int process, uint64_t *group);
/// Compares the user ID map of a process, /proc/PID/uid_map (user_namespaces(7)), with another map. The kernel returns a
/// map that is not longer than a page with one read. Returns 1 if they are equal, 0 if they differ, or -1.
int clinux_has_user_map(int number, const uint8_t *map, size_t length);
/// Returns the number of bytes that have arrived and were not received yet (FIONREAD), or -1.
int clinux_unread(int socket);
/// Returns 1 if the peer has read everything that was sent to it, 0 if not, or -1, with ECONNRESET if the peer has closed
/// the socket without reading everything. A close drops what was not read, but sets the error (SO_ERROR) before. The
/// kernel counts the memory of messages (SIOCOUTQ), and while it tells of the last read, one byte is left.
int clinux_is_all_read(int socket);
/// Turns SO_PASSRIGHTS off (Linux 6.16). Returns 0, or -1 with ENOPROTOOPT on older kernels.
int clinux_refuse_descriptors(int socket);
/// Reads the peer's supplementary groups (SO_PEERGROUPS). Returns the number of groups, or -1 with
/// ERANGE if `room` is too small.
int clinux_peer_groups(int socket, uint32_t *groups, int room);

// The system calls of every request. glibc's own functions for these calls are cancellation points (pthreads(7)), which
// costs two locked instructions per call, so these functions call the kernel directly.
/// recv() with MSG_DONTWAIT, and send() with MSG_DONTWAIT and MSG_NOSIGNAL.
ssize_t clinux_receive(int socket, void *bytes, size_t length);
ssize_t clinux_send(int socket, const void *bytes, size_t length);
/// recvmsg() with MSG_DONTWAIT. Discards descriptors that came with the bytes, and sets `*is_cut` to 1 if there
/// were any, otherwise to 0.
ssize_t clinux_receive_message(int socket, void *bytes, size_t length, int *is_cut);
int clinux_epoll_wait(int set, struct epoll_event *ready, int room, int milliseconds);

int clinux_epoll_create(void);
/// epoll_ctl(). `operation` is EPOLL_CTL_ADD (1), EPOLL_CTL_DEL (2) or EPOLL_CTL_MOD (3).
int clinux_epoll_control(int set, int operation, int descriptor, uint32_t events, uint64_t token);
/// Returns the token of a ready descriptor.
static inline uint64_t clinux_epoll_token(const struct epoll_event *ready) { return ready->data.u64; }

int clinux_eventfd(int nonblocking);

/// A socket that hears of new addresses and routes (rtnetlink(7)), with SOCK_CLOEXEC and SOCK_NONBLOCK. Returns -1 on
/// failure.
int clinux_network_socket(void);
/// Reads what such a socket has heard. Returns 1 if a global address or a default route has appeared since the last
/// call, or if the kernel could not tell everything, otherwise 0.
int clinux_network_appeared(int socket);

/// memfd_create() with MFD_CLOEXEC and MFD_ALLOW_SEALING, and with MFD_NOEXEC_SEAL if the kernel
/// knows the flag (Linux 6.3).
int clinux_memory_file(const char *name);
/// Adds the seals F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE. Returns 0 or -1.
int clinux_seal(int descriptor);
/// Returns 1 if all four seals are set and 0 if not, or -1 with EINVAL if the file does not support seals.
int clinux_is_sealed(int descriptor);
/// fallocate() with FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE.
int clinux_punch_hole(int descriptor, off_t offset, off_t length);
/// Returns the number of pages of a file's first `length` bytes that are in the page cache (mincore()), or -1.
long clinux_cached_pages(int descriptor, size_t length);
/// Returns 1 if the file's pages exist only in the page cache, as on tmpfs, and 0 if not, or -1.
int clinux_is_in_memory(int descriptor);
/// Maps the first `length` bytes of a file, shared, for reading and writing (mmap()). Returns NULL on failure.
void *clinux_map_shared(int descriptor, size_t length);
/// An atomic load with acquire order, and an atomic store that is a full barrier: neither earlier nor
/// later accesses pass the store.
uint64_t clinux_load_word(const uint64_t *word);
void clinux_store_word(uint64_t *word, uint64_t value);

/// Takes an open file description lock on the whole file, shared if `is_shared` is set. Returns 0, or -1 with EAGAIN if
/// another open file description holds a conflicting lock.
int clinux_lock(int descriptor, int is_shared);
/// Releases the lock for every holder of the same open file description. Returns 0 or -1.
int clinux_unlock(int descriptor);
/// open() and openat() with O_CLOEXEC | O_NOFOLLOW added.
int clinux_open(const char *path, int flags, mode_t mode);
int clinux_openat(int folder, const char *path, int flags, mode_t mode);
/// openat() for a place in the file system (O_PATH), without following a symbolic link in it.
int clinux_openat_path(int folder, const char *path);
/// openat() for reading a file around the page cache (O_DIRECT).
int clinux_openat_direct(int folder, const char *path);
/// openat2() with O_CLOEXEC added, and with the folder as the root of the path and of each symbolic link on the way.
int clinux_open_below(int root, const char *path, int flags);
/// Unicode's composed form (NFC) of a text in UTF-8, by libunistring. Returns the number of bytes, or -1 with EILSEQ for
/// other bytes than UTF-8, ERANGE if the room does not suffice (three times the length does), or ENOSYS without the
/// library.
ssize_t clinux_compose(const uint8_t *text, size_t length, uint8_t *result, size_t room);
/// pipe2() with O_CLOEXEC.
int clinux_pipe(int *reading, int *writing);
/// posix_spawn_file_actions_addclosefrom_np().
int clinux_close_from_in_child(posix_spawn_file_actions_t *actions, int first);
/// Returns 1 if the kernel's clock is synchronized and 0 if not, or -1 (adjtimex()).
int clinux_is_clock_synchronized(void);
ssize_t clinux_random(void *bytes, size_t count);
/// Sets PR_SET_DUMPABLE to 0: no core dumps, and no ptrace() by the same user.
int clinux_forbid_dumps(void);
/// Returns unused heap memory to the kernel (malloc_trim(3)).
///
/// Also drops the resident pages of code and constants, of the program and its libraries (MADV_DONTNEED). Pages in use
/// come back from the page cache.
void clinux_release_memory(void);
/// Returns the part of this thread's stack below the current depth to the kernel (MADV_DONTNEED).
void clinux_release_stack(void);
/// pthread_setname_np(). The name shows in ps and top, and has at most 15 bytes.
int clinux_name_thread(pthread_t thread, const char *name);
/// A range of consecutive user IDs.
struct clinux_user_range {
    unsigned long first;
    unsigned long count;
};
/// Reads an owner's subordinate user IDs with subid_get_uid_ranges() of shadow's libsubid, loaded at the first call.
///
/// The library asks the source that nsswitch.conf names for `subid`. Returns the number of ranges that the owner has,
/// of which at most `room` are written. Returns 0 also if the source does not know the owner or does not answer,
/// because the library does not distinguish these cases. Returns -1 with ENOSYS if the library is not installed.
int clinux_subordinate_ranges(const char *owner, struct clinux_user_range *ranges, int room);
/// Returns the arguments of this process, with the name of the program first, and sets `*count` to their number.
///
/// glibc passes the arguments of main() to each constructor (ELF gABI, initialization functions; glibc, csu/libc-start.c).
char *const *clinux_arguments(int *count);
/// Returns the environment of this process, which ends with a null pointer.
char *const *clinux_environment(void);
/// Returns the next option that getopt_long() finds. Only this function touches the global state of getopt_long().
///
/// `names` are the long options, `letters` are their short forms or 0, and `takes` says whether each takes a value. Returns the index of the option, -1 at
/// the end, -2 for an unknown or ambiguous option, or -3 for an option with a missing or an unexpected value. Words
/// that are not options are moved behind the options. `*next` has to be 0 at the start. During the scan `*next` is the
/// index of the next argument, and at the end the index of the first word that is not an option.
int clinux_next_option(int count, char **arguments, const char *const *names, const char *letters, const int *takes,
                       int options, int *next, const char **value);
