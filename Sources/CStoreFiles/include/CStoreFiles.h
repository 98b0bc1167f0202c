#pragma once
#include <sqlite3.h>

// Ways to open the files of a store, as VFSes of SQLite (sqlite.org/vfs.html). Each has the functions of one that SQLite
// includes, with two differences:
//
// - A read that the disk refuses is an I/O error. SQLite's own VFSes report EIO as a damaged file.
// - The log of a connection can end before its end, so that the connection reads the store without its last commit.

/// The name of the VFS that locks the files for this process ("unix-excl").
#define CSTORE_LOCKING "identityd"
/// The name of the VFS that takes no locks, for a read-only file system ("unix-none").
#define CSTORE_LOCKLESS "identityd-none"

/// Adds both VFSes. Must be called once, before their first use.
///
/// Returns a result code of SQLite.
int cstore_register(void);

/// Sets the number of bytes of the log that a connection reads. Must be called before the connection reads its file.
///
/// Returns a result code of SQLite.
int cstore_end_log(sqlite3 *database, sqlite3_int64 length);
