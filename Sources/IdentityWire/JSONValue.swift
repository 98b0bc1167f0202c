import IdentityCore

/// A value in JSON that another program wrote (RFC 8259).
///
/// Two readers must never see different values in one text. So a name that repeats in an object is refused, and a number
/// keeps its digits.
package enum JSONValue: Equatable, Sendable {
  /// A literal: `null`, `true` or `false`.
  case null
  case boolean(Bool)
  /// A number, as it was written.
  case number(String)
  /// A string without NUL.
  case string(String)
  case array([JSONValue])
  /// An object, with its members in their order.
  case object([Member])

  /// A member of an object.
  package struct Member: Equatable, Sendable {
    package let name: String
    package let value: JSONValue
  }

  /// The number of arrays and objects that may contain each other.
  package static let depth = 8

  /// Reads a text that is one value; nil if it is not JSON, has a name twice in an object, or is nested too deeply.
  package init?(parsing bytes: [UInt8]) {
    var reader = JSONReader(bytes)
    guard String(validating: bytes, as: UTF8.self) != nil, let value = reader.value(within: Self.depth), reader.isAtEnd
    else { return nil }
    self = value
  }

  /// The value of a member; nil if this is no object, or has no such member.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The string that this is; nil for any other value.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// The whole number that this is; nil for any other value, and for numbers beyond 64 bits.
  package var integer: Int64? { if case .number(let digits) = self { Int64(digits) } else { nil } }

  /// The value in JSON, without white space.
  package var json: String {
    switch self {
    case .null: "null"
    case .boolean(let value): value ? "true" : "false"
    case .number(let digits): digits
    case .string(let text): WordEncoder.quoted(text)
    case .array(let values): JSONObject.array(values.map(\.json))
    case .object(let members):
      "{\(members.map { "\(WordEncoder.quoted($0.name)):\($0.value.json)" }.joined(separator: ","))}"
    }
  }
}

/// Reads JSON from the front of bytes.
private struct JSONReader {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Whether only white space is left.
  var isAtEnd: Bool {
    mutating get {
      skipSpace()
      return offset == bytes.count
    }
  }

  private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  private mutating func skipSpace() { while let byte = next, " \t\n\r".utf8.contains(byte) { offset += 1 } }

  /// Skips white space and a text. Returns false if another one follows.
  private mutating func take(_ text: String) -> Bool {
    skipSpace()
    guard bytes[offset...].starts(with: text.utf8) else { return false }
    offset += text.utf8.count
    return true
  }

  mutating func value(within depth: Int) -> JSONValue? {
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return depth > 0 ? object(within: depth - 1) : nil
    case UInt8(ascii: "["): return depth > 0 ? array(within: depth - 1) : nil
    case UInt8(ascii: "\""): return string().map(JSONValue.string)
    case UInt8(ascii: "n"): return take("null") ? .null : nil
    case UInt8(ascii: "t"): return take("true") ? .boolean(true) : nil
    case UInt8(ascii: "f"): return take("false") ? .boolean(false) : nil
    default: return number()
    }
  }

  private mutating func object(within depth: Int) -> JSONValue? {
    guard take("{") else { return nil }
    var members: [JSONValue.Member] = []
    var names: Set<Text> = []
    if take("}") { return .object(members) }
    repeat {
      skipSpace()
      guard let name = string(), names.insert(Text(name)).inserted, take(":"), let value = value(within: depth) else {
        return nil
      }
      members.append(.init(name: name, value: value))
    } while take(",")
    return take("}") ? .object(members) : nil
  }

  private mutating func array(within depth: Int) -> JSONValue? {
    guard take("[") else { return nil }
    var values: [JSONValue] = []
    if take("]") { return .array(values) }
    repeat {
      guard let value = value(within: depth) else { return nil }
      values.append(value)
    } while take(",")
    return take("]") ? .array(values) : nil
  }

  private mutating func number() -> JSONValue? {
    let start = offset
    while let byte = next, "+-.0123456789Ee".utf8.contains(byte) { offset += 1 }
    let digits = String(decoding: bytes[start..<offset], as: UTF8.self)
    return Verb.Field.Kind.isNumber(digits) ? .number(digits) : nil
  }

  private mutating func string() -> String? {
    guard next == UInt8(ascii: "\"") else { return nil }
    offset += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        offset += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let escape = try? JSONEscape(bytes.span, at: offset) else { return nil }
        text += escape.encoded
        offset += escape.length
      case 0..<0x20: return nil
      default:
        text.append(byte)
        offset += 1
      }
    }
    return nil
  }
}
