/// A row of the fleet: the message about another device, or the standing of this device.
package struct FleetRow: StoredRecord {
  package static let table = RecordTable("fleet", of: Self.self, place: 13, .fleet, since: 2)

  /// The content of a row.
  package enum Content: Equatable, Sendable {
    /// The standing of this device, whose row has an empty `device`.
    case standing(FleetStanding)
    /// The message about another device.
    case record(FleetRecord)
  }

  /// The content.
  package var content: Content

  /// Creates the row of this device.
  package init(_ standing: FleetStanding) { content = .standing(standing) }

  /// Creates the row of another device.
  package init(_ record: FleetRecord) { content = .record(record) }

  package init() { self.init(FleetStanding()) }

  /// A counter of a message has all 64 bits, and the column the same bits. `runs` has the form of UUIDs, newest first.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    var device = Text.empty
    var (generation, counter) = (Int64(0), Int64(0))
    var (isGone, isSuspect) = (false, false)
    var (message, runs): (Text?, Text?) = (nil, nil)
    switch content {
    case .standing(let standing):
      (generation, counter) = (Int64(standing.generation), standing.counter)
      runs = Text(trusted: Array(standing.runs.map { Text($0).bytes }.joined(separator: [UInt8(ascii: " ")])))
    case .record(let record):
      device = Text(record.device)
      (generation, counter) = (Int64(record.generation), Int64(bitPattern: record.counter))
      (isGone, isSuspect, message) = (record.isGone, record.isSuspect, record.message)
    }
    fields.field("device", &device)
    fields.field("generation", &generation)
    fields.field("counter", &counter)
    fields.field("gone", &isGone)
    fields.field("suspect", &isSuspect)
    fields.field("message", &message)
    fields.field("runs", &runs)
    guard fields.isReading else { return }
    guard let generation = UInt32(exactly: generation) else { return fields.refuse() }
    if let runs, message == nil, device.isEmpty, counter >= 0 {
      let words = runs.bytes.split(separator: UInt8(ascii: " ")).map { UUID(Text(trusted: Array($0))) }
      guard words.count <= Bound.fleetRuns, words.allSatisfy({ $0 != nil }) else { return fields.refuse() }
      content = .standing(FleetStanding(counter: counter, generation: generation, runs: words.compactMap(\.self)))
    } else if let message, runs == nil, let device = UUID(device) {
      content = .record(
        FleetRecord(
          device: device, generation: generation, counter: UInt64(bitPattern: counter), isGone: isGone,
          isSuspect: isSuspect, message: message))
    } else {
      fields.refuse()
    }
  }
}
