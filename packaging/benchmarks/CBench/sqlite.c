#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>

#include "CBench.h"
#include "common.h"

static const char set_up[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS token (key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;";
static const char change[] =
    "INSERT INTO token VALUES ('one', ?) ON CONFLICT DO UPDATE SET value = excluded.value";

int bench_sqlite_run(const char *path, uint64_t limit_nanoseconds, struct bench_slice *slice) {
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    *slice = (struct bench_slice){0};
    int result = sqlite3_open(path, &database);
    if (result == SQLITE_OK) result = sqlite3_exec(database, set_up, NULL, NULL, NULL);
    if (result == SQLITE_OK) result = sqlite3_prepare_v2(database, change, sizeof change, &statement, NULL);
    uint64_t started = now();
    while (result == SQLITE_OK && slice->nanoseconds < limit_nanoseconds) {
        char value[33];
        // SQLite writes nothing if a value does not change.
        snprintf(value, sizeof value, "%032llu", (unsigned long long)now());
        result = sqlite3_bind_text(statement, 1, value, sizeof value - 1, SQLITE_TRANSIENT);
        if (result == SQLITE_OK) result = sqlite3_step(statement);
        if (result == SQLITE_DONE) result = sqlite3_reset(statement);
        slice->requests++;
        slice->nanoseconds = now() - started;
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return result == SQLITE_OK ? 0 : EIO;
}
