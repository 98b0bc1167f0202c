package import IdentityCore

extension Reply {
  /// Appends the answer as lines, each with its LF, but without its secrets.
  ///
  /// If the answer is refused for having no rows, the refusal is appended in its place.
  package func append(to output: inout [UInt8]) {
    var (rest, effort) = (self, Int.max)
    do throws(Refusal) {
      _ = try rest.appendPiece(to: &output, upTo: .max, effort: &effort)
    } catch {
      error.append(to: &output)
    }
  }

  /// Appends a piece of the answer, without its secrets.
  ///
  /// - Parameters:
  ///   - length: the wanted length of the output, in bytes. The last row and the parts after it may exceed the length.
  ///   - effort: the number of elements that may be examined. The call reduces the number.
  /// - Returns: whether the answer is complete.
  /// - Throws: the refusal in place of an answer without rows.
  package mutating func appendPiece(to output: inout [UInt8], upTo length: Int, effort: inout Int) throws(Refusal)
    -> Bool
  {
    if hasRows {
      var row = Reply()
      rows: while true {
        guard output.count < length else { return false }
        switch try nextRow(in: &row, effort: &effort) {
        case .found: row.appendParts(to: &output)
        case .paused: return false
        case .ended: break rows
        }
      }
    }
    appendParts(to: &output)
    return true
  }

  /// Appends the first word of the final line, and no line feed.
  package func appendFirstWord(to output: inout [UInt8]) {
    for case .word(let value) in parts { return value.append(asWord: true, to: &output) }
  }

  private func appendParts(to output: inout [UInt8]) {
    var isFirst = true
    for part in parts { part.append(isFirst: &isFirst, to: &output) }
    output.append(UInt8(ascii: "\n"))
  }

  /// The length that the answer with its secrets has at most, in bytes.
  package var longestLength: Int {
    var (rest, row, effort) = (self, Reply(), Int.max)
    var length = 0
    while case .found? = try? rest.nextRow(in: &row, effort: &effort) { length += row.longestLineLength }
    return secrets.reduce(length + rest.longestLineLength) { $0 + ($1.secretLength + 2) / 3 * 4 }
  }

  /// The length that ``parts`` have at most, with the line feed and without secrets, in bytes.
  private var longestLineLength: Int { parts.reduce(1) { $0 + $1.longestLength } }

  /// Appends the answer as lines, with its secrets.
  ///
  /// - Parameter data: appends the secret of an item in Base64, and nothing else.
  /// - Throws: the error of `data`. Nothing is appended then.
  package func append(to output: inout [UInt8], data: (Item, inout [UInt8]) throws(Refusal) -> Void) throws(Refusal) {
    let start = output.count
    var rest = self
    do {
      while try rest.appendRow(to: &output, data: data) {}
    } catch {
      output.removeSubrange(start...)
      throw error
    }
  }

  /// Appends the next row, or after the last one the rest of the answer, with its secrets.
  ///
  /// - Parameter data: appends the secret of an item in Base64, and nothing else.
  /// - Returns: whether a row was appended; false after the rest of the answer.
  package mutating func appendRow(
    to output: inout [UInt8], data: (Item, inout [UInt8]) throws(Refusal) -> Void
  ) throws(Refusal) -> Bool {
    var (row, effort) = (Reply(), Int.max)
    guard case .found = try nextRow(in: &row, effort: &effort) else {
      try appendParts(to: &output, data: data)
      return false
    }
    try row.appendParts(to: &output, data: data)
    return true
  }

  private func appendParts(
    to output: inout [UInt8], data: (Item, inout [UInt8]) throws(Refusal) -> Void
  ) throws(Refusal) {
    var isFirst = true
    var items = secrets[...]
    for part in parts {
      part.append(isFirst: &isFirst, to: &output)
      guard case .secret = part, let item = items.popFirst() else { continue }
      output.append(contentsOf: " data=".utf8)
      let secret = output.count
      try data(item, &output)
      // The protocol writes an empty word as a JSON string.
      if output.count == secret { output.append(contentsOf: "\"\"".utf8) }
    }
    output.append(UInt8(ascii: "\n"))
  }
}

extension Reply.Part {
  /// The length that the part has at most, without the secret, in bytes.
  fileprivate var longestLength: Int {
    switch self {
    case .row, .final: 3
    case .word(let value): 1 + value.longestLength
    case .attribute(let name, let value): 2 + name.utf8.count + value.longestLength
    case .secret: 8
    }
  }

  /// Appends a piece of an answer. If the piece begins a line, ends the previous line first.
  ///
  /// - Parameter isFirst: whether no line has begun yet.
  @inline(__always)
  fileprivate func append(isFirst: inout Bool, to output: inout [UInt8]) {
    switch self {
    case .row:
      if !isFirst { output.append(UInt8(ascii: "\n")) }
      output.append(UInt8(ascii: "*"))
      isFirst = false
    case .final:
      if !isFirst { output.append(UInt8(ascii: "\n")) }
      output.append(UInt8(ascii: "O"))
      output.append(UInt8(ascii: "K"))
      isFirst = false
    case .word(let value):
      output.append(UInt8(ascii: " "))
      value.append(asWord: true, to: &output)
    case .attribute(let name, let value):
      output.append(UInt8(ascii: " "))
      output.append(contentsOf: name.utf8)
      output.append(UInt8(ascii: "="))
      value.append(asWord: false, to: &output)
    case .secret: break
    }
  }
}

extension Reply.Value {
  /// The length that the value has at most, in bytes. A byte of a text takes six at most, and a text two quotation marks.
  fileprivate var longestLength: Int {
    switch self {
    case .uuid: 36
    case .time: 32
    case .number: 20
    case .yesOrNo: 3
    case .string(let string): 6 * string.utf8.count + 2
    case .text(let text): 6 * text.bytes.count + 2
    }
  }

  fileprivate func append(asWord: Bool, to output: inout [UInt8]) {
    switch self {
    case .uuid(let uuid): uuid.append(to: &output)
    case .time(let time): time.append(to: &output)
    case .number(let number): output.append(contentsOf: String(number).utf8)
    case .yesOrNo(let flag): output.append(contentsOf: flag ? "yes".utf8 : "no".utf8)
    case .string(let string): append(Array(string.utf8), asWord: asWord, to: &output)
    case .text(let text): append(text.bytes, asWord: asWord, to: &output)
    }
  }

  private func append(_ bytes: [UInt8], asWord: Bool, to output: inout [UInt8]) {
    if asWord { WordEncoder.append(word: bytes, to: &output) } else { WordEncoder.append(value: bytes, to: &output) }
  }
}
