import IdentityCore

/// An escape sequence of a JSON string (RFC 8259, section 7). A surrogate pair counts as one sequence.
struct JSONEscape {
  /// The length of the sequence in the line, in bytes.
  let length: Int
  /// The character that the sequence stands for. Never NUL.
  private let scalar: Unicode.Scalar

  /// Reads the escape sequence whose backslash is at `index`.
  init(_ line: borrowing Span<UInt8>, at index: Int) throws(SyntaxFault) {
    guard index + 1 < line.count else { throw .brokenQuote }
    switch line[index + 1] {
    case UInt8(ascii: "u"): (scalar, length) = try Self.unicode(line, at: index)
    case let byte:
      guard let plain = Self.short(byte) else { throw .invalidEscape }
      (scalar, length) = (plain, 2)
    }
  }

  /// The character in UTF-8.
  var encoded: UTF8.EncodedScalar { UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter }

  private static func short(_ byte: UInt8) -> Unicode.Scalar? {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): Unicode.Scalar(byte)
    case UInt8(ascii: "b"): "\u{8}"
    case UInt8(ascii: "f"): "\u{c}"
    case UInt8(ascii: "n"): "\n"
    case UInt8(ascii: "r"): "\r"
    case UInt8(ascii: "t"): "\t"
    default: nil
    }
  }

  private static func unicode(_ line: borrowing Span<UInt8>, at index: Int) throws(SyntaxFault) -> (Unicode.Scalar, Int)
  {
    let first = try codeUnit(line, at: index)
    if let scalar = Unicode.Scalar(first) {
      // NUL is refused in every value, because too many programs take NUL for the end of a string
      // (identityd-protocol(7), section Grammar).
      guard scalar.value != 0 else { throw .invalidEscape }
      return (scalar, 6)
    }
    guard first < 0xdc00 else { throw .invalidEscape }
    let second = try codeUnit(line, at: index + 6)
    guard second >= 0xdc00, second <= 0xdfff,
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw .invalidEscape }
    return (scalar, 12)
  }

  private static func codeUnit(_ line: borrowing Span<UInt8>, at index: Int) throws(SyntaxFault) -> UInt32 {
    guard index + 6 <= line.count, line[index] == UInt8(ascii: "\\"), line[index + 1] == UInt8(ascii: "u") else {
      throw .invalidEscape
    }
    var unit: UInt32 = 0
    for position in (index + 2)..<(index + 6) {
      guard let digit = hexadecimalDigit(line[position]) else { throw .invalidEscape }
      unit = unit << 4 | UInt32(digit)
    }
    return unit
  }
}
