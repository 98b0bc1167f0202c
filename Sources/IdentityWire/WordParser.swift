package import IdentityCore

/// Splits one line into words without copying any of it (protocol, section 1).
///
/// One parser serves a whole connection after another: its table of words keeps its memory, so that parsing allocates
/// nothing once it is warm.
package struct WordParser: Sendable {
  /// One word of a line, as ranges of the line's bytes.
  package struct Word: Equatable, Sendable {
    /// The attribute's name; empty for a positional word.
    package let name: Range<Int>
    /// The value, without the quotes around it.
    package let value: Range<Int>
    /// Whether the value is a JSON string that holds an escape, so that it has to be decoded.
    package let isEscaped: Bool

    /// Whether this is `name=value`.
    package var isAttribute: Bool { !name.isEmpty }
  }

  /// The words of the line parsed last.
  package private(set) var words: [Word] = []

  /// Makes a parser with no words.
  package init() {}

  /// Parses a line without its end.
  ///
  /// - Throws: what is wrong with the line; ``words`` is then not to be used.
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
      if byte < 0x20 || byte == 0x7f { throw .controlCharacter }
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { throw .brokenQuote }
      if byte >= 0x80 { isASCII = false }
      index += 1
    }
    if index == start { throw .emptyValue }
    return Word(name: name, value: start..<index, isEscaped: false)
  }

  /// The range of `name` where the word at `start` begins with `name=`; empty where it does not.
  private func attributeName(_ line: borrowing Span<UInt8>, at start: Int) -> Range<Int> {
    guard isLetter(line[start]) else { return start..<start }
    var index = start + 1
    while index < line.count, isNameByte(line[index]) { index += 1 }
    return index < line.count && line[index] == UInt8(ascii: "=") ? start..<index : start..<start
  }

  /// Parses a JSON string (RFC 8259, section 7), which ends its word.
  private func parseQuoted(
    _ line: borrowing Span<UInt8>, named name: Range<Int>, at index: inout Int, isASCII: inout Bool
  ) throws(SyntaxFault) -> Word {
    index += 1
    let start = index
    var isEscaped = false
    while index < line.count, line[index] != UInt8(ascii: "\"") {
      let byte = line[index]
      if byte < 0x20 || byte == 0x7f { throw .controlCharacter }
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

  /// Checks a line that has bytes above 0x7f: valid UTF-8, and none of the control characters U+0080 to U+009F.
  private func validate(_ line: borrowing Span<UInt8>) throws(SyntaxFault) {
    guard (try? UTF8Span(validating: copy line)) != nil else { throw .invalidUTF8 }
    for index in 0..<(line.count - 1) where line[index] == 0xc2 && line[index + 1] < 0xa0 { throw .controlCharacter }
  }
}

extension WordParser {
  /// The text of a word's value, its escapes resolved.
  package func text(_ word: Word, in line: borrowing Span<UInt8>) -> Text {
    var bytes: [UInt8] = []
    // Swift 6.3 writes into the storage that all empty arrays share where nothing is appended to one.
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

  /// Writes a word's value, its escapes resolved, without a copy of it anywhere else: it may be a secret.
  ///
  /// - Returns: how long it is; nil where it does not fit, and only a part of it was written.
  func copyValue(of word: Word, in line: borrowing Span<UInt8>, to output: inout MutableSpan<UInt8>) -> Int? {
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

  /// The name of an attribute in lower case: keys are case-insensitive.
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
