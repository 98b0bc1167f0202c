# A writer that takes SQLite at its word: a write-ahead log, every commit synced, and after an error it goes on.
#
# plain-writer.py DATABASE: for each number that it reads it commits a row, and answers "ok" or "failed".
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
    # In one piece.
    sys.stdout.write(answer + "\n")
    sys.stdout.flush()
