import IdentityCore
import IdentityWire
import LinuxSystem

/// Consecutive events of one transaction, which share a row of `event_batch` and its proof.
struct EventBatch: StoredRow {
  /// The maximum number of events in a batch. It bounds the number of events behind a damaged byte that are lost, too.
  static let most = 256

  /// The events, at least one.
  let lines: ArraySlice<EventLine>
  /// The sequence number of the first event.
  let first: Int64
  /// The sequence number of the last event.
  let last: Int64

  init(_ lines: ArraySlice<EventLine>) {
    self.lines = lines
    first = lines.first?.sequence ?? 0
    last = lines.last?.sequence ?? 0
  }

  /// Whether there are events, and their numbers ascend by one.
  var isWithoutGap: Bool {
    first > 0 && zip(lines, lines.dropFirst()).allSatisfy { $0.sequence + 1 == $1.sequence }
  }

  var key: Value { .integer(last) }

  /// Appends the columns.
  func append(to row: inout RowBytes) {
    row.append(last)
    row.append(first)
    let count = lines.reduce(0) { $0 + $1.audience.storedLength + 1 + $1.bytes.count }
    row.append(.blob, count: count) { bytes in
      for line in lines {
        line.audience.append(to: &bytes)
        bytes.append(0)
        unsafe line.bytes.withUnsafeBytes { unsafe bytes.append($0) }
      }
    }
  }

  /// Returns the numbers of the events of a row for a message.
  static func label(_ columns: [Value]) -> String {
    guard columns.count > 1, let last = columns[0].number, let first = columns[1].number else { return "?" }
    return first == last ? "\(last)" : "\(first) to \(last)"
  }
}

/// Decodes the rows of a table of events.
struct EventDecoder {
  private let isEarlier: Bool
  /// The audience decoded last. Following events with the same audience share its storage.
  private var known: (bytes: ArraySlice<UInt8>, audience: Audience)?

  /// Creates a decoder for a table: that of this schema version, or the earlier one.
  init(_ table: Table) { isEarlier = table.name == Table.earlierEvent.name }

  /// Decodes a row; nil if this program would not write such a row.
  mutating func batch(in row: borrowing RowBytes) -> EventBatch? {
    var columns = RowReader(row)
    if isEarlier { return Event(earlier: &columns).map { EventBatch([EventLine($0)]) } }
    guard let last = columns.number(), let first = columns.number(), let bytes = columns.bytes(.blob),
      let lines = lines(in: bytes)
    else { return nil }
    let batch = EventBatch(lines[...])
    return batch.first == first && batch.last == last && batch.isWithoutGap ? batch : nil
  }

  private mutating func lines(in bytes: ArraySlice<UInt8>) -> [EventLine]? {
    var lines: [EventLine] = []
    let start = bytes.startIndex
    var place = 0
    while let end = bytes.span.firstIndex(of: 0, from: place) {
      guard let newline = bytes.span.firstIndex(of: UInt8(ascii: "\n"), from: end),
        let audience = audience(bytes[(start + place)..<(start + end)]),
        let line = EventLine(bytes[(start + end + 1)...(start + newline)], for: audience)
      else { return nil }
      lines.append(line)
      place = newline + 1
    }
    return place == bytes.count ? lines : nil
  }

  private mutating func audience(_ bytes: ArraySlice<UInt8>) -> Audience? {
    if let known, known.bytes.elementsEqual(bytes) { return known.audience }
    guard let audience = Audience(storedForm: bytes) else { return nil }
    known = (bytes, audience)
    return audience
  }
}

extension Event {
  /// Decodes the columns of a row of schema version 1.
  ///
  /// `attributes` holds name and value of each attribute, each terminated by a NUL, which no text contains.
  fileprivate init?(earlier row: inout RowReader) {
    guard let sequence = row.number(), let time = row.time(), let topic = row.word(Topic.self), let name = row.text(),
      let audience = row.bytes(.text).flatMap({ Audience(storedForm: $0) }), let bytes = row.bytes(.blob)
    else { return nil }
    var texts: [Text] = []
    guard texts.replace(terminated: bytes), texts.count.isMultiple(of: 2) else { return nil }
    let attributes = stride(from: 0, to: texts.count, by: 2).map { Attribute(texts[$0], texts[$0 + 1]) }
    self.init(sequence: sequence, time: time, topic: topic, name: name, attributes: attributes, audience: audience)
  }
}

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
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      guard bytes.elementsEqual("sharing".utf8) else { return nil }
      self = .sharing
      return
    }
    let name = Text(trusted: Array(bytes[(colon + 1)...]))
    switch String(decoding: bytes.prefix(upTo: colon), as: UTF8.self) {
    case "vendor": self = .vendor(name)
    case "app": self = .app(name)
    case "group": self = .group(name)
    default: return nil
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

extension [UInt8] {
  /// Appends a text and a terminating NUL.
  fileprivate mutating func append(terminated text: Text) {
    append(contentsOf: text.bytes)
    append(0)
  }
}

extension [Text] {
  /// The texts as bytes, each terminated by a NUL. No text contains a NUL.
  var terminated: [UInt8] {
    var bytes: [UInt8] = []
    for text in self { bytes.append(terminated: text) }
    return bytes
  }

  /// Decodes texts that are each terminated by a NUL, in place of the present ones. A text that is equal to the one in
  /// its place keeps that one's storage.
  ///
  /// - Returns: false if the last terminator is missing.
  mutating func replace(terminated bytes: ArraySlice<UInt8>) -> Bool {
    var texts = 0
    var place = 0
    while let end = bytes.span.firstIndex(of: 0, from: place) {
      let text = bytes[(bytes.startIndex + place)..<(bytes.startIndex + end)]
      if texts == count {
        append(Text(trusted: [UInt8](text)))
      } else if !text.isSame(as: self[texts].bytes) {
        self[texts] = Text(trusted: [UInt8](text))
      }
      texts += 1
      place = end + 1
    }
    removeLast(count - texts)
    return place == bytes.count
  }
}

/// The statement that removes the oldest batches of events, many at once.
final class OldEventStatement: Sendable {
  private let removal: Statement

  init(_ database: borrowing Database) {
    removal = database.prepare("DELETE FROM \(Table.event.name) WHERE \(Table.event.columns[0]) < ?1")
  }

  /// Removes the batches whose last event is before a sequence number.
  ///
  /// - Returns: the number of removed batches.
  func remove(before sequence: Int64) throws(DatabaseError) -> Int64 {
    try removal.run([.integer(sequence)])
    return removal.changes
  }
}
