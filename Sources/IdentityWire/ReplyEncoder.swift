package import IdentityCore

extension Reply {
  /// Appends the answer as lines, each with its LF, but without the secret of ``item``.
  package func append(to output: inout [UInt8]) {
    var written = 0
    _ = append(to: &output, from: &written, upTo: .max)
  }

  /// Appends a piece of the answer, without the secret of ``item``.
  ///
  /// - Parameters:
  ///   - written: the number of ``rows`` appended so far. The call increases the number.
  ///   - length: the wanted length of the output, in bytes. The last row and the parts after it may exceed the length.
  /// - Returns: whether the answer is complete.
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

  /// Appends the answer as lines, with the secret of ``item`` as `data=` directly after the final `OK`.
  ///
  /// - Parameter data: appends the secret in Base64, and nothing else. Not called if the answer has no item.
  /// - Throws: the error of `data`. Nothing is appended then.
  package func append(to output: inout [UInt8], data: (inout [UInt8]) throws(Refusal) -> Void) throws(Refusal) {
    // Only an item has a secret, and an answer with ``rows`` has no item.
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
      // The protocol writes an empty word as a JSON string.
      if output.count == secret { output.append(contentsOf: "\"\"".utf8) }
    }
    output.append(UInt8(ascii: "\n"))
  }
}

extension Reply.Part {
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
