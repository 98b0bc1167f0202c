import IdentityCore
import IdentityWire
import TestSupport

/// Requirements on all output of the daemon.
enum WireCheck {
  /// Checks that a refusal is one line with a code of the protocol.
  static func refusal(_ refusal: Refusal, to line: [UInt8]) throws(Finding) {
    var output: [UInt8] = []
    refusal.append(to: &output)
    let lines = try lines(output)
    guard lines.count == 1, case .error(let code, let text) = lines[0] else {
      throw Finding("\(refusal) is not one line")
    }
    try require(ErrorCode(rawValue: "\(code)") == refusal.code, "\(code) is no code")
    // Bounds amplification: quoted parts of a request are cut, and an escape takes six bytes for one.
    try require(text.bytes.count <= 4_096, "\(refusal.code) takes \(text.bytes.count) bytes for \(line.count)")
  }

  /// Checks that a reply consists of rows and one final line, and that a client parses each as intended.
  @discardableResult
  static func reply(_ reply: Reply, secret: [UInt8] = []) throws(Finding) -> [ReplyLine] {
    var output: [UInt8] = []
    do throws(Refusal) {
      try reply.append(to: &output) { (_, output) throws(Refusal) in output += secret }
    } catch {
      throw Finding("\(error)")
    }
    let lines = try lines(output)
    for (place, line) in lines.enumerated() {
      switch line {
      case .row: try require(place < lines.count - 1, "the last line is a row")
      case .ok: try require(place == lines.count - 1, "a line follows the last")
      case .error, .event: throw Finding("\(line) stands in an answer")
      }
    }
    try requireSame(reply, lines)
    return lines
  }

  /// Checks that an event is one line.
  static func event(_ event: Event) throws(Finding) {
    var output: [UInt8] = []
    event.append(to: &output)
    guard case .event(event.sequence, let content)? = try lines(output).first else {
      throw Finding("\(event) is not read as an event")
    }
    try require(content.words == [Text(event.topic.rawValue), event.name], "\(event) is read as \(content)")
    try require(
      content.attributes.dropLast().map { Event.Attribute($0.name, $0.value) } == event.attributes,
      "\(event) is read as \(content)")
  }

  private static func lines(_ output: [UInt8]) throws(Finding) -> [ReplyLine] {
    try require(output.last == UInt8(ascii: "\n"), "a line has no end")
    var lines: [ReplyLine] = []
    for line in output.dropLast().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      guard let read = ReplyLine(Array(line)) else {
        throw Finding("a client cannot read \(String(decoding: line, as: UTF8.self))")
      }
      try require(!line.contains { $0 < 0x20 || $0 == 0x7f }, "a control character is written")
      lines.append(read)
    }
    return lines
  }

  /// Checks that the parsed lines have the words and attributes of the reply.
  private static func requireSame(_ reply: Reply, _ lines: [ReplyLine]) throws(Finding) {
    var texts: [Text] = []
    for part in (try? reply.allParts()) ?? [] {
      switch part {
      case .row, .final: break
      case .secret: texts.append("")
      case .word(.text(let text)), .attribute(_, .text(let text)): texts.append(text)
      case .word(.string(let text)), .attribute(_, .string(let text)): texts.append(Text(text))
      case .word, .attribute: texts.append("")
      }
    }
    var read: [Text] = []
    for line in lines {
      guard case .row(let content) = line else {
        guard case .ok(let content) = line else { continue }
        read += content.words + content.attributes.map(\.value)
        continue
      }
      read += content.words + content.attributes.map(\.value)
    }
    try require(read.count == texts.count, "\(reply) is read as \(lines)")
    for (text, read) in zip(texts, read) { try require(text.isEmpty || text == read, "\(text) is read as \(read)") }
  }
}

/// The answer to a command that depends only on the request.
struct LocalAnswer {
  let reply: Reply

  /// Answers a command. Nil if the answer depends on more than the request.
  init?(_ command: LocalCommand) throws(Finding) {
    do throws(Refusal) {
      switch command {
      case .ping, .quit: reply = .done
      case .hello: reply = .hello
      case .help(let words): reply = try VerbTable.help(words)
      case .check(let text): reply = .check(text)
      case .compare(let left, let right, let order):
        reply = .compare(left, right, order)
        let opposite: [VersionOrder.Outcome: VersionOrder.Outcome] = [.less: .greater, .greater: .less, .equal: .equal]
        let there = order.compare(left.version, right.version)
        try Self.require(opposite[there] == order.compare(right.version, left.version))
      default: return nil
      }
    } catch {
      if case .broken(let what) = error { throw Finding(what) }
      try WireCheck.refusal(error, to: [])
      return nil
    }
  }

  private static func require(_ holds: Bool) throws(Refusal) {
    guard holds else { throw .broken("two versions stand to each other in two ways") }
  }
}
