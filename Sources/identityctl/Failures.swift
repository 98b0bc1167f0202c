import ClientFormats
import IdentityCore
import IdentityWire
import LinuxSystem

// Errors: as a document on standard output with `--json`, otherwise as a line on standard error.
extension Program {
  /// The error codes of the client itself, by exit status. identityctl(1) lists them.
  private static let codes = [
    ExitStatus.no: "declined", ExitStatus.usage: "usage", ExitStatus.unreachable: "unreachable",
    ExitStatus.brokenAnswer: "broken-answer", ExitStatus.outputFailed: "output", ExitStatus.timedOut: "timeout",
    ExitStatus.fileFailed: "file",
  ]

  /// Reports an error that the client found.
  ///
  /// - Returns: the exit status.
  static func fail(_ message: String, _ status: Int32, _ line: CommandLine) -> Int32 {
    let code = codes[status] ?? ErrorCode.allCases.first { $0.exitStatus == status }?.rawValue
    return report(code ?? ErrorCode.internal.rawValue, message, shown: message, status, line)
  }

  /// Reports an error that the daemon sent.
  ///
  /// - Returns: the exit status.
  static func fail(_ code: Text, _ text: Text, _ line: CommandLine) -> Int32 {
    report("\(code)", "\(text)", shown: "\(text) (\(code))", status(of: code), line)
  }

  private static func report(
    _ code: String, _ message: String, shown: String, _ status: Int32, _ line: CommandLine
  ) -> Int32 {
    // `--quiet` writes errors too. Only `--json=wire` keeps them on standard error.
    guard let form = line.options["json"], form != JSONForm.wireName, !carriesData(line) else {
      complain(shown)
      return status
    }
    return StandardStream.output.write(JSONOutput.error(code: code, message: message))
      ? status : ExitStatus.outputFailed
  }

  /// Whether standard output is for the bytes of a secret or of a backup.
  private static func carriesData(_ line: CommandLine) -> Bool {
    line.options["raw"] != nil || line.words.map { $0.lowercased() } == ["backup", "-"]
  }
}
