#pragma once
#include <sqlite3.h>

// Swift cannot call variadic functions.

/// Counts no memory: each allocation would take a lock for it. Only before the first connection is opened.
static inline int csqlite_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Keeps sqlite3_close() from writing the log back: the one who closes says when to do that.
static inline int csqlite_no_checkpoint_on_close(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) 0);
}

/// Refuses SQL that could damage the file behind SQLite's back (writable_schema and friends).
static inline int csqlite_defensive(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) 0);
}

/// Has each page of a cache allocated when it is needed, and not twenty with the first. For all connections, before the
/// first.
static inline int csqlite_no_spare_pages(void) { return sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *) 0, 0, 0); }
