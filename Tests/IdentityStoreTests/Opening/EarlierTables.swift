import IdentityCore

@testable import IdentityStore

/// The tables that earlier schema versions had in another form.
enum EarlierTables {
  /// Changes of each kind, with each form of the columns.
  static let changes = sample(apps: 4) + life + [[.appInstalled("com.example.contained", containedApp)]]

  private static let creation = """
    DROP TABLE day;
    DROP TABLE fleet_standing;
    DROP TABLE app;
    CREATE TABLE app (
      id TEXT PRIMARY KEY, vendor TEXT, unit TEXT, user TEXT, access_groups TEXT, device_identifier TEXT,
      version_order TEXT, installed TEXT NOT NULL, revision INTEGER NOT NULL, proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    DROP TABLE fleet;
    CREATE TABLE fleet (
      device TEXT PRIMARY KEY, generation INTEGER NOT NULL, counter INTEGER NOT NULL, gone INTEGER NOT NULL,
      suspect INTEGER NOT NULL, message TEXT, runs TEXT, revision INTEGER NOT NULL, proof BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    """

  /// Writes the tables that an earlier version had with fewer columns. Leaves tables that were divided since.
  static func write(
    _ version: Int64, _ ledger: inout Ledger, _ database: borrowing Database, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let tables = Schema.records.map { $0.table }.filter { $0.since <= version }
    ledger.row.digests.keepTables(1 + (tables.map(\.digestIndex).max() ?? 0))
    for type in Schema.records where version >= 3 || type.table.name != AppRecord.table.name {
      try write(type, in: version, &ledger, database, authenticator)
    }
  }

  private static func write<Record: StoredRecord>(
    _ type: Record.Type, in version: Int64, _ ledger: inout Ledger, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let table = Record.table
    guard table.since <= version, table.columns.contains(where: { $0.since > version }) else { return }
    var records: [Record] = []
    var found = ProvenRows()
    var reader = RowReader()
    try found.read(type, through: &reader, database, authenticator) { record, _ in
      records.append(record)
      return true
    }
    try database.execute("DROP TABLE \(table.name); \(Table(table, in: version).creation)")
    var digest = Digest()
    for var record in records {
      var fields = EarlierFields(version: version, row: RowBytes(behind: table.name))
      record.visit(&fields)
      digest.add(try insert(&fields.row, table.name, ledger, database, authenticator))
    }
    ledger.row.digests[table.digestIndex] = digest
  }

  /// Writes the tables that differ in version 2, and drops those that it lacks.
  static func write(
    _ registry: Registry, _ ledger: inout Ledger, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    try database.execute(creation)
    var (apps, fleet) = (Digest(), Digest())
    for (id, app) in registry.apps {
      apps.add(try insert(columns(of: id, app), "app", ledger, database, authenticator))
    }
    for record in registry.records.all {
      fleet.add(try insert(columns(of: record), "fleet", ledger, database, authenticator))
    }
    if let standing = registry.fleet {
      fleet.add(try insert(columns(of: standing), "fleet", ledger, database, authenticator))
    }
    if let day = registry.day {
      let values: [Value] = [.text([]), .integer(day.day), .integer(day.date.number)]
      let proof = try insert(values, "app_use", ledger, database, authenticator)
      ledger.row.digests.add(proof, at: AppUseRecord.table.digestIndex)
    }
    ledger.row.digests[AppRecord.table.digestIndex] = apps
    ledger.row.digests[FleetRecord.table.digestIndex] = fleet
  }

  /// Writes the table of events of version 1, and drops the tables that version 1 lacks.
  static func write(
    _ events: [Event], _ ledger: inout Ledger, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    try database.execute(
      """
      CREATE TABLE event (
        sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, topic TEXT NOT NULL, name TEXT NOT NULL,
        audience TEXT NOT NULL, attributes BLOB NOT NULL, revision INTEGER NOT NULL, proof BLOB NOT NULL
      ) STRICT;
      DROP TABLE event_batch; DROP TABLE former_machine; DROP TABLE fleet; DROP TABLE backup;
      """)
    var digest = Digest()
    for event in events { digest.add(try insert(event.columns, "event", ledger, database, authenticator)) }
    ledger.row.digests[EventBatch.table.digestIndex] = digest
  }

  /// Returns the columns of an app until version 2.
  static func columns(of id: Text, _ app: App) -> [Value] {
    guard let manifest = app.manifest else {
      return [.text(id.bytes)] + [Value](repeating: .null, count: 6) + [.text("\(app.installed)")]
    }
    let users: Value =
      switch manifest.users {
      case .unnamed: .null
      case .named(let names): .text(names.map(\.description).joined(separator: " "))
      case .everyone: .text("*")
      }
    let unit: Value =
      if let container = manifest.container {
        .text("container/\(container)")
      } else {
        manifest.unit.map { .text($0.bytes) } ?? .null
      }
    let grants = manifest.accessGroups.map(\.description) + manifest.rights.map { "right/\($0.rawValue)" }
    return [
      .text(id.bytes), .text(manifest.vendor.bytes), unit, users, .text(grants.joined(separator: " ")),
      .text(manifest.deviceBinding.rawValue), .text(manifest.versionOrder.rawValue), .text("\(app.installed)"),
    ]
  }

  /// Returns the columns of a message of the fleet in version 2.
  static func columns(of record: FleetRecord) -> [Value] {
    [
      Value(record.device), .integer(Int64(record.generation)), .integer(Int64(bitPattern: record.counter)),
      .integer(record.isGone ? 1 : 0), .integer(record.isSuspect ? 1 : 0), .text(record.message.bytes), .null,
    ]
  }

  /// Returns the columns of the standing of this device in version 2.
  static func columns(of standing: FleetStanding) -> [Value] {
    [
      .text([]), .integer(Int64(standing.generation)), .integer(standing.counter), .integer(0), .integer(0), .null,
      .text(standing.runs.map(\.description).joined(separator: " ")),
    ]
  }

  private static func insert(
    _ values: [Value], _ table: String, _ ledger: Ledger, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> Proof {
    var row = RowBytes(behind: table)
    values.append(to: &row)
    return try insert(&row, table, ledger, database, authenticator)
  }

  private static func insert(
    _ row: inout RowBytes, _ table: String, _ ledger: Ledger, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> Proof {
    row.append(ledger.row.revision)
    let proof = authenticator.proof(of: row)
    row.append(proof)
    let places = (1...row.values.count).map { "?\($0)" }.joined(separator: ", ")
    try database.prepare("INSERT INTO \(table) VALUES (\(places))").run(row)
    return proof
  }
}

/// Appends the fields that an earlier version had.
private struct EarlierFields: FieldVisitor {
  static let isReading = false

  let version: Int64
  var row: RowBytes

  mutating func visit<Field: FieldValue>(_ name: StaticString, _ value: inout Field, _ role: FieldRole, since: Int64) {
    if since <= version { row.append(value.content) }
  }

  mutating func visit<Field: FieldValue>(_ name: StaticString, _ value: inout Field?, _ role: FieldRole, since: Int64) {
    if since <= version { row.append(value?.content ?? .null) }
  }

  mutating func visitSealed(_ name: StaticString, _ texts: inout [Text]) { row.append(.sealed(texts)) }

  mutating func refuse() {}
}

extension Event {
  /// The columns of a row of schema version 1.
  fileprivate var columns: [Value] {
    let audience: String =
      switch self.audience {
      case .sharing: "sharing"
      case .vendor(let vendor): "vendor:\(vendor)"
      case .app(let app): "app:\(app)"
      case .group(let group): "group:\(group)"
      }
    return [
      .integer(sequence), .text("\(time)"), .text(topic.rawValue), .text(name.bytes), .text(audience),
      .blob(attributes.flatMap { [$0.name, $0.value] }.terminated),
    ]
  }
}
