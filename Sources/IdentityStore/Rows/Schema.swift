import IdentityCore

/// The tables of a store.
enum Schema {
  /// The `user_version` that this program writes: the version of the latest column or table.
  static let version = records.flatMap { [$0.table.since] + $0.table.columns.map(\.since) }.max() ?? earliest
  /// The earliest version that this program can read. It migrates the store to the present one.
  static let earliest: Int64 = 1

  /// The application ID that marks the file as a store of identityd (sqlite.org/fileformat.html): "idnt" in ASCII.
  static let applicationID: Int64 = 0x6964_6e74
  /// The application ID of stores that were written before the first release. No single flipped bit leads to it.
  static let unreleasedID: Int64 = 0x4964_4401

  /// The types of all records, each at the index of its table's digest.
  static let records: [any StoredRecord.Type] = [
    StoredSettings.self, AppRecord.self, NumberedIdentifier.self, DeviceRecord.self, EventBatch.self, WrappedKey.self,
    Item.self, ReleaseRecord.self, ReportRecord.self, ClaimRecord.self, TokenRecord.self, AppUseRecord.self,
    FormerMachine.self, FleetRecord.self, LastBackup.self, DayRecord.self, FleetStanding.self,
    RecoveryRecord.self, LeftDevice.self, StoredProofKey.self,
  ]

  /// The tables of all records, each at the index that is its ``Table/digestIndex``.
  static let tables = records.map { Table($0.table) }

  /// Returns the table that a type of records has in a schema version.
  static func table<Record: StoredRecord>(of type: Record.Type, in version: Int64) -> Table {
    version < Self.version ? Table(Record.table, in: version) : tables[Record.table.digestIndex]
  }

  /// The SQL that creates the tables, which must not exist yet.
  ///
  /// Times are RFC 3339, and identifiers are lower case with hyphens, so that people can read them in `sqlite3`.
  /// `revision` is the number of the transaction that wrote the row, and `proof` the proof of the row
  /// (``Authenticator``). `store.digest` contains ``TableDigests``.
  ///
  /// `secret.sealed` is encrypted with the data key.
  static var creation: String {
    """
    CREATE TABLE store (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      id TEXT NOT NULL,
      created TEXT NOT NULL,
      revision INTEGER NOT NULL,
      digest BLOB NOT NULL,
      last_event INTEGER NOT NULL,
      epoch TEXT NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE secret (
      n INTEGER PRIMARY KEY,
      edition TEXT NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;
    \(tables.map(\.creation).joined())
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """
  }
}

/// The SQL of a table whose first column is the key of a row, and whose last column is the proof of the row.
final class Table: Sendable {
  let name: String
  /// All columns except the proof.
  let columns: [String]
  /// The number of leading columns that do not change during the life of a row.
  let lasting: Int
  /// The index of the table's digest in the row of `store`; ``noIndex`` for `store` itself, which has no digest.
  let digestIndex: Int
  /// The kinds of records that are in doubt if rows of the table are not verified.
  let kinds: Records
  /// The encoded name of the table, which precedes the values of each row; see ``RowBytes``.
  let head: [UInt8]
  /// The SQL that creates the table and its indexes.
  let creation: String

  /// The table `store`. Its only row contains the digests of all other tables.
  static let store = Table()

  /// Derives the SQL of the table of a record.
  ///
  /// - Parameter version: the schema version. Columns of later versions are left out.
  init(_ table: RecordTable, in version: Int64 = Schema.version) {
    let present = table.columns.filter { $0.since <= version }
    name = table.name
    columns = present.map(\.name) + ["revision"]
    lasting = table.lasting
    digestIndex = table.digestIndex
    kinds = table.kinds
    head = RowBytes(behind: name).bytes
    let key = table.columns[0]
    let words = present.dropFirst().map { "\($0.name) \($0.type)\($0.isOptional ? "" : " NOT NULL")" }
    let all = ["\(key.name) \(key.type) PRIMARY KEY\(key.name == "only" ? " CHECK (only = 1)" : "")"] + words
    // A key that is no number would have an index beside the rows.
    let options = key.kind == .integer ? "STRICT" : "STRICT, WITHOUT ROWID"
    let body = (all + ["revision INTEGER NOT NULL", "proof BLOB NOT NULL"]).joined(separator: ",\n  ")
    creation =
      "CREATE TABLE \(name) (\n  \(body)\n) \(options);\n"
      + table.indexes.map { "CREATE UNIQUE INDEX \($0);\n" }.joined()
  }

  private init() {
    name = "store"
    columns = ["only", "id", "created", "revision", "digest", "last_event", "epoch"]
    lasting = 3
    digestIndex = Self.noIndex
    kinds = .all
    head = RowBytes(behind: name).bytes
    creation = ""
  }

  /// An index beyond the last digest, which traps if it is used.
  private static let noIndex = Int.max

  /// The SQL that inserts a row: its columns and its proof.
  var insertion: String {
    let parameters = (1...(columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
    return "INSERT INTO \(name) (\(columns.joined(separator: ", ")), proof) VALUES (\(parameters))"
  }

  /// The SQL that replaces the row with a key.
  ///
  /// It does not name the lasting columns: SQLite rewrites an index if one of its columns is assigned, even to
  /// the same value.
  var replacement: String {
    let assignments = (columns + ["proof"]).enumerated().dropFirst(lasting).map { "\($1) = ?\($0 + 1)" }
    return "UPDATE \(name) SET \(assignments.joined(separator: ", ")) WHERE \(columns[0]) = ?1"
  }

  /// The SQL that selects rows with their proofs.
  var selecting: String { "SELECT \(columns.joined(separator: ", ")), proof FROM \(name)" }

  /// The SQL that selects every row with its proof, in the order of the keys.
  var selection: String { "\(selecting) ORDER BY 1" }

  /// The SQL that selects the row with a key, and its proof.
  var finding: String { "\(selecting) WHERE \(columns[0]) = ?1" }

  /// The SQL that deletes the row with a key.
  var removal: String { "DELETE FROM \(name) WHERE \(columns[0]) = ?1" }
}

extension RecordColumn {
  /// The type of the column in SQL.
  fileprivate var type: String {
    switch kind {
    case .integer: "INTEGER"
    case .text: "TEXT"
    case .blob, .null, .table: "BLOB"
    }
  }
}
