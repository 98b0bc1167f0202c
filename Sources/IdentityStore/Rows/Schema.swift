import IdentityCore

/// The tables of a store.
enum Schema {
  /// The `user_version` that this program writes.
  static let version: Int64 = 2

  /// The application ID that marks the file as a store of identityd (sqlite.org/fileformat.html): "idnt" in ASCII.
  static let applicationID: Int64 = 0x6964_6e74
  /// The application ID of stores that were written before the first release. No single flipped bit leads to it.
  static let unreleasedID: Int64 = 0x4964_4401

  /// The migrations from earlier versions.
  static let migrations = [
    Migration(
      version: 1, missing: [Table.formerMachine.name, Table.fleet.name, Table.backup.name], events: .earlierEvent,
      creation: "DROP TABLE \(Table.earlierEvent.name);" + eventCreation + formerMachineCreation + fleetCreation
        + backupCreation)
  ]

  /// The SQL that creates the tables, which must not exist yet.
  ///
  /// Times are RFC 3339, and identifiers are lower case with hyphens, so that people can read them in `sqlite3`.
  /// `revision` is the number of the transaction that wrote the row, and `proof` the proof of the row
  /// (``Authenticator``). `store.digest` contains ``TableDigests``.
  ///
  /// - `app.vendor` is NULL for an app without a manifest.
  /// - `identifier_in_force` has an empty BLOB in place of NULL, because no text equals a BLOB.
  /// - `item.description` and `secret.sealed` are encrypted with the data key. `data_key.sealed` is the data key,
  ///   wrapped in a master key. `edition` identifies the secret that belongs to the current state of an item.
  /// - `app` of a version table is NULL for the system itself. Only the system has a distribution.
  /// - `token.token` is stored as the app gave it: a reader of the file can send with the token only if the provider
  ///   allows it.
  /// - `event_batch` has the events of a transaction: `lines` has the audience of each event, a NUL, and its line.
  /// - `former_machine` records the machines that the daemon ran on before. `last_identifier` is the number of the newest
  ///   identifier from that time.
  /// - `fleet` has the message about each device, in Base64. `gone` marks a tombstone. An empty `device` is this device,
  ///   once the fleet was used: its counter, its highest generation and its runs, in the form of UUIDs, newest first.
  /// - `backup` has one row, once a client has read a backup to its end. `made` is the time of the last such backup.
  /// - `app_use` records when each app without a manifest was last used: on which day of the daemon, and on which
  ///   calendar day. An empty `id` is the daemon itself.
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
    CREATE TABLE setting (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      account TEXT,
      machine_recorded INTEGER NOT NULL,
      machine TEXT,
      hardware TEXT,
      suspicion TEXT,
      suspected TEXT,
      spent_machine TEXT,
      sealed INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE app (
      id TEXT PRIMARY KEY,
      vendor TEXT,
      unit TEXT,
      user TEXT,
      access_groups TEXT,
      device_identifier TEXT,
      version_order TEXT,
      installed TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE identifier (
      n INTEGER PRIMARY KEY,
      level TEXT NOT NULL,
      app TEXT,
      vendor TEXT,
      value TEXT NOT NULL,
      origin TEXT NOT NULL,
      created TEXT NOT NULL,
      cause TEXT NOT NULL,
      author TEXT,
      ended TEXT,
      end_cause TEXT,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX identifier_in_force
      ON identifier (level, coalesce(app, x''), coalesce(vendor, x'')) WHERE ended IS NULL;
    CREATE TABLE device (
      n INTEGER PRIMARY KEY,
      value TEXT NOT NULL,
      name TEXT,
      seen TEXT,
      added TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE data_key (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      master TEXT NOT NULL,
      source TEXT NOT NULL,
      created TEXT NOT NULL,
      sealed BLOB NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE item (
      n INTEGER PRIMARY KEY,
      access_group TEXT NOT NULL,
      service TEXT NOT NULL,
      account TEXT NOT NULL,
      owner TEXT NOT NULL,
      edition TEXT NOT NULL,
      this_device_only INTEGER NOT NULL,
      ends_with_installation INTEGER NOT NULL,
      secret_length INTEGER NOT NULL,
      created TEXT NOT NULL,
      modified TEXT NOT NULL,
      description BLOB NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX item_key ON item (access_group, service, account);
    CREATE TABLE secret (
      n INTEGER PRIMARY KEY,
      edition TEXT NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;
    CREATE TABLE installed_release (
      n INTEGER PRIMARY KEY,
      app TEXT,
      distribution TEXT,
      version TEXT NOT NULL,
      build TEXT,
      installed TEXT NOT NULL,
      last TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE version_report (
      n INTEGER PRIMARY KEY,
      app TEXT,
      session TEXT NOT NULL,
      state TEXT NOT NULL,
      distribution TEXT,
      version TEXT NOT NULL,
      build TEXT,
      previous_distribution TEXT,
      previous_version TEXT,
      previous_build TEXT,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE version_claim (
      n INTEGER PRIMARY KEY,
      app TEXT,
      version TEXT NOT NULL,
      name TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE TABLE token (
      n INTEGER PRIMARY KEY,
      app TEXT NOT NULL,
      provider TEXT NOT NULL,
      token TEXT NOT NULL,
      environment TEXT,
      topic TEXT,
      device TEXT NOT NULL,
      valid INTEGER NOT NULL,
      created TEXT NOT NULL,
      changed TEXT NOT NULL,
      confirmed TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX token_key ON token (app, provider);
    CREATE TABLE app_use (
      id TEXT PRIMARY KEY,
      day INTEGER NOT NULL,
      date INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    \(eventCreation)
    \(formerMachineCreation)
    \(fleetCreation)
    \(backupCreation)
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """
  }

  private static let eventCreation = """
    CREATE TABLE event_batch (
      last INTEGER PRIMARY KEY,
      first INTEGER NOT NULL,
      lines BLOB NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    """

  private static let formerMachineCreation = """
    CREATE TABLE former_machine (
      n INTEGER PRIMARY KEY,
      machine TEXT,
      hardware TEXT,
      last_identifier INTEGER NOT NULL,
      cause TEXT NOT NULL,
      left TEXT NOT NULL,
      acknowledged INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    """

  private static let fleetCreation = """
    CREATE TABLE fleet (
      device TEXT PRIMARY KEY,
      generation INTEGER NOT NULL,
      counter INTEGER NOT NULL,
      gone INTEGER NOT NULL,
      suspect INTEGER NOT NULL,
      message TEXT,
      runs TEXT,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    """

  private static let backupCreation = """
    CREATE TABLE backup (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      made TEXT NOT NULL,
      revision INTEGER NOT NULL,
      proof BLOB NOT NULL
    ) STRICT;
    """
}

/// A table whose first column is the key of a row, and whose last column is the proof of the row.
struct Table: Sendable {
  let name: String
  /// All columns except the proof.
  let columns: [String]
  /// The number of leading columns that do not change during the life of a row.
  let lasting: Int
  /// The index of the table's digest in the row of `store`; ``noPlace`` for `store` itself, which has no digest.
  let place: Int
  /// The kinds of records that are in doubt if rows of the table are not verified.
  let records: Records
  /// The encoded name of the table, which precedes the values of each row; see ``RowBytes``.
  let head: [UInt8]

  init(name: String, columns: [String], lasting: Int = 1, place: Int, of records: Records) {
    self.name = name
    self.columns = columns
    self.lasting = lasting
    self.place = place
    self.records = records
    head = RowBytes(behind: name).bytes
  }

  /// An index beyond the last digest, which traps if it is used.
  static let noPlace = 15

  static let setting = Table(
    name: "setting",
    columns: [
      "only", "account", "machine_recorded", "machine", "hardware", "suspicion", "suspected", "spent_machine", "sealed",
      "revision",
    ], place: 0, of: .settings)
  static let app = Table(
    name: "app",
    columns: [
      "id", "vendor", "unit", "user", "access_groups", "device_identifier", "version_order", "installed", "revision",
    ], place: 1, of: .apps)
  static let identifier = Table(
    name: "identifier",
    columns: [
      "n", "level", "app", "vendor", "value", "origin", "created", "cause", "author", "ended", "end_cause", "revision",
    ], place: 2, of: .identifiers)
  static let device = Table(
    name: "device", columns: ["n", "value", "name", "seen", "added", "revision"], place: 3, of: .devices)
  static let event = Table(name: "event_batch", columns: ["last", "first", "lines", "revision"], place: 4, of: .events)
  /// The events of schema version 1, one in each row. They have the digest of ``event``.
  static let earlierEvent = Table(
    name: "event", columns: ["sequence", "time", "topic", "name", "audience", "attributes", "revision"], place: 4,
    of: .events)

  static let dataKey = Table(
    name: "data_key", columns: ["only", "master", "source", "created", "sealed", "revision"], place: 5, of: .items)
  static let item = Table(
    name: "item",
    columns: [
      "n", "access_group", "service", "account", "owner", "edition", "this_device_only", "ends_with_installation",
      "secret_length", "created", "modified", "description", "revision",
    ], lasting: 4, place: 6, of: .items)

  static let release = Table(
    name: "installed_release",
    columns: ["n", "app", "distribution", "version", "build", "installed", "last", "revision"], lasting: 2,
    place: 7, of: .versions)
  static let report = Table(
    name: "version_report",
    columns: [
      "n", "app", "session", "state", "distribution", "version", "build", "previous_distribution", "previous_version",
      "previous_build", "revision",
    ], place: 8, of: .versions)
  static let claim = Table(
    name: "version_claim", columns: ["n", "app", "version", "name", "revision"], place: 9, of: .versions)
  static let token = Table(
    name: "token",
    columns: [
      "n", "app", "provider", "token", "environment", "topic", "device", "valid", "created", "changed", "confirmed",
      "revision",
    ], lasting: 3, place: 10, of: .tokens)

  static let use = Table(name: "app_use", columns: ["id", "day", "date", "revision"], place: 11, of: .uses)

  static let formerMachine = Table(
    name: "former_machine",
    columns: ["n", "machine", "hardware", "last_identifier", "cause", "left", "acknowledged", "revision"], lasting: 6,
    place: 12, of: .settings)

  static let fleet = Table(
    name: "fleet",
    columns: ["device", "generation", "counter", "gone", "suspect", "message", "runs", "revision"], place: 13,
    of: .fleet)

  static let backup = Table(name: "backup", columns: ["only", "made", "revision"], place: 14, of: .backup)

  /// The table `store`. Its only row contains the digests of all other tables.
  static let store = Table(
    name: "store", columns: ["only", "id", "created", "revision", "digest", "last_event", "epoch"],
    lasting: 3, place: noPlace, of: .all)

  /// All tables except `store`, each at the index that is its ``place``.
  static let proven = [
    setting, app, identifier, device, event, dataKey, item, release, report, claim, token, use,
    formerMachine, fleet, backup,
  ]

  /// The SQL that inserts a row: its columns and its proof.
  var insertion: String {
    let places = (1...(columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
    return "INSERT INTO \(name) (\(columns.joined(separator: ", ")), proof) VALUES (\(places))"
  }

  /// The SQL that replaces the row with a key.
  ///
  /// It does not name the lasting columns: SQLite rewrites an index if one of its columns is assigned, even to
  /// the same value.
  var replacement: String {
    let places = (columns + ["proof"]).enumerated().dropFirst(lasting).map { "\($1) = ?\($0 + 1)" }
    return "UPDATE \(name) SET \(places.joined(separator: ", ")) WHERE \(columns[0]) = ?1"
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
