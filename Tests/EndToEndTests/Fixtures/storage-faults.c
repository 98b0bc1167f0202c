// Preloaded into the daemon (LD_PRELOAD). Counts the C library calls on one folder and its contents, and
// SQLite's allocations, and makes some of them fail. The test controls it through a file that both processes
// map; see StorageFaults.swift.
//
//   cc -shared -fPIC -O1 -o storage-faults.so storage-faults.c -lsqlite3

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// In the order of StorageFault.Call.
enum call { OPENING, OPENING_TO_WRITE, CREATING, READING, WRITING, SYNCING, CUTTING, REMOVING, RENAMING, ASKING, LOCKING,
            OWNING, LISTING, ALLOCATING, KINDS };

enum way { REFUSED, SHORT, TORN, DONE_YET_REFUSED };

struct control {
    // The kinds of calls that are counted, one bit each.
    _Atomic int64_t counted;
    _Atomic int64_t calls;
    // The numbers of the first and the last counted call that fail.
    _Atomic int64_t first, last;
    _Atomic int64_t error, way;
    _Atomic int64_t failed;
    // The number of failed syncs, except those of data that is already durable.
    _Atomic int64_t unsynced;
    // The offset added to the monotonic clock, in nanoseconds. Only whole seconds count.
    _Atomic int64_t ahead;
    // The number of calls of each kind.
    _Atomic int64_t made[KINDS];
};

static struct control *control;
static const char *folder;
static size_t folder_length;
// Whether each descriptor belongs to the folder.
static _Atomic unsigned char ours[65536];

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *) dlsym(RTLD_NEXT, #name)

static int fails(enum call call) {
    if (!control) return 0;
    control->made[call]++;
    if (!(control->counted & 1 << call)) return 0;
    int64_t number = ++control->calls;
    if (number < control->first || number > control->last) return 0;
    control->failed++;
    return 1;
}

static int is_ours(int descriptor) { return descriptor >= 0 && descriptor < 65536 && ours[descriptor]; }

static int is_below(int at, const char *path) {
    if (!folder) return 0;
    if (path[0] != '/') return is_ours(at);
    return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

static int note(int descriptor, int below) {
    if (descriptor >= 0 && descriptor < 65536) ours[descriptor] = (unsigned char) below;
    return descriptor;
}

// Either fails the call without effect, or carries it out and reports a failure (DONE_YET_REFUSED).
#define CALL(call, concerned, type, done) \
    do { \
        if (!(concerned) || !fails(call)) return done; \
        if (control->way == DONE_YET_REFUSED) (void) !done; \
        errno = (int) control->error; \
        return (type) -1; \
    } while (0)

static enum call opening(int flags) {
    if (flags & O_CREAT) return CREATING;
    return (flags & O_ACCMODE) == O_RDONLY ? OPENING : OPENING_TO_WRITE;
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    NEXT(openat);
    int below = is_below(at, path);
    if (below && fails(opening(flags))) {
        if (control->way == DONE_YET_REFUSED) close(next(at, path, flags, mode));
        errno = (int) control->error;
        return -1;
    }
    return note(next(at, path, flags, mode), below);
}

#define MODE(flags) \
    va_list arguments; \
    va_start(arguments, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments)

int open(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags); return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags); return opened(at, path, flags, mode); }

int close(int descriptor) {
    NEXT(close);
    if (descriptor >= 0 && descriptor < 65536) ours[descriptor] = 0;
    return next(descriptor);
}

#define HALF(count) ((count) > 1 ? (count) / 2 : (count))

ssize_t read(int descriptor, void *bytes, size_t count) {
    NEXT(read);
    if (!is_ours(descriptor) || !fails(READING)) return next(descriptor, bytes, count);
    if (control->way == SHORT) return next(descriptor, bytes, HALF(count));
    errno = (int) control->error;
    return -1;
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off_t place) {
    NEXT(pread64);
    if (!is_ours(descriptor) || !fails(READING)) return next(descriptor, bytes, count, place);
    if (control->way == SHORT) return next(descriptor, bytes, HALF(count), place);
    errno = (int) control->error;
    return -1;
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t place) { return pread64(descriptor, bytes, count, place); }

// Returns the number of bytes that a failing write still writes.
static size_t written(size_t count) {
    switch (control->way) {
    case TORN: return HALF(count);
    case DONE_YET_REFUSED: return count;
    default: return 0;
    }
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    NEXT(write);
    if (!is_ours(descriptor) || !fails(WRITING)) return next(descriptor, bytes, count);
    if (control->way == SHORT) return next(descriptor, bytes, HALF(count));
    (void) !next(descriptor, bytes, written(count));
    errno = (int) control->error;
    return -1;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t place) {
    NEXT(pwrite64);
    if (!is_ours(descriptor) || !fails(WRITING)) return next(descriptor, bytes, count, place);
    if (control->way == SHORT) return next(descriptor, bytes, HALF(count), place);
    (void) !next(descriptor, bytes, written(count), place);
    errno = (int) control->error;
    return -1;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t place) {
    return pwrite64(descriptor, bytes, count, place);
}

int fsync(int descriptor) {
    NEXT(fsync);
    if (!is_ours(descriptor) || !fails(SYNCING)) return next(descriptor);
    control->unsynced++;
    if (control->way == DONE_YET_REFUSED) next(descriptor);
    errno = (int) control->error;
    return -1;
}

int fdatasync(int descriptor) {
    NEXT(fdatasync);
    if (!is_ours(descriptor) || !fails(SYNCING)) return next(descriptor);
    // SQLite syncs the folder after it creates a log, and ignores the result. The daemon has already synced the folder.
    struct stat status;
    if (syscall(SYS_fstat, descriptor, &status) != 0 || !S_ISDIR(status.st_mode)) control->unsynced++;
    if (control->way == DONE_YET_REFUSED) next(descriptor);
    errno = (int) control->error;
    return -1;
}

int ftruncate64(int descriptor, off_t length) {
    NEXT(ftruncate64);
    CALL(CUTTING, is_ours(descriptor), int, next(descriptor, length));
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int unlinkat(int at, const char *path, int flags) {
    NEXT(unlinkat);
    CALL(REMOVING, is_below(at, path), int, next(at, path, flags));
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int renameat(int at, const char *path, int to, const char *name) {
    NEXT(renameat);
    CALL(RENAMING, is_below(at, path), int, next(at, path, to, name));
}

int mkdir(const char *path, mode_t mode) { NEXT(mkdir); CALL(CREATING, is_below(AT_FDCWD, path), int, next(path, mode)); }

int fstatat64(int at, const char *path, struct stat64 *status, int flags) {
    NEXT(fstatat64);
    CALL(ASKING, is_below(at, path), int, next(at, path, status, flags));
}

int fstatat(int at, const char *path, struct stat *status, int flags) {
    return fstatat64(at, path, (struct stat64 *) status, flags);
}

int stat64(const char *path, struct stat64 *status) { return fstatat64(AT_FDCWD, path, status, 0); }
int stat(const char *path, struct stat *status) { return fstatat(AT_FDCWD, path, status, 0); }
int lstat64(const char *path, struct stat64 *status) { return fstatat64(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW); }
int lstat(const char *path, struct stat *status) { return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW); }

int fstat64(int descriptor, struct stat64 *status) {
    NEXT(fstat64);
    CALL(ASKING, is_ours(descriptor), int, next(descriptor, status));
}

int fstat(int descriptor, struct stat *status) { return fstat64(descriptor, (struct stat64 *) status); }

int access(const char *path, int mode) { NEXT(access); CALL(ASKING, is_below(AT_FDCWD, path), int, next(path, mode)); }

int fchown(int descriptor, uid_t user, gid_t group) {
    NEXT(fchown);
    CALL(OWNING, is_ours(descriptor), int, next(descriptor, user, group));
}

int fchmod(int descriptor, mode_t mode) { NEXT(fchmod); CALL(OWNING, is_ours(descriptor), int, next(descriptor, mode)); }

static int controlled(int descriptor, int command, void *argument) {
    NEXT(fcntl64);
    int locks = command == F_SETLK || command == F_OFD_SETLK || command == F_GETLK || command == F_OFD_GETLK;
    CALL(LOCKING, locks && is_ours(descriptor), int, next(descriptor, command, argument));
}

#define ARGUMENT(command) \
    va_list arguments; \
    va_start(arguments, command); \
    void *argument = va_arg(arguments, void *); \
    va_end(arguments)

int fcntl(int descriptor, int command, ...) { ARGUMENT(command); return controlled(descriptor, command, argument); }
int fcntl64(int descriptor, int command, ...) { ARGUMENT(command); return controlled(descriptor, command, argument); }

DIR *opendir(const char *path) {
    NEXT(opendir);
    if (!is_below(AT_FDCWD, path) || !fails(LISTING)) return next(path);
    errno = (int) control->error;
    return NULL;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    NEXT(clock_gettime);
    int result = next(clock, time);
    if (result == 0 && clock == CLOCK_MONOTONIC && control) time->tv_sec += control->ahead / 1000000000;
    return result;
}

static sqlite3_mem_methods memory;

static void *allocated(int size) { return fails(ALLOCATING) ? NULL : memory.xMalloc(size); }
static void *reallocated(void *old, int size) { return fails(ALLOCATING) ? NULL : memory.xRealloc(old, size); }

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("STORAGE_FAULTS");
    folder = getenv("STORAGE_FOLDER");
    if (!path || !folder) return;
    folder_length = strlen(folder);
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *place = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) abort();
    close(file);
    // Disables lookaside memory: small allocations would come out of it and never fail.
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);
    sqlite3_mem_methods failing = memory;
    failing.xMalloc = allocated;
    failing.xRealloc = reallocated;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
    control = place;
}
