#include "CStoreFiles.h"

#include <stddef.h>


// The data that a file of these VFSes has behind the structure of SQLite's own VFS.
struct addition {
    const sqlite3_io_methods *base;
    sqlite3_io_methods own;
    // The number of bytes that the log of this database has at most; negative for any number. The file of the
    // database has the number for its log.
    sqlite3_int64 log_length;
    // The number of bytes that this file has at most; negative for any number.
    sqlite3_int64 length;
};

struct vfs {
    sqlite3_vfs own;
    sqlite3_vfs *base;
};

// The size of the structure of SQLite's own VFSes, which is the same for both.
static int base_size;

static struct addition *addition(sqlite3_file *file) { return (struct addition *) ((char *) file + base_size); }

static int read_file(sqlite3_file *file, void *bytes, int count, sqlite3_int64 place) {
    int code = addition(file)->base->xRead(file, bytes, count, place);
    return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code;
}

static int measure_file(sqlite3_file *file, sqlite3_int64 *length) {
    struct addition *added = addition(file);
    int code = added->base->xFileSize(file, length);
    if (code == SQLITE_OK && added->length >= 0 && *length > added->length) *length = added->length;
    return code;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *found) {
    sqlite3_vfs *base = ((struct vfs *) vfs)->base;
    int code = base->xOpen(base, name, file, flags, found);
    if (!file->pMethods) return code;
    struct addition *added = addition(file);
    added->base = file->pMethods;
    added->own = *file->pMethods;
    added->own.xRead = read_file;
    added->own.xFileSize = measure_file;
    added->log_length = -1;
    added->length = flags & SQLITE_OPEN_WAL ? addition(sqlite3_database_file_object(name))->log_length : -1;
    file->pMethods = &added->own;
    return code;
}

static int add(struct vfs *vfs, const char *name, const char *base) {
    vfs->base = sqlite3_vfs_find(base);
    if (!vfs->base) return SQLITE_NOTFOUND;
    vfs->own = *vfs->base;
    vfs->own.pNext = NULL;
    vfs->own.zName = name;
    vfs->own.xOpen = open_file;
    base_size = (vfs->base->szOsFile + 15) & ~15;
    vfs->own.szOsFile = base_size + (int) sizeof(struct addition);
    return sqlite3_vfs_register(&vfs->own, 0);
}

int cstore_register(void) {
    static struct vfs locking, lockless;
    int code = add(&locking, CSTORE_LOCKING, "unix-excl");
    return code == SQLITE_OK ? add(&lockless, CSTORE_LOCKLESS, "unix-none") : code;
}

int cstore_end_log(sqlite3 *database, sqlite3_int64 length) {
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code == SQLITE_OK) addition(file)->log_length = length;
    return code;
}
