import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The consent of the user to a verb that cannot be undone.
///
/// The tables of verbs and commands declare such verbs by a consequence. The protocol asks nothing.
struct Consent {
  /// The words of the verb.
  private let name: String
  private let consequence: String
  /// The request whose rows show what is lost, if the daemon can tell.
  private let preview: [String]?
  /// Whether a row of the answer to the preview is about this request.
  private let concerns: (ReplyLine.Content) -> Bool

  /// Returns nil if the command needs no consent: it destroys nothing, is a dry run, or has `--yes`.
  ///
  /// - Throws: a usage error if consent is needed and there is no terminal to ask at.
  init?(to line: CommandLine) throws(CommandLine.UsageError) {
    let isDry = line.options["dry-run"] != nil || line.words.contains { $0.lowercased() == "dry-run=yes" }
    guard line.options["yes"] == nil, !isDry, let verb = Self.destructiveVerb(line.words) else {
      return nil
    }
    guard Confirmation.isPossible else {
      throw CommandLine.UsageError(
        "'\(verb.name)' cannot be undone, and there is no terminal to ask at; to go on without a question, add --yes")
    }
    (name, consequence) = (verb.name, verb.consequence)
    let words = line.words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }
    let operand = words.dropFirst(verb.name.split(separator: " ").count).first.map { Text($0) }
    switch verb.name {
    case "account clear":
      (preview, concerns) = (["devices"], { $0["self"] == "no" })
    case "devices remove", "devices forget":
      let device = operand.flatMap { UUID($0) }
      (preview, concerns) = (["devices"], { $0.words.first.flatMap { UUID($0) } == device })
    case "app forget" where operand != nil:
      (preview, concerns) = (["app", "list"], { $0.words.first == operand })
    default:
      (preview, concerns) = (verb.hasDryRun ? line.words + ["dry-run=yes"] : nil, { _ in true })
    }
  }

  /// Shows what the request would change, and asks.
  ///
  /// - Throws: an ``Program/Ending`` if the user does not agree, or if the daemon refuses to show the changes.
  func obtain(
    over connection: inout DaemonConnection, _ line: CommandLine, _ format: UUIDFormat, _ patience: Patience
  ) throws {
    let answer = try preview.map { (words) throws in try connection.ask(RequestLine(words: words), patience) }
    try obtain(showing: answer, to: preview ?? [], line, format)
  }

  /// Shows the answer to the request of a dry run, and asks. Errors are those of ``obtain(over:_:_:_:)``.
  func obtain(
    showing answer: DaemonConnection.Answer?, to request: [String], _ line: CommandLine, _ format: UUIDFormat
  ) throws {
    if case .error(let code, let text)? = answer?.final {
      throw Program.Ending(status: Program.status(of: code), text: "\(text) (\(code))")
    }
    let rows = answer?.rows.filter(concerns) ?? []
    var shown = ""
    if let answer, !rows.isEmpty {
      let output = TextOutput(format, .screen(try Program.screen(line, .error)))
      shown = output.text(.init(rows: rows, final: answer.final), to: request)
    }
    StandardStream.error.write("\(consequence)\n\(shown)")
    guard Confirmation.ask("'\(name)' cannot be undone. Go on?") else {
      throw Program.Ending(status: Program.ExitStatus.no, text: "nothing was changed")
    }
  }

  /// Returns the destructive verb or command at the beginning of words.
  private static func destructiveVerb(_ words: [String]) -> (name: String, consequence: String, hasDryRun: Bool)? {
    let first = words.prefix(2).map { $0.lowercased() }
    if let command = ClientCommand.all.first(where: { [first.joined(separator: " "), first.first].contains($0.words) })
    {
      return command.consequence.map { (command.words, $0, false) }
    }
    guard let verb = VerbTable.verb(of: words), let consequence = verb.consequence else { return nil }
    return (verb.words, consequence, verb.attributes.contains { $0.name == "dry-run" })
  }
}
