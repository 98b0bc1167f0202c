import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The consent of the user to a command that destroys something for good.
///
/// The tables of verbs and commands declare the loss that each causes. The protocol asks nothing.
struct Consent {
  /// The words of the verb or command.
  private let name: String
  private let consequence: String
  /// The number of things that may be lost without a question; nil if the client always asks.
  private let allowance: Int?
  /// The request whose rows show the loss, if the daemon can tell.
  private let preview: [String]?
  /// Whether a row of the answer to the preview is about this request.
  private let concerns: (ReplyLine.Content) -> Bool

  /// Returns nil if the command needs no consent: it destroys nothing, is a dry run, or has `--yes`.
  ///
  /// - Throws: a usage error if consent is needed in any case and there is no terminal to ask at.
  init?(to line: CommandLine) throws(CommandLine.UsageError) {
    let isDry = line.options["dry-run"] != nil || line.words.contains { $0.lowercased() == "dry-run=yes" }
    guard line.options["yes"] == nil, !isDry, let command = Self.command(of: line.words),
      let consequence = command.loss.consequence
    else { return nil }
    (name, self.consequence) = (command.name, consequence)
    switch command.loss {
    case .askIfMore: allowance = 1
    case .askIfAny: allowance = 0
    case .nothing, .named, .ask: allowance = nil
    }
    let words = line.words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }
    let operand = words.dropFirst(name.split(separator: " ").count).first.map { Text($0) }
    switch name {
    case "devices remove",
      "devices forget" where operand != nil:
      let device = operand.flatMap { UUID($0) }
      (preview, concerns) = (["devices"], { $0.words.first.flatMap { UUID($0) } == device })
    case "app forget" where operand != nil:
      (preview, concerns) = (["app", "list"], { $0.words.first == operand })
    default:
      let others = line.words.filter { !$0.lowercased().hasPrefix("dry-run=") }
      (preview, concerns) = (command.hasDryRun ? others + ["dry-run=yes"] : nil, { _ in true })
    }
    if allowance == nil { try requireTerminal() }
  }

  /// Asks whether a command may replace a file, unless there is `--yes`.
  ///
  /// - Parameter reason: the reason to keep the file, as a predicate of the file; nil if it may be replaced.
  /// - Throws: an ``Program/Ending`` if the user does not agree, or a usage error if there is no terminal to ask at.
  static func obtain(toReplace path: String, which reason: String?, _ line: CommandLine) throws {
    guard let reason, let consent = try Consent(to: line) else { return }
    guard Confirmation.isPossible else {
      throw CommandLine.UsageError(
        "\(path) exists and \(reason); to replace the file without a question, add --yes")
    }
    try consent.ask("\(WordEncoder.visible(path)) \(reason)\n")
  }

  private func requireTerminal() throws(CommandLine.UsageError) {
    guard !Confirmation.isPossible else { return }
    let look = preview?.last == "dry-run=yes" ? "to see what would be lost, add --dry-run; " : ""
    throw CommandLine.UsageError(
      "'\(name)' cannot be undone, and there is no terminal to ask at; \(look)to go on without a question, add --yes")
  }

  /// Shows what the request would destroy, and asks.
  ///
  /// - Returns: the daemon's refusal to show that, which is the answer to the command. Nil if the command may go on.
  /// - Throws: an ``Program/Ending`` if the user does not agree, or a usage error if there is no terminal to ask at.
  func obtain(
    over connection: inout DaemonConnection, _ line: CommandLine, _ format: UUIDFormat, _ patience: Patience
  ) throws -> DaemonConnection.Answer? {
    guard let preview else {
      try ask()
      return nil
    }
    let answer = try connection.ask(RequestLine(words: preview), patience)
    guard case .ok(let content) = answer.final else { return answer }
    guard allowance.map({ Self.showsMore(than: $0, answer.rows, content) }) ?? true else { return nil }
    try requireTerminal()
    try obtain(showing: answer, to: preview, line, format)
    return nil
  }

  /// Shows the answer to the request of a dry run, and asks. Errors are those of ``obtain(over:_:_:_:)``.
  ///
  /// - Parameter detail: a further sentence before the question.
  func obtain(
    showing answer: DaemonConnection.Answer, to request: [String], _ line: CommandLine, _ format: UUIDFormat,
    detail: String? = nil
  ) throws {
    let rows = answer.rows.filter(concerns)
    var shown = ""
    let endsAccount = if case .ok(let content) = answer.final { content["previous"] != nil } else { false }
    if !rows.isEmpty || endsAccount {
      let output = TextOutput(format, .screen(try Program.screen(line, .error)))
      shown = output.text(.init(rows: rows, final: answer.final), to: request)
    }
    try ask(shown + (detail.map { "\($0)\n" } ?? ""))
  }

  /// Shows the loss, and asks.
  func ask(_ shown: String = "") throws(Program.Ending) {
    StandardStream.error.write("\(consequence)\n\(shown)")
    guard Confirmation.ask("'\(name)' cannot be undone. Go on?") else {
      throw Program.Ending(status: Program.ExitStatus.no, text: "nothing was changed")
    }
  }

  /// Whether a dry run shows a loss beyond so many things of the user's own: more things, a thing of another app, or an
  /// account that another one replaces.
  private static func showsMore(
    than allowance: Int, _ rows: [ReplyLine.Content], _ final: ReplyLine.Content
  ) -> Bool {
    rows.count > allowance || rows.contains { $0["own"] == "no" } || final["previous"] != nil
  }

  /// Returns the verb or command at the beginning of words.
  private static func command(of words: [String]) -> (name: String, loss: Verb.Loss, hasDryRun: Bool)? {
    let name = VerbName(words)
    if let command = ClientCommand.all.first(where: { name.matches($0.words) }) {
      return (command.words, command.loss, false)
    }
    return VerbTable.verb(of: words).map { verb in
      (verb.words, verb.loss, verb.attributes.contains { $0.name == "dry-run" })
    }
  }
}
