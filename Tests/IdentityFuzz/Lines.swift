import IdentityCore
import IdentityStore
import IdentityWire

/// Request lines from the socket. Each must parse to a command, or be refused in one line.
final class LineTarget: FuzzTarget {
  private let table = VerbTable()
  private let memory: SecretMemory
  private let peers = [
    Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true),
    Peer(userID: 1_000, groupID: 1_000, processID: 2, isAdmin: false),
  ]

  init() throws {
    let scratch = try Scratch()
    memory = try scratch.withStore { store, _ in try store.makeSecretMemory() }
  }

  func run(_ input: [UInt8]) throws {
    for var line in input.split(separator: UInt8(ascii: "\n")) {
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      guard !line.isEmpty, line.count < Bound.lineLength else { continue }
      try take(Array(line))
    }
  }

  private func take(_ line: [UInt8]) throws {
    var parser = WordParser()
    do throws(SyntaxFault) {
      try parser.parse(line.span)
    } catch {
      return try WireCheck.refusal(.syntax(error), to: line)
    }
    let canonical = try rewritten(line, parser)
    var again = WordParser()
    do throws(SyntaxFault) { try again.parse(canonical.span) } catch { throw Finding("written anew: \(error)") }
    try require(try rewritten(canonical, again) == canonical, "what was written anew is read as something else")
    for peer in peers {
      let plain = command(line, parser, by: peer, PlainIntake())
      try require(
        command(canonical, again, by: peer, PlainIntake()).isSame(as: plain), "written anew it is another command")
      try requireSame(plain, command(line, parser, by: peer, memory))
      switch plain {
      case .failure(let refusal):
        try WireCheck.refusal(refusal, to: line)
        try requireSilence(about: line, parser, in: refusal)
      case .success(.local(let command)): if let reply = try LocalAnswer(command) { try WireCheck.reply(reply.reply) }
      case .success: break
      }
    }
  }

  private func command(_ line: [UInt8], _ parser: WordParser, by peer: Peer, _ intake: any SecretIntake) -> Result<
    Command, Refusal
  > {
    Result { () throws(Refusal) in try table.command(parser, in: line.span, by: peer, secrets: intake) }
  }

  /// Returns the words in the daemon's own encoding.
  private func rewritten(_ line: [UInt8], _ parser: WordParser) throws(Finding) -> [UInt8] {
    var output: [UInt8] = []
    var end = 0
    for word in parser.words {
      try require(
        word.name.lowerBound >= end && word.value.lowerBound >= word.name.upperBound
          && word.value.upperBound <= line.count,
        "words overlap")
      end = word.value.upperBound
      let text = parser.text(word, in: line.span)
      try require(Text(validating: text.bytes) == text, "a word is not text")
      if !output.isEmpty { output.append(UInt8(ascii: " ")) }
      if word.isAttribute {
        output += parser.name(word, in: line.span).bytes + [UInt8(ascii: "=")]
        WordEncoder.append(value: text.bytes, to: &output)
      } else {
        WordEncoder.append(word: text.bytes, to: &output)
      }
    }
    return output
  }

  /// Checks that guarded memory decodes a secret like the plain decoder.
  private func requireSame(_ plain: Result<Command, Refusal>, _ guarded: Result<Command, Refusal>) throws(Finding) {
    switch (plain, guarded) {
    case (.success(let plain), .success(let guarded)):
      guard let plain = plain.secret, let guarded = guarded.secret else {
        return try require(plain == guarded, "two readings are two commands")
      }
      var text: [UInt8] = []
      try require(memory.append(guarded, as: .base64, to: &text), "a secret does not open")
      let opened = try? PlainIntake.decode(text[...])
      try require(opened == plain.bytes, "a secret is another one")
    case (.failure(let plain), .failure(let guarded)):
      // If a text is both too long and not Base64, the two readers may report different faults.
      try require(plain.code == guarded.code || plain.secretFault && guarded.secretFault, "\(plain) or \(guarded)")
    default: throw Finding("\(plain) or \(guarded)")
    }
  }

  /// Checks that no error text repeats a secret.
  private func requireSilence(about line: [UInt8], _ parser: WordParser, in refusal: Refusal) throws(Finding) {
    for word in parser.words where word.isAttribute && parser.name(word, in: line.span) == "data" {
      let secret = parser.text(word, in: line.span)
      // A short secret may occur in a text by chance. `data=` is a secret only for a verb that takes one.
      guard secret.bytes.count >= 16, case .badArgument(let verb, _) = refusal,
        VerbTable.verbs.first(where: { $0.words == verb })?.attributes.contains(where: { $0.isSecret }) == true
      else { continue }
      try require(!refusal.text.contains("\(secret)"), "\(refusal.text) repeats a secret")
    }
  }
}

extension Command {
  /// The secret in the command.
  fileprivate var secret: SealedSecret? {
    switch self {
    case .local(.beginRestore(let key)), .store(.backup(let key)): key
    case .registry(let command):
      (command.rule as? StoreItemRule)?.secret ?? (command.rule as? UpdateItemRule)?.update.secret
    default: nil
    }
  }
}

extension Result<Command, Refusal> {
  /// Compares only the codes of refusals: the text repeats a word as it was written.
  fileprivate func isSame(as other: Self) -> Bool {
    switch (self, other) {
    case (.success(let own), .success(let other)): own == other
    case (.failure(let own), .failure(let other)): own.code == other.code
    default: false
    }
  }
}

extension Refusal {
  fileprivate var secretFault: Bool {
    switch self {
    case .limit, .badArgument(verb: _, .notBase64): true
    default: false
    }
  }
}
