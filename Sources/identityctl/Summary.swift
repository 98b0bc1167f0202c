import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `identityctl` without a verb: how the daemon is doing, and the commands to go on with.
extension Program {
  /// The rows of `status` that are shown. The others are for a closer look.
  private static let summaryRows = [
    StatusRow.version, .started, .store, .masterKey, .devices, .apps, .items,
  ].map(\.name)

  /// Shows the most important rows of `status`, and what to run next.
  static func summarize(_ line: CommandLine) throws -> Int32 {
    let (state, status) = try summary(line)
    let layout = HelpLayout(width: width(of: .output))
    let isOwn = line.options["user"] != nil
    let advice =
      status == ExitStatus.success
      ? "'identityctl check' examines the installation, and 'identityctl help' lists all commands."
      : "'identityctl check' finds the cause, and 'identityctl help' lists all commands."
    return show(state + layout.wrapped(Advice.text(advice, isOwn: isOwn)), line) ? status : ExitStatus.outputFailed
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
