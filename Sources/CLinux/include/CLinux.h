// What glibc's Swift module hides: functions behind _GNU_SOURCE, variadic ones, and structures with macros for members.
// Each returns what the system call returns and leaves errno as it left it.
#pragma once
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/// accept4() with SOCK_CLOEXEC and SOCK_NONBLOCK.
int clinux_accept(int socket);
/// socket() for a Unix stream, with SOCK_CLOEXEC, and SOCK_NONBLOCK where asked.
int clinux_unix_stream(int nonblocking);
/// bind() or connect() to a path in the file system; ENAMETOOLONG where it does not fit.
int clinux_bind_path(int socket, const char *path);
int clinux_connect_path(int socket, const char *path);

/// Whether it is a Unix stream socket with a peer, and not one that listens: 1 or 0.
int clinux_is_connected_unix_stream(int descriptor);

/// SO_PEERCRED.
struct clinux_credentials {
    int32_t process;
    uint32_t user;
    uint32_t group;
};
int clinux_peer_credentials(int socket, struct clinux_credentials *credentials);
/// SO_PEERPIDFD (Linux 6.5): a descriptor, or -1 with ENOPROTOOPT on older kernels.
int clinux_peer_pidfd(int socket);
/// pidfd_open(): a descriptor, or -1.
int clinux_pidfd_open(int process);
/// PIDFD_GET_INFO (Linux 6.13): 0 and the number of the process's control group in the unified hierarchy, or -1.
int clinux_process_group(int process, uint64_t *group);
/// FIONREAD: how many bytes have arrived, or -1.
int clinux_unread(int socket);
/// SO_PASSRIGHTS off (Linux 6.16): 0, or -1 with ENOPROTOOPT on older kernels.
int clinux_refuse_descriptors(int socket);
/// SO_PEERGROUPS: how many groups were written, or -1 with ERANGE when there is not enough room.
int clinux_peer_groups(int socket, uint32_t *groups, int room);

// What each request takes. In glibc's own functions for these a thread can be cancelled (pthreads(7)), which costs two
// locked instructions each time.
/// recv() and send() with MSG_DONTWAIT, and MSG_NOSIGNAL.
ssize_t clinux_receive(int socket, void *bytes, size_t length);
ssize_t clinux_send(int socket, const void *bytes, size_t length);
/// recvmsg() with MSG_DONTWAIT. `*is_cut` becomes 1 where descriptors came with the bytes, which are thrown away.
ssize_t clinux_receive_message(int socket, void *bytes, size_t length, int *is_cut);
int clinux_epoll_wait(int set, struct epoll_event *ready, int room, int milliseconds);

int clinux_epoll_create(void);
/// EPOLL_CTL_ADD (1), DEL (2), MOD (3).
int clinux_epoll_control(int set, int operation, int descriptor, uint32_t events, uint64_t token);
/// The token of what is ready.
static inline uint64_t clinux_epoll_token(const struct epoll_event *ready) { return ready->data.u64; }

int clinux_eventfd(int nonblocking);

/// memfd_create() with MFD_CLOEXEC and MFD_ALLOW_SEALING, and never executable where the kernel can tell (Linux 6.3).
int clinux_memory_file(const char *name);
/// F_ADD_SEALS with SEAL, SHRINK, GROW and WRITE: 0 or -1.
int clinux_seal(int descriptor);
/// Whether all four are set: 1 or 0, or -1 with EINVAL where the file can have no seals.
int clinux_is_sealed(int descriptor);
/// fallocate() with FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE.
int clinux_punch_hole(int descriptor, off_t offset, off_t length);
/// How many pages of a file's front the page cache has (mincore()), or -1.
long clinux_cached_pages(int descriptor, size_t length);
/// Whether a file's pages live in the page cache alone, as those of tmpfs do: 1 or 0, or -1.
int clinux_is_in_memory(int descriptor);
/// mmap() of a file's front, shared, to read and write: NULL where it fails.
void *clinux_map_shared(int descriptor, size_t length);
/// One atomic load, and one atomic store that neither what comes before it nor what comes after it can pass.
uint64_t clinux_load_word(const uint64_t *word);
void clinux_store_word(uint64_t *word, uint64_t value);

/// An open file description lock on the whole file, which others may share where asked: 0, or -1 with EAGAIN when another
/// holds it.
int clinux_lock(int descriptor, int is_shared);
/// Frees that lock, for whoever has the same open file: 0, or -1.
int clinux_unlock(int descriptor);
/// open() with O_CLOEXEC | O_NOFOLLOW added.
int clinux_open(const char *path, int flags, mode_t mode);
int clinux_openat(int folder, const char *path, int flags, mode_t mode);
/// open() of a file to be read around the page cache (O_DIRECT).
int clinux_openat_direct(int folder, const char *path);
/// pipe2() with O_CLOEXEC.
int clinux_pipe(int *reading, int *writing);
/// posix_spawn_file_actions_addclosefrom_np().
int clinux_close_from_in_child(posix_spawn_file_actions_t *actions, int first);
/// adjtimex(): whether the clock is synchronized: 1 or 0, or -1.
int clinux_is_clock_synchronized(void);
ssize_t clinux_random(void *bytes, size_t count);
/// PR_SET_DUMPABLE 0: no core dump, no ptrace by the same user.
int clinux_forbid_dumps(void);
/// Gives back the heap's free memory (malloc_trim(3)), and maps nothing of the code and the constants of the program and
/// its libraries any more (MADV_DONTNEED): what is used comes back from the page cache.
void clinux_release_memory(void);
/// Gives back the memory of this thread's stack that calls which have returned have used (MADV_DONTNEED).
void clinux_release_stack(void);
/// pthread_setname_np(): shows in ps and top; at most 15 bytes.
int clinux_name_thread(pthread_t thread, const char *name);
/// Users with numbers in a row.
struct clinux_user_range {
    unsigned long first;
    unsigned long count;
};
/// subid_get_uid_ranges() of shadow's libsubid, which is loaded at the first call and asks the source that nsswitch.conf
/// names for `subid`. Returns how many ranges the owner has, of which at most `room` were written; 0 also where the source
/// knows no such owner or does not answer, which the library does not tell apart; -1 with ENOSYS where there is no library.
int clinux_subordinate_ranges(const char *owner, struct clinux_user_range *ranges, int room);
/// One option of getopt_long(), and where its state lives in one place: `names` are the long options, `takes` whether each
/// takes a value. Returns the place of the option found, -1 at the end, -2 for one that is unknown or ambiguous, -3 for one
/// that lacks its value or has one too many. Words that are no options are moved behind the options. `*next` is where
/// those begin at the end, and before that the argument looked at next; begin with 0.
int clinux_next_option(int count, char **arguments, const char *const *names, const int *takes, int options, int *next,
                       const char **value);
