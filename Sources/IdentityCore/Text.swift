/// Text of the protocol: valid UTF-8 without NUL, compared byte by byte.
///
/// Swift strings compare by canonical equivalence (`"\u{212A}" == "K"`), so one name could pass for another in an
/// access check. A comparison of bytes has no such equivalence.
package struct Text: Hashable, Sendable {
  /// The UTF-8 bytes.
  package let bytes: [UInt8]

  /// Creates text from bytes that are known to be valid: the parser checked them, or this program wrote them.
  package init(trusted bytes: [UInt8]) { self.bytes = bytes }

  /// Creates text from unchecked bytes. Returns nil unless they are valid UTF-8 without NUL.
  package init?(validating bytes: [UInt8]) {
    guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else { return nil }
    self.bytes = bytes
  }

  package init(_ string: String) { bytes = Array(string.utf8) }

  /// The text without bytes.
  static let empty = Text(trusted: [])

  /// Whether the text has no bytes.
  package var isEmpty: Bool { bytes.isEmpty }

  /// Hashes eight bytes at a time, whereas an array hashes its elements one by one.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(bytes.count)
    var word: UInt64 = 0
    for (index, byte) in bytes.enumerated() {
      word = word << 8 | UInt64(byte)
      if index & 7 == 7 { hasher.combine(word) }
    }
    if bytes.count & 7 != 0 { hasher.combine(word) }
  }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
  package init(stringLiteral value: String) { self.init(value) }

  /// The text as a Swift string.
  package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension Text: Comparable {
  /// Orders by bytes, like the BINARY collation of SQLite.
  package static func < (left: Text, right: Text) -> Bool {
    // By index, because ordered tables compare their keys with this function.
    let (left, right) = (left.bytes.span, right.bytes.span)
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return left[index] < right[index]
    }
    return left.count < right.count
  }
}
