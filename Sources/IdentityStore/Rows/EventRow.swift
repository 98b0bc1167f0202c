import IdentityCore
import IdentityWire
import LinuxSystem

extension EventBatch {
  /// Encodes events; nil if there are none, or if their numbers do not ascend by one.
  init?(_ events: ArraySlice<EventLine>) {
    guard let first = events.first?.sequence, let last = events.last?.sequence, Self.isWithoutGap(events) else {
      return nil
    }
    var lines: [UInt8] = []
    let count = events.reduce(0) { $0 + $1.audience.storedLength + 1 + $1.bytes.count }
    lines.append(addingCapacity: count) { bytes in
      for event in events {
        event.audience.append(to: &bytes)
        bytes.append(0)
        unsafe event.bytes.withUnsafeBytes { unsafe bytes.append($0) }
      }
    }
    self.init(first...last, lines: lines)
  }

  /// Returns whether there are events, and their numbers ascend by one.
  fileprivate static func isWithoutGap(_ events: ArraySlice<EventLine>) -> Bool {
    events.first?.sequence ?? 0 > 0 && zip(events, events.dropFirst()).allSatisfy { $0.sequence + 1 == $1.sequence }
  }

  /// Returns the numbers of the events of a row for a message.
  static func label(_ columns: [Value]) -> String {
    guard columns.count > 1, let last = columns[0].number, let first = columns[1].number else { return "?" }
    return first == last ? "\(last)" : "\(first) to \(last)"
  }
}

/// Decodes the events of batches, one after the other.
struct EventDecoder {
  /// The audience decoded last, and its stored form. Following events with the same audience share its storage.
  private var known: Audience?
  private var knownForm: ArraySlice<UInt8> = []

  /// Returns the events of a batch; nil if this program would not write such a batch.
  mutating func lines(of batch: EventBatch) -> [EventLine]? {
    guard let lines = lines(in: batch.lines[...]), lines.first?.sequence == batch.first,
      lines.last?.sequence == batch.last, EventBatch.isWithoutGap(lines[...])
    else { return nil }
    return lines
  }

  private mutating func lines(in bytes: ArraySlice<UInt8>) -> [EventLine]? {
    var lines: [EventLine] = []
    let start = bytes.startIndex
    var offset = 0
    while let end = bytes.span.firstIndex(of: 0, from: offset) {
      guard let newline = bytes.span.firstIndex(of: UInt8(ascii: "\n"), from: end),
        let audience = audience(bytes[(start + offset)..<(start + end)]),
        let line = EventLine(bytes[(start + end + 1)...(start + newline)], for: audience)
      else { return nil }
      lines.append(line)
      offset = newline + 1
    }
    return offset == bytes.count ? lines : nil
  }

  private mutating func audience(_ bytes: ArraySlice<UInt8>) -> Audience? {
    if !knownForm.elementsEqual(bytes) {
      known = Audience(storedForm: bytes)
      knownForm = bytes
    }
    return known
  }
}

/// An event in schema version 1, which had a row for each. The table had the digest of ``EventBatch``.
struct EarlierEvent: StoredRecord {
  static let table = RecordTable("event", of: Self.self, digestIndex: EventBatch.table.digestIndex, .events)

  private var sequence: Int64 = 0
  private var time = Timestamp(milliseconds: 0)
  private var topic = Topic.device
  private var name = Text("")
  private var audience = Text("")
  /// The name and the value of each attribute, each terminated by a NUL, which no text contains.
  private var attributes: [UInt8] = []

  init() {}

  mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("sequence", &sequence)
    fields.field("time", &time)
    fields.field("topic", &topic)
    fields.field("name", &name)
    fields.field("audience", &audience)
    fields.field("attributes", &attributes)
  }

  /// The event; nil if no program would have written such a row.
  var line: EventLine? {
    var texts: [Text] = []
    guard let audience = Audience(storedForm: audience.bytes[...]), texts.replace(terminated: attributes[...]),
      texts.count.isMultiple(of: 2)
    else { return nil }
    let attributes = stride(from: 0, to: texts.count, by: 2).map { Event.Attribute(texts[$0], texts[$0 + 1]) }
    return EventLine(
      Event(sequence: sequence, time: time, topic: topic, name: name, attributes: attributes, audience: audience))
  }
}

extension Topic: StoredWord {}

// The stored form of an audience: `sharing`, `vendor:VENDOR`, `app:APP` or `group:GROUP`.
extension Audience {
  private var parts: (kind: Text, name: Text?) {
    switch self {
    case .sharing: (.sharing, nil)
    case .vendor(let vendor): (.vendor, vendor)
    case .app(let app): (.app, app)
    case .group(let group): (.group, group)
    }
  }

  fileprivate var storedLength: Int {
    let (kind, name) = parts
    return kind.bytes.count + (name?.bytes.count ?? 0)
  }

  fileprivate func append(to bytes: inout OutputSpan<UInt8>) {
    let (kind, name) = parts
    bytes.append(kind)
    if let name { bytes.append(name) }
  }

  fileprivate init?(storedForm bytes: ArraySlice<UInt8>) {
    func name(behind mark: Text) -> Text? {
      bytes.span.begins(with: mark.bytes.span) ? Text(trusted: Array(bytes.dropFirst(mark.bytes.count))) : nil
    }
    if let app = name(behind: .app) {
      self = .app(app)
    } else if let vendor = name(behind: .vendor) {
      self = .vendor(vendor)
    } else if let group = name(behind: .group) {
      self = .group(group)
    } else if bytes.elementsEqual(Text.sharing.bytes) {
      self = .sharing
    } else {
      return nil
    }
  }
}

// The words that identify an audience, each allocated once.
extension Text {
  fileprivate static let sharing: Text = "sharing"
  fileprivate static let vendor: Text = "vendor:"
  fileprivate static let app: Text = "app:"
  fileprivate static let group: Text = "group:"
}

extension [Text] {
  /// Decodes texts that are each terminated by a NUL, in place of the present ones. A text that is equal to the one in
  /// its place keeps that one's storage.
  ///
  /// - Returns: false if the last terminator is missing.
  mutating func replace(terminated bytes: ArraySlice<UInt8>) -> Bool {
    var texts = 0
    var offset = 0
    while let end = bytes.span.firstIndex(of: 0, from: offset) {
      let text = bytes.span.extracting(offset..<end)
      if texts == count {
        append(Text(trusted: [UInt8](text)))
      } else {
        let known = self[texts].bytes
        if !text.isSame(as: known.span) { self[texts] = Text(trusted: [UInt8](text)) }
      }
      texts += 1
      offset = end + 1
    }
    removeLast(count - texts)
    return offset == bytes.count
  }
}

/// The statement that removes the oldest batches of events, many at once.
final class OldEventStatement: Sendable {
  private let removal: Statement

  init(_ database: borrowing Database) {
    removal = database.prepare("DELETE FROM \(EventBatch.table.name) WHERE last < ?1")
  }

  /// Removes the batches whose last event is before a sequence number.
  ///
  /// - Returns: the number of removed batches.
  func remove(before sequence: Int64) throws(DatabaseError) -> Int64 {
    try removal.run([.integer(sequence)])
    return removal.changes
  }
}
