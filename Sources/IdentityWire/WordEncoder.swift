import IdentityCore

/// An encoder of words: bare if possible, otherwise as JSON strings (identityd-protocol(7), section Grammar).
package enum WordEncoder {
  /// Appends a positional word.
  package static func append(word bytes: [UInt8], to output: inout [UInt8]) {
    append(bytes, bare: isBareWord(bytes), to: &output)
  }

  /// Returns whether a positional word can be written bare.
  static func isBareWord(_ bytes: [UInt8]) -> Bool { isBare(bytes) && !looksLikeAttribute(bytes) }

  /// Appends the value of an attribute, to follow `name=`.
  package static func append(value bytes: [UInt8], to output: inout [UInt8]) {
    append(bytes, bare: isBare(bytes), to: &output)
  }

  /// Appends a JSON string that contains no raw control character, for any bytes.
  package static func append(quoted bytes: [UInt8], to output: inout [UInt8]) {
    append(String(decoding: bytes, as: UTF8.self), to: &output, escaping: isControl)
  }

  private static func append(
    _ text: String, to output: inout [UInt8], escaping isEscaped: (Unicode.Scalar) -> Bool
  ) {
    output.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": output.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: scalar)])
      case "\n": output.append(contentsOf: "\\n".utf8)
      case "\r": output.append(contentsOf: "\\r".utf8)
      case "\t": output.append(contentsOf: "\\t".utf8)
      case _ where isEscaped(scalar): output.append(contentsOf: escape(of: scalar).utf8)
      default: output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    output.append(UInt8(ascii: "\""))
  }

  private static func append(_ bytes: [UInt8], bare: Bool, to output: inout [UInt8]) {
    if bare { output.append(contentsOf: bytes) } else { append(quoted: bytes, to: &output) }
  }

  /// Returns whether a value can be written bare.
  static func isBare(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty else { return false }
    let bytes = bytes.span
    var start = 0
    while start + 8 <= bytes.count, isPlain(bytes.word(at: start)) { start += 8 }
    for index in start..<bytes.count {
      let byte = bytes[index]
      // Most bytes are in these two ranges, which contain only bytes that can be bare.
      if byte &- 0x23 < 0x5c - 0x23 || byte &- 0x5d < 0x7f - 0x5d { continue }
      if byte <= 0x20 || byte == 0x7f || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return false }
      // U+0080 to U+009F are control characters too.
      if byte == 0xc2, index + 1 < bytes.count, bytes[index + 1] < 0xa0 { return false }
    }
    return true
  }

  /// Returns whether each byte of a word is a printable character of ASCII that can be bare. The tests for one byte below a
  /// limit, and for one byte that is zero, are in "Bit Twiddling Hacks" (graphics.stanford.edu/~seander/bithacks.html).
  private static func isPlain(_ word: UInt64) -> Bool {
    let ones: UInt64 = 0x0101_0101_0101_0101
    func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }
    let below = (word &- ones &* 0x21) & ~word
    let excluded = zeros(word ^ ones &* 0x22) | zeros(word ^ ones &* 0x5c) | zeros(word ^ ones &* 0x7f)
    return (word | below | excluded) & (ones &* 0x80) == 0
  }

  /// Returns whether a bare word would be read as `name=value`.
  package static func looksLikeAttribute(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first, isLetter(first), let end = bytes.firstIndex(where: { !isNameByte($0) }) else {
      return false
    }
    return bytes[end] == UInt8(ascii: "=")
  }

  /// Returns whether a character is a control character, which could move a terminal's cursor.
  package static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
  }

  /// Returns the JSON escape of a control character or a hidden character. Control and hidden characters are all below
  /// U+10000, so four digits are enough.
  package static func escape(of scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16)
    return "\\u\(String(repeating: "0", count: max(0, 4 - digits.utf8.count)))\(digits)"
  }
}

// MARK: - Text for people

extension WordEncoder {
  /// Returns whether a character is invisible and either changes how a terminal shows the text around
  /// it or hides in that text.
  ///
  /// Hidden characters are control characters, line and paragraph separators (U+2028, U+2029), bidirectional controls
  /// (UAX #9), and spaces and joiners without width. U+200C and U+200D are not hidden: Persian, Indic scripts and emoji
  /// need them for spelling, and they neither move a cursor nor change an order.
  package static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x061c, 0x200b, 0x200e, 0x200f, 0x2028...0x202e, 0x2060...0x206f, 0xfeff: true
    default: isControl(scalar)
    }
  }

  /// Returns a text as a JSON string that contains no hidden character.
  package static func quoted(_ text: String) -> String {
    var bytes: [UInt8] = []
    append(text, to: &bytes, escaping: isHidden)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends a text, which is valid UTF-8, as a JSON string that contains no hidden character.
  package static func appendQuoted(_ text: borrowing Span<UInt8>, to bytes: inout [UInt8]) {
    var isPlain = true
    for index in text.indices where isPlain {
      let byte = text[index]
      isPlain = (0x20...0x7e).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
    guard isPlain else {
      var copy: [UInt8] = []
      for index in text.indices { copy.append(text[index]) }
      return append(String(decoding: copy, as: UTF8.self), to: &bytes, escaping: isHidden)
    }
    bytes.append(UInt8(ascii: "\""))
    for index in text.indices { bytes.append(text[index]) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Returns a text with each hidden character escaped and everything else unchanged, for use in sentences.
  ///
  /// The function is idempotent.
  package static func visible(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isHidden) else { return text }
    var shown = ""
    for scalar in text.unicodeScalars {
      if isHidden(scalar) { shown += escape(of: scalar) } else { shown.unicodeScalars.append(scalar) }
    }
    return shown
  }
}
