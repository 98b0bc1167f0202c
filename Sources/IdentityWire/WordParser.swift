package import IdentityCore

/// A parser that splits a line into words without copying any bytes (identityd-protocol(7), section Grammar).
///
/// One parser can serve any number of connections in turn. The table of words keeps its memory, so parsing allocates
/// nothing once the table has grown.
package struct WordParser: Sendable {
  /// A word of a line, as ranges of the line's bytes.
  package struct Word: Equatable, Sendable {
    /// The attribute's name. Empty for a positional word.
    package let name: Range<Int>
    /// The value, without surrounding quotes.
    package let value: Range<Int>
    /// Whether the value is a JSON string with an escape, which has to be decoded.
    package let isEscaped: Bool

    /// Whether the word is an attribute, `name=value`.
    package var isAttribute: Bool { !name.isEmpty }
  }

  /// The words of the line that was parsed last.
  package private(set) var words: [Word] = []

  package init() {}

  /// Parses a line without its line end.
  ///
  /// - Throws: the fault in the line. ``words`` must not be used then.
  package mutating func parse(_ line: borrowing Span<UInt8>) throws(SyntaxFault) {
    words.removeAll(keepingCapacity: true)
    var isASCII = true
    var index = 0
    while true {
      while index < line.count, line[index] == UInt8(ascii: " ") { index += 1 }
      guard index < line.count else { break }
      guard words.count < Bound.wordsPerLine else { throw .tooManyWords }
      words.append(try parseWord(line, at: &index, isASCII: &isASCII))
    }
    if !isASCII { try validate(line) }
  }

  private func parseWord(_ line: borrowing Span<UInt8>, at index: inout Int, isASCII: inout Bool) throws(SyntaxFault)
    -> Word
  {
    let name = attributeName(line, at: index)
    if !name.isEmpty { index = name.upperBound + 1 }
    if index < line.count, line[index] == UInt8(ascii: "\"") {
      return try parseQuoted(line, named: name, at: &index, isASCII: &isASCII)
    }
    let start = index
    while index < line.count, line[index] != UInt8(ascii: " ") {
      let byte = line[index]
      if byte < 0x20 || byte == 0x7f { throw byte == 0 ? .nul : .controlCharacter }
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { throw .brokenQuote }
      if byte >= 0x80 { isASCII = false }
      index += 1
    }
    if index == start { throw .emptyValue }
    return Word(name: name, value: start..<index, isEscaped: false)
  }

  /// Returns the range of `name` if the word at `start` begins with `name=`, otherwise an empty range.
  private func attributeName(_ line: borrowing Span<UInt8>, at start: Int) -> Range<Int> {
    guard isLetter(line[start]) else { return start..<start }
    var index = start + 1
    while index < line.count, isNameByte(line[index]) { index += 1 }
    return index < line.count && line[index] == UInt8(ascii: "=") ? start..<index : start..<start
  }

  /// Parses a JSON string (RFC 8259, section 7), which has to end its word.
  private func parseQuoted(
    _ line: borrowing Span<UInt8>, named name: Range<Int>, at index: inout Int, isASCII: inout Bool
  ) throws(SyntaxFault) -> Word {
    index += 1
    let start = index
    var isEscaped = false
    while index < line.count, line[index] != UInt8(ascii: "\"") {
      let byte = line[index]
      if byte < 0x20 || byte == 0x7f { throw byte == 0 ? .nul : .controlCharacter }
      if byte >= 0x80 { isASCII = false }
      if byte == UInt8(ascii: "\\") {
        isEscaped = true
        index += try JSONEscape(line, at: index).length
      } else {
        index += 1
      }
    }
    guard index < line.count else { throw .brokenQuote }
    let value = start..<index
    index += 1
    guard index == line.count || line[index] == UInt8(ascii: " ") else { throw .brokenQuote }
    return Word(name: name, value: value, isEscaped: isEscaped)
  }

  /// Checks a line with bytes above 0x7f: valid UTF-8, and no control characters from U+0080 to U+009F.
  private func validate(_ line: borrowing Span<UInt8>) throws(SyntaxFault) {
    guard (try? UTF8Span(validating: copy line)) != nil else { throw .invalidUTF8 }
    for index in 0..<(line.count - 1) where line[index] == 0xc2 && line[index + 1] < 0xa0 { throw .controlCharacter }
  }
}

extension WordParser {
  /// Returns the value of a word with its escapes resolved.
  package func text(_ word: Word, in line: borrowing Span<UInt8>) -> Text {
    var bytes: [UInt8] = []
    // In Swift 6.3, appending nothing to an empty array writes to the storage that all empty arrays share.
    if word.value.isEmpty { return Text(trusted: bytes) }
    guard word.isEscaped else {
      bytes.append(addingCapacity: word.value.count) { text in
        for index in word.value { text.append(line[index]) }
      }
      return Text(trusted: bytes)
    }
    bytes.reserveCapacity(word.value.count)
    var index = word.value.lowerBound
    while index < word.value.upperBound {
      if line[index] == UInt8(ascii: "\\"), let escape = try? JSONEscape(line, at: index) {
        bytes.append(contentsOf: escape.encoded)
        index += escape.length
      } else {
        bytes.append(line[index])
        index += 1
      }
    }
    return Text(trusted: bytes)
  }

  /// Copies the value of a word, with its escapes resolved, directly to the output. The value may be a secret,
  /// so no other copy is made.
  ///
  /// - Returns: the length of the value, or nil if the value does not fit. Only a part of the value is written then.
  package func copyValue(of word: Word, in line: borrowing Span<UInt8>, to output: inout MutableSpan<UInt8>) -> Int? {
    var length = 0
    var index = word.value.lowerBound
    while index < word.value.upperBound {
      if word.isEscaped, line[index] == UInt8(ascii: "\\"), let escape = try? JSONEscape(line, at: index) {
        for byte in escape.encoded {
          guard length < output.count else { return nil }
          output[length] = byte
          length += 1
        }
        index += escape.length
      } else {
        guard length < output.count else { return nil }
        output[length] = line[index]
        length += 1
        index += 1
      }
    }
    return length
  }

  /// Returns the name of an attribute in lower case, because names are case-insensitive.
  package func name(_ word: Word, in line: borrowing Span<UInt8>) -> Text {
    var bytes: [UInt8] = []
    for index in word.name { bytes.append(lowercased(line[index])) }
    return Text(trusted: bytes)
  }
}

func isLetter(_ byte: UInt8) -> Bool {
  let lower = byte | 0x20
  return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
}

func isNameByte(_ byte: UInt8) -> Bool {
  isLetter(byte) || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
    || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
}

func lowercased(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}
