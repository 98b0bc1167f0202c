#pragma once
#include <sqlite3.h>

// Wrappers for variadic functions, which Swift cannot call.

/// Turns off memory statistics, which take a lock for each allocation. Must be called before the
/// first connection is opened.
static inline int csqlite_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Keeps sqlite3_close() from running a checkpoint, because the caller decides when to checkpoint.
static inline int csqlite_no_checkpoint_on_close(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) 0);
}

/// Refuses SQL that can damage the database file behind SQLite's back (writable_schema and similar features).
static inline int csqlite_defensive(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) 0);
}

/// Makes page caches allocate each page when needed, instead of twenty pages at first use. Applies to all connections.
/// Must be called before the first connection is opened.
static inline int csqlite_no_spare_pages(void) { return sqlite3_config(SQLITE_CONFIG_PAGECACHE, (void *) 0, 0, 0); }
