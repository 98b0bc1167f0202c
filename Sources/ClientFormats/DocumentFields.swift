/// The fields of a document that a program wrote: names with texts as values, wherever they are in the document.
///
/// Only as much of each format is read as finds such fields. A document with an error yields the fields that it shows, and
/// an escaped character in a value is no part of a UUID.
enum DocumentFields {
  typealias Found = (name: [UInt8], value: [UInt8])

  /// Returns the members of objects in JSON whose values are strings (RFC 8259).
  static func ofJSON(_ text: ArraySlice<UInt8>) -> [Found] {
    var found: [Found] = []
    var scanner = Scanner(rest: text)
    // The last string, and whether a colon followed.
    var name: [UInt8]?
    while let byte = scanner.next() {
      switch byte {
      case UInt8(ascii: "\""):
        let string = scanner.string(until: byte)
        if let known = name, scanner.isAfterColon {
          found.append((known, string))
          name = nil
        } else {
          name = string
        }
        scanner.isAfterColon = false
      case UInt8(ascii: ":"): scanner.isAfterColon = true
      case _ where byte.isWhiteSpace: break
      default:
        name = nil
        scanner.isAfterColon = false
      }
    }
    return found
  }

  /// Returns the values of preferences in XML: `<string name="NAME">VALUE</string>` of Android,
  /// `<entry key="NAME" value="VALUE"/>` of Java, and `<key>NAME</key><string>VALUE</string>` of property lists.
  static func ofXML(_ text: ArraySlice<UInt8>) -> [Found] {
    var found: [Found] = []
    var scanner = Scanner(rest: text)
    var key: [UInt8]?
    while scanner.skip(through: UInt8(ascii: "<")) {
      let tag = scanner.take(until: UInt8(ascii: ">"))
      let content = Array(scanner.upTo(UInt8(ascii: "<")).trimmed)
      let attributes = attributes(of: tag)
      let name = attributes["name"] ?? attributes["key"]
      if let name {
        found.append((name, attributes["value"] ?? content))
      } else if tag.starts(with: "key".utf8) {
        key = content
      } else if tag.starts(with: "string".utf8), let known = key {
        found.append((known, content))
        key = nil
      }
    }
    return found
  }

  private static func attributes(of tag: ArraySlice<UInt8>) -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    var scanner = Scanner(rest: tag)
    while true {
      let name = scanner.take(until: UInt8(ascii: "=")).split(separator: UInt8(ascii: " ")).last ?? []
      guard let quote = scanner.next(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return found }
      found[String(decoding: name, as: UTF8.self)] = Array(scanner.take(until: quote))
    }
  }

  private struct Scanner {
    var rest: ArraySlice<UInt8>
    var isAfterColon = false

    mutating func next() -> UInt8? { rest.popFirst() }

    /// Returns the bytes before the next `end`, which is skipped.
    mutating func take(until end: UInt8) -> ArraySlice<UInt8> {
      let taken = upTo(end)
      rest = rest.dropFirst(taken.count + 1)
      return taken
    }

    /// Skips the next `end` and all before it. Returns false if there is none.
    mutating func skip(through end: UInt8) -> Bool {
      guard rest.contains(end) else { return false }
      _ = take(until: end)
      return true
    }

    func upTo(_ end: UInt8) -> ArraySlice<UInt8> { rest.prefix { $0 != end } }

    /// Returns the rest of a string, whose escapes are left as they are.
    mutating func string(until quote: UInt8) -> [UInt8] {
      var bytes: [UInt8] = []
      while let byte = next(), byte != quote {
        bytes.append(byte)
        if byte == UInt8(ascii: "\\"), let escaped = next() { bytes.append(escaped) }
      }
      return bytes
    }
  }
}
