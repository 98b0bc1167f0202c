import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire

/// The inputs of the client: answers of an unknown server, and files of earlier systems. The first byte chooses.
final class ClientTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    let rest = Array(input.dropFirst())
    switch input.first {
    case UInt8(ascii: "a"): try answer(rest)
    case UInt8(ascii: "f"): try fields(rest)
    case UInt8(ascii: "b"): try header(rest)
    case UInt8(ascii: "r"): try request(rest)
    default: return
    }
  }

  /// Checks that an answer is shown without hidden characters, and as JSON in one line.
  private func answer(_ bytes: [UInt8]) throws(Finding) {
    var rows: [ReplyLine.Content] = []
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      guard let line = ReplyLine(Array(line)) else { return }
      switch line {
      case .row(let content): rows.append(content)
      case .ok, .error: try show(.init(rows: rows, final: line))
      case .event(let sequence, let content):
        let event = ReceivedEvent(sequence: sequence, content: content)
        for style in [EventOutput(.upper, .text(isColoured: false)), EventOutput(.upper, .json)] {
          try requirePlain(style.line(event), lines: 1)
        }
      }
    }
  }

  private func show(_ answer: DaemonConnection.Answer) throws(Finding) {
    for request in ["get device", "devices", "status", "stats", "subscribe snapshot=yes", "item read", "unknown"] {
      let words = request.split(separator: " ").map(String.init)
      try requirePlain(JSONOutput(.upper).document(answer, to: words), lines: 1)
    }
    let screen = Screen(columns: 80, isColoured: false, isFull: false, now: Timestamp(milliseconds: 0))
    for (form, words) in [
      (TextOutput.Form.bare, ["get", "device"]), (.lines, ["restore"]), (.screen(screen), ["get", "device"]),
      (.screen(screen), ["item", "find"]),
    ] {
      try requirePlain(TextOutput(.upper, form).text(answer, to: words), lines: nil)
    }
  }

  private func requirePlain(_ text: String, lines: Int?) throws(Finding) {
    try require(
      !text.unicodeScalars.contains { $0 != "\n" && WordEncoder.isHidden($0) },
      "a character that cannot be seen is written in \(text.debugDescription)")
    if let lines {
      try require(text.utf8.count { $0 == 0x0a } == lines, "\(text.debugDescription) is not \(lines) line")
    }
  }

  /// Checks that a file yields a valid UUID or an error.
  private func fields(_ bytes: [UInt8]) throws(Finding) {
    let file = FieldFile(bytes)
    for name in [nil, "uuid", "DEVICE_ID"] {
      do throws(FieldFile.Failure) {
        let found = try file.uuid(of: name)
        guard UUID(Text(found)) != nil else { throw .missing(field: found) }
      } catch {
        if case .missing(let field) = error, field != name { throw Finding("\(field) is no UUID") }
        try requirePlain(error.text(file: "file"), lines: 0)
      }
    }
  }

  /// Checks that a header that parses is written back byte for byte.
  private func header(_ bytes: [UInt8]) throws(Finding) {
    guard let header = try? BackupHeader(parsing: bytes) else { return }
    try require(header.line == bytes + [UInt8(ascii: "\n")], "a header is read that would be written otherwise")
  }

  /// Checks that a request line of the client parses to the same words.
  private func request(_ bytes: [UInt8]) throws(Finding) {
    guard let text = Text(validating: bytes), text.bytes.count < 4_096 else { return }
    let words = "\(text)".split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard words.count <= Bound.wordsPerLine else { return }
    let line = RequestLine(words: words).head
    var parser = WordParser()
    do throws(SyntaxFault) {
      try parser.parse(line.span)
    } catch {
      throw Finding("\(String(decoding: line, as: UTF8.self)) does not parse: \(error)")
    }
    try require(parser.words.count == words.count, "\(words) are \(parser.words.count) words")
    for (word, given) in zip(parser.words, words) {
      let value = parser.text(word, in: line.span).bytes
      let whole = word.isAttribute ? Array(line[word.name]) + [UInt8(ascii: "=")] + value : value
      try require(whole.elementsEqual(given.utf8), "\(given) is read as \(String(decoding: whole, as: UTF8.self))")
    }
  }
}
