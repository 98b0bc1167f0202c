package import IdentityCore

extension Reply {
  /// Appends the answer as lines, each with its LF. The secret of ``item`` is left out.
  package func append(to output: inout [UInt8]) {
    var written = 0
    _ = append(to: &output, from: &written, upTo: .max)
  }

  /// Appends a piece of the answer. The secret of ``item`` is left out.
  ///
  /// - Parameters:
  ///   - written: how many of its ``rows`` were appended before; it is counted on.
  ///   - length: how much is to be in the output, in bytes; the last row, and what follows it, may go beyond.
  /// - Returns: whether that was the end of the answer.
  package func append(to output: inout [UInt8], from written: inout Int, upTo length: Int) -> Bool {
    if let rows {
      var row = Reply()
      while written < rows.count {
        guard output.count < length else { return false }
        rows.write(written, in: &row)
        row.appendParts(to: &output)
        written += 1
      }
    }
    appendParts(to: &output)
    return true
  }

  private func appendParts(to output: inout [UInt8]) {
    var isFirst = true
    for part in parts { part.append(isFirst: &isFirst, to: &output) }
    output.append(UInt8(ascii: "\n"))
  }

  /// Appends the answer as lines, with the secret of ``item`` as `data=` right behind the final `OK`.
  ///
  /// - Parameter data: appends the secret in Base64, and nothing else; it is not called where there is no item.
  /// - Throws: what `data` throws; nothing is then appended.
  package func append(to output: inout [UInt8], data: (inout [UInt8]) throws(Refusal) -> Void) throws(Refusal) {
    // Rows have no secrets.
    guard item != nil else { return append(to: &output) }
    let start = output.count
    var isFirst = true
    for part in parts {
      part.append(isFirst: &isFirst, to: &output)
      guard case .final = part else { continue }
      output.append(contentsOf: " data=".utf8)
      let secret = output.count
      do {
        try data(&output)
      } catch {
        output.removeSubrange(start...)
        throw error
      }
      // An empty word has to be written as one.
      if output.count == secret { output.append(contentsOf: "\"\"".utf8) }
    }
    output.append(UInt8(ascii: "\n"))
  }
}

extension Reply.Part {
  /// Appends a piece of an answer, and the end of the line before where it begins another.
  ///
  /// - Parameter isFirst: whether no line was begun before.
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
    }
  }
}

extension Reply.Value {
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
