/// The tables, and how a store of an earlier version becomes one of this.
enum Schema {
  /// The `user_version` that this program writes.
  static let version: Int64 = 1

  /// Marks the file as an identityd store (sqlite.org/fileformat.html, "application ID"): "IdD" and a 1.
  static let applicationID: Int64 = 0x4964_4401

  /// What leads from each version to the next: the first from nothing to version 1.
  ///
  /// Times are RFC 3339, identifiers lower case with hyphens, so that `sqlite3` shows them to people. `revision` is that
  /// of the transaction that wrote the row, and `proof` what ``Authenticator`` makes of it.
  static let migrations: [String] = [
    """
    CREATE TABLE store (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      id TEXT NOT NULL,
      created TEXT NOT NULL,
      revision INTEGER NOT NULL,
      row_count INTEGER NOT NULL,
      digest BLOB NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE app (
      id TEXT PRIMARY KEY,
      vendor TEXT NOT NULL,
      installed TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE identifier (
      level TEXT NOT NULL,
      app TEXT NOT NULL,
      value TEXT NOT NULL,
      created TEXT NOT NULL,
      origin TEXT,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL,
      PRIMARY KEY (level, app)
    ) STRICT, WITHOUT ROWID;
    """
  ]

  /// Brings a database to this program's version, each step in a transaction of its own.
  static func migrate(_ database: borrowing Database, from found: Int64) throws(DatabaseError) {
    for step in migrations.indices.dropFirst(Int(found)) {
      try database.execute(
        """
        BEGIN IMMEDIATE; \(migrations[step]) PRAGMA application_id = \(applicationID);
        PRAGMA user_version = \(step + 1); COMMIT
        """)
    }
  }
}

/// A table whose every row carries its proof in the last column.
struct Table {
  let name: String
  /// All columns but the proof.
  let columns: [String]

  static let app = Table(name: "app", columns: ["id", "vendor", "installed", "revision"])
  static let identifier = Table(
    name: "identifier", columns: ["level", "app", "value", "created", "origin", "revision"])
  /// The tables that the digest covers, in the order they are loaded: an app before its identifiers.
  static let all = [app, identifier]

  /// The one row of `store`, which holds the digest of all others.
  static let store = Table(name: "store", columns: ["only", "id", "created", "revision", "row_count", "digest"])

  var insertion: String {
    let places = (1...(columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
    return "INSERT INTO \(name) (\(columns.joined(separator: ", ")), proof) VALUES (\(places))"
  }

  var selection: String { "SELECT \(columns.joined(separator: ", ")), proof FROM \(name)" }
}
