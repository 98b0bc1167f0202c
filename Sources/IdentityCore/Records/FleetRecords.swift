extension FleetRecord: StoredRecord {
  package static let table = RecordTable("fleet", of: Self.self, digestIndex: 13, .fleet, since: 3)

  package init() { self.init(device: .zero, generation: 0, counter: 0, isGone: false, message: .empty) }

  /// A counter has all 64 bits, and the column the same bits. The message is in Base64, and `gone` marks a tombstone.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    var (generation, counter) = (Int64(generation), Int64(bitPattern: counter))
    fields.field("device", &device)
    fields.field("generation", &generation)
    fields.field("counter", &counter)
    fields.field("gone", &isGone)
    fields.field("suspect", &isSuspect)
    fields.field("message", &message)
    guard fields.isReading else { return }
    guard let generation = UInt32(exactly: generation) else { return fields.refuse() }
    (self.generation, self.counter) = (generation, UInt64(bitPattern: counter))
  }
}

extension FleetStanding: StoredRecord {
  package static let table = RecordTable("fleet_standing", of: Self.self, digestIndex: 16, .fleet, since: 3)

  /// The standing of a device that has no fleet yet.
  package init() { self.init(counter: 0) }

  /// The runs have the form of UUIDs, newest first.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    var generation = Int64(generation)
    var runs = Text(joining: runs.map { Text($0) })
    fields.only()
    fields.field("generation", &generation)
    fields.field("counter", &counter)
    fields.field("runs", &runs)
    fields.field("original", &original, since: 4)
    guard fields.isReading else { return }
    guard let generation = UInt32(exactly: generation), let found = Self.runs(in: runs), counter >= 0 else {
      return fields.refuse()
    }
    (self.generation, self.runs) = (generation, found)
  }

  /// Returns the runs in the words of a column; nil if this program would not write such words.
  fileprivate static func runs(in words: Text) -> [UUID]? {
    let runs = words.words.map { UUID($0) }
    guard runs.count <= Bound.fleetRuns, runs.allSatisfy({ $0 != nil }) else { return nil }
    return runs.compactMap(\.self)
  }
}

/// A row of `fleet` in schema version 2, and a record of the fleet in a backup of format 3: the standing of this device, or
/// the message about another one. It is only read.
package struct EarlierFleetRow: StoredRecord {
  package static let table = RecordTable(
    "fleet", of: Self.self, digestIndex: FleetRecord.table.digestIndex, .fleet, since: 2)

  /// The standing of this device, whose row has an empty `device`; nil in another row.
  package private(set) var standing: FleetStanding?
  /// The message about another device; nil in another row.
  package private(set) var record: FleetRecord?

  package init() {}

  /// A counter of a message has all 64 bits, and the column the same bits. `runs` has the form of UUIDs, newest first.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    var device = Text.empty
    var (generation, counter) = (Int64(0), Int64(0))
    var (isGone, isSuspect) = (false, false)
    var (message, runs): (Text?, Text?) = (nil, nil)
    fields.field("device", &device)
    fields.field("generation", &generation)
    fields.field("counter", &counter)
    fields.field("gone", &isGone)
    fields.field("suspect", &isSuspect)
    fields.field("message", &message)
    fields.field("runs", &runs)
    guard fields.isReading else { return }
    (standing, record) = (nil, nil)
    guard let generation = UInt32(exactly: generation) else { return fields.refuse() }
    if let runs, message == nil, device.isEmpty, counter >= 0 {
      guard let runs = FleetStanding.runs(in: runs) else { return fields.refuse() }
      standing = FleetStanding(counter: counter, generation: generation, runs: runs)
    } else if let message, runs == nil, let device = UUID(device) {
      record = FleetRecord(
        device: device, generation: generation, counter: UInt64(bitPattern: counter), isGone: isGone,
        isSuspect: isSuspect, message: message)
    } else {
      fields.refuse()
    }
  }
}
