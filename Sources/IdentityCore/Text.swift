/// Text as the protocol has it: valid UTF-8 without NUL, compared byte by byte.
///
/// Swift's own strings compare by canonical equivalence (`"\u{212A}" == "K"`), which would let one name pass for
/// another where rights are decided; bytes do not.
package struct Text: Hashable, Sendable {
  /// The UTF-8 bytes.
  package let bytes: [UInt8]

  /// Takes bytes that are known to be valid: they passed the parser, or were written by this program.
  package init(trusted bytes: [UInt8]) { self.bytes = bytes }

  /// Takes bytes of unknown making; nil unless they are valid UTF-8 without NUL.
  package init?(validating bytes: [UInt8]) {
    guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else { return nil }
    self.bytes = bytes
  }

  /// Takes a string of this program's own.
  package init(_ string: String) { bytes = Array(string.utf8) }

  /// Whether there is nothing in it.
  package var isEmpty: Bool { bytes.isEmpty }

  /// Eight bytes at a time: an array hashes one after the other.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(bytes.count)
    var word: UInt64 = 0
    for (place, byte) in bytes.enumerated() {
      word = word << 8 | UInt64(byte)
      if place & 7 == 7 { hasher.combine(word) }
    }
    if bytes.count & 7 != 0 { hasher.combine(word) }
  }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
  /// Makes text from a literal.
  package init(stringLiteral value: String) { self.init(value) }

  /// The same text as a Swift string.
  package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension Text: Comparable {
  /// Orders by bytes, as SQLite's BINARY collation does.
  package static func < (left: Text, right: Text) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }
}
