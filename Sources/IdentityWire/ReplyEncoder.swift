package import IdentityCore

extension Reply {
  /// Appends the answer as lines, each with its LF.
  package func append(to output: inout [UInt8]) {
    var isFirst = true
    for part in parts {
      switch part {
      case .row, .final:
        if !isFirst { output.append(UInt8(ascii: "\n")) }
        if part == .row { output.append(UInt8(ascii: "*")) } else { output.append(contentsOf: "OK".utf8) }
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
    output.append(UInt8(ascii: "\n"))
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
