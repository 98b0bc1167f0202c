# Writer that relies on SQLite alone: it uses a write-ahead log, syncs every commit, and continues after an error.
#
# Usage: plain-writer.py DATABASE. Commits a row for each number it reads, and answers "ok" or "failed".
import sqlite3
import sys

database = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "CREATE TABLE row (number INTEGER PRIMARY KEY, content BLOB)",
):
    database.execute(statement)
for line in sys.stdin:
    try:
        database.execute("INSERT INTO row VALUES (?, ?)", (int(line), bytes(300)))
        answer = "ok"
    except sqlite3.Error:
        answer = "failed"
    # A single write, because the test reads the answer with a single read.
    sys.stdout.write(answer + "\n")
    sys.stdout.flush()
