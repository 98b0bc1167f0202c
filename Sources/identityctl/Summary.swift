import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `identityctl` without a verb: how the daemon is doing, and the commands to begin with.
extension Program {
  /// The rows of `status` that are shown. The others are for a closer look.
  private static let summaryRows = [
    StatusRow.version, .started, .store, .masterKey, .devices, .apps, .items,
  ].map(\.name)

  /// The commands to begin with.
  private static let usefulCommands = ["status", "check", "get device", "item find", "monitor"]

  /// Returns the summary of a command. A command of the client takes the place of the verb with the same words.
  private static func effect(of words: String) -> String {
    Command.all.last { $0.words == words }?.summary ?? ""
  }

  /// Shows the most important rows of `status` and the most useful commands.
  static func summarize(_ line: CommandLine) throws -> Int32 {
    let (state, status) = try summary(line)
    let layout = HelpLayout(width: width(of: .output))
    let names = usefulCommands.map { words in
      HelpLayout.Entry("identityctl \(words)", effect(of: words))
    }
    let more = layout.wrapped("'identityctl help' lists all commands. See identityctl(1).")
    let text = "\(state)Useful commands:\n\(layout.list(names))\n\(more)"
    return show(text, line) ? status : ExitStatus.outputFailed
  }

  private static func summary(_ line: CommandLine) throws -> (text: String, status: Int32) {
    let patience = try patience(line)
    do {
      var connection = try connect(line, patience)
      let answer = try connection.ask(RequestLine(words: ["status"]), patience)
      if case .error(let code, let text) = answer.final { return ("", fail(code, text, line)) }
      let rows = answer.rows.filter { row in
        row.attributes.contains { summaryRows.contains("\($0.name)") || TextOutput.needsAttention($0) }
      }
      let output = TextOutput(
        try UUIDFormat(named: line.options["format"] ?? "hyphen"), .screen(try screen(line, .output)))
      return (output.text(.init(rows: rows, final: answer.final), to: ["status"]) + "\n", ExitStatus.success)
    } catch let failure as DaemonConnection.Failure {
      return ("", fail(failure, line))
    }
  }
}
