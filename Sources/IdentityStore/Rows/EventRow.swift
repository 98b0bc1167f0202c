import IdentityCore

// Conversion between an event and the columns of a row of `event`.
extension Event: StoredRow, ReadRow {
  var key: Value { .integer(sequence) }

  /// Appends the columns.
  ///
  /// `audience` is `sharing`, `vendor:VENDOR`, `app:APP` or `group:GROUP`. `attributes` holds name and value of each
  /// attribute, each terminated by a NUL, which no text contains.
  func append(to row: inout RowBytes) {
    row.append(sequence)
    row.append(time)
    row.append(topic.text)
    row.append(name)
    row.append(audience)
    let count = attributes.reduce(0) { $0 + $1.name.bytes.count + $1.value.bytes.count + 2 }
    row.append(.blob, count: count) { bytes in
      for attribute in attributes {
        bytes.append(attribute.name)
        bytes.append(0)
        bytes.append(attribute.value)
        bytes.append(0)
      }
    }
  }

  init?(reading row: inout RowReader) {
    guard let sequence = row.number(), let time = row.time(), let topic = row.word(Topic.self), let name = row.text(),
      let audience = row.bytes(.text).flatMap({ Audience(storedForm: $0) }),
      let attributes = row.bytes(.blob).flatMap({ Self.attributes(in: $0) })
    else { return nil }
    self.init(sequence: sequence, time: time, topic: topic, name: name, attributes: attributes, audience: audience)
  }

  private static func attributes(in bytes: ArraySlice<UInt8>) -> [Attribute]? {
    guard let texts = [Text](terminated: bytes), texts.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: texts.count, by: 2).map { Attribute(texts[$0], texts[$0 + 1]) }
  }
}

extension RowBytes {
  fileprivate mutating func append(_ audience: Audience) {
    switch audience {
    case .sharing: append(Text.sharing)
    case .vendor(let vendor): append(.vendor, vendor)
    case .app(let app): append(.app, app)
    case .group(let group): append(.group, group)
    }
  }

  private mutating func append(_ kind: Text, _ name: Text) {
    append(.text, count: kind.bytes.count + name.bytes.count) { bytes in
      bytes.append(kind)
      bytes.append(name)
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

extension Audience {
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

  /// Decodes texts that are each terminated by a NUL; nil if the last terminator is missing.
  init?(terminated bytes: ArraySlice<UInt8>) {
    guard bytes.last ?? 0 == 0 else { return nil }
    self = []
    var start = bytes.startIndex
    while start < bytes.endIndex, let end = bytes[start...].firstIndex(of: 0) {
      append(Text(trusted: [UInt8](bytes[start..<end])))
      start = end + 1
    }
  }
}

/// The statement that removes the oldest events, many at once.
final class OldEventStatement: Sendable {
  private let removal: Statement

  init(_ database: borrowing Database) {
    removal = database.prepare("DELETE FROM \(Table.event.name) WHERE \(Table.event.columns[0]) < ?1")
  }

  /// Removes the events before a sequence number.
  ///
  /// - Returns: the number of removed events.
  func remove(before sequence: Int64) throws(DatabaseError) -> Int64 {
    try removal.run([.integer(sequence)])
    return removal.changes
  }
}
