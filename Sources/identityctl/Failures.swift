import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// Errors: as a document on standard output with `--json`, otherwise as a line on standard error.
extension Program {
  /// The error codes of the client itself, by exit status. identityctl(1) lists them.
  private static let codes = [
    ExitStatus.no: "declined", ExitStatus.usage: "usage", ExitStatus.unreachable: "unreachable",
    ExitStatus.brokenAnswer: "broken-answer", ExitStatus.outputFailed: "output", ExitStatus.timedOut: "timeout",
    ExitStatus.fileFailed: "file", ExitStatus.cannotCreate: "file",
  ]

  /// Reports an error that the client found.
  ///
  /// - Parameter code: the error code of a JSON document, or nil for that of the status.
  /// - Returns: the exit status.
  static func fail(_ message: String, _ status: Int32, _ line: CommandLine, code: String? = nil) -> Int32 {
    let code = code ?? codes[status] ?? ErrorCode.allCases.first { $0.exitStatus == status }?.rawValue
    return report(code ?? ErrorCode.internal.rawValue, message, shown: message, status, line)
  }

  /// Reports an error that the daemon sent, with a correction if a word was probably mistyped.
  ///
  /// - Returns: the exit status.
  static func fail(_ code: Text, _ text: Text, _ line: CommandLine) -> Int32 {
    let mayBeMistyped = [ErrorCode.unknownVerb, .badArgument].contains { $0.rawValue == "\(code)" }
    let correction = mayBeMistyped ? Correction(of: line.words).map { "; \($0.question)" } : nil
    let message = "\(text)\(correction ?? "")"
    return report("\(code)", message, shown: "\(message) (\(code))", status(of: code), line)
  }

  /// Reports that the daemon could not be asked.
  ///
  /// - Returns: the exit status.
  static func fail(_ failure: DaemonConnection.Failure, _ line: CommandLine) -> Int32 {
    switch failure {
    case .unreachable, .untrusted: fail("\(failure)", ExitStatus.unreachable, line)
    case .timeUp:
      fail(
        "identityd did not answer in time, and a change may have been made all the same; see 'systemctl status identityd.service', or allow more time with --timeout",
        ExitStatus.timedOut, line)
    case .busy, .closed, .malformed, .outputClosed, .interrupted: fail("\(failure)", ExitStatus.brokenAnswer, line)
    }
  }

  private static func report(
    _ code: String, _ message: String, shown: String, _ status: Int32, _ line: CommandLine
  ) -> Int32 {
    // `--quiet` writes errors too.
    guard line.options["json"] != nil, !carriesData(line) else {
      complain(shown, line)
      return status
    }
    let message = Advice.text(message, isOwn: line.options["user"] != nil)
    return StandardStream.output.write(JSONOutput.error(code: code, message: message))
      ? status : ExitStatus.outputFailed
  }

  /// Whether standard output is for the bytes of a secret or of a backup.
  private static func carriesData(_ line: CommandLine) -> Bool {
    line.options["raw"] != nil || line.words.map { $0.lowercased() } == ["backup", "-"]
  }
}
