import IdentityCore

// An event as the columns of a row of `event`, and back.
extension Event {
  /// `audience` is `sharing`, `vendor:VENDOR`, `app:APP` or `group:GROUP`. `attributes` holds each attribute's name and then its value,
  /// a NUL behind each of both: no text has one in it.
  var columns: [Value] {
    let bytes = attributes.flatMap { [$0.name, $0.value] }.terminated
    return [
      .integer(sequence), .text("\(time)"), .text(topic.rawValue), .text(name.bytes), .text(audience.storedForm),
      .blob(bytes),
    ]
  }

  init?(columns: [Value]) {
    guard let sequence = columns[0].number, let time = columns[1].time, let topic = columns[2].named(Topic.self),
      let name = columns[3].asText, let audience = columns[4].asText.flatMap({ Audience(storedForm: $0.bytes) }),
      case .blob(let bytes) = columns[5], let attributes = Self.attributes(in: bytes)
    else { return nil }
    self.init(sequence: sequence, time: time, topic: topic, name: name, attributes: attributes, audience: audience)
  }

  private static func attributes(in bytes: [UInt8]) -> [Attribute]? {
    guard let texts = [Text](terminated: bytes), texts.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: texts.count, by: 2).map { Attribute(texts[$0], texts[$0 + 1]) }
  }
}

extension Audience {
  fileprivate var storedForm: [UInt8] {
    switch self {
    case .sharing: Array("sharing".utf8)
    case .vendor(let vendor): Array("vendor:".utf8) + vendor.bytes
    case .app(let app): Array("app:".utf8) + app.bytes
    case .group(let group): Array("group:".utf8) + group.bytes
    }
  }

  fileprivate init?(storedForm bytes: [UInt8]) {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      guard bytes.elementsEqual("sharing".utf8) else { return nil }
      self = .sharing
      return
    }
    let name = Text(trusted: Array(bytes[(colon + 1)...]))
    switch String(decoding: bytes[..<colon], as: UTF8.self) {
    case "vendor": self = .vendor(name)
    case "app": self = .app(name)
    case "group": self = .group(name)
    default: return nil
    }
  }
}

extension [Text] {
  /// Each with a NUL behind it: no text has one in it.
  var terminated: [UInt8] { flatMap { $0.bytes + [0] } }

  /// Reads that form; nil where the last one has no end.
  init?(terminated bytes: [UInt8]) {
    guard bytes.last ?? 0 == 0 else { return nil }
    self = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast().map { Text(trusted: [UInt8]($0)) }
  }
}
