import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The bundled client: the words of the protocol on the command line.
enum Program {
  /// How it ends besides the statuses of ``ErrorCode/exitStatus``; `identityctl(1)` lists them all.
  enum ExitStatus {
    static let success: Int32 = 0
    /// The answer is no: `check` of something that is no UUID.
    static let no: Int32 = 1
    static let usage: Int32 = 2
    static let unreachable: Int32 = 3
    /// The daemon's answer broke off, or is not the protocol.
    static let brokenAnswer: Int32 = 4
    /// Standard output took no more.
    static let outputFailed: Int32 = 5
    /// The daemon gave a code that this client does not know.
    static let unknownCode: Int32 = 9
  }

  static let known: [CommandLine.Option] = [
    .init("socket", value: "PATH", "Ask the daemon at this socket."),
    .init("json", "Write the answer as one JSON document."),
    .init("quiet", "Write nothing but errors; the exit status tells."),
    .init("format", value: "FORM", "Write UUIDs as hyphen (default), plain, urn or upper."),
    .init("version", "Show the version, and end."),
    .init("help", "Show this help, and end."),
  ]

  /// Runs the client to its end.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      let line = try CommandLine(Array(Swift.CommandLine.arguments.dropFirst()), known)
      if line.options["help"] != nil { return write(try help(about: line.words)) }
      if line.options["version"] != nil { return write("identityctl \(Version.program)\n") }
      guard !line.words.isEmpty else { throw CommandLine.UsageError("there is no verb") }
      return try ask(line)
    } catch let failure as DaemonConnection.Failure {
      complain("\(failure)")
      if case .unreachable = failure { return ExitStatus.unreachable }
      return ExitStatus.brokenAnswer
    } catch {
      complain("\(error); see 'identityctl --help'")
      return ExitStatus.usage
    }
  }

  private static func ask(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    var connection = try DaemonConnection(path: line.options["socket"] ?? DaemonConnection.defaultPath)
    let answer = try connection.ask(DaemonConnection.request(line.words))
    let isQuiet = line.options["quiet"] != nil
    if line.options["json"] != nil, !isQuiet {
      guard StandardStream.output.write(JSONOutput(format).document(answer)) else { return ExitStatus.outputFailed }
    } else if case .error(let code, let text) = answer.final {
      complain("\(text) (\(code))")
    } else if !isQuiet {
      let output = TextOutput(format, isForPeople: StandardStream.output.isTerminal)
      guard StandardStream.output.write(output.text(answer, to: line.words)) else { return ExitStatus.outputFailed }
    }
    return status(of: answer)
  }

  private static func status(of answer: DaemonConnection.Answer) -> Int32 {
    switch answer.final {
    case .ok(let content): content.words == ["invalid"] ? ExitStatus.no : ExitStatus.success
    case .error(let code, _): ErrorCode(rawValue: "\(code)")?.exitStatus ?? ExitStatus.unknownCode
    case .row: ExitStatus.brokenAnswer
    }
  }

  private static func write(_ text: String) -> Int32 {
    StandardStream.output.write(text) ? ExitStatus.success : ExitStatus.outputFailed
  }

  private static func complain(_ text: String) { StandardStream.error.write("identityctl: \(text)\n") }

  /// `--help`: everything, or what is known of one verb.
  private static func help(about words: [String]) throws(CommandLine.UsageError) -> String {
    let verbs = VerbTable.verbs(beginningWith: words.map { Text($0) })
    guard !verbs.isEmpty else { throw CommandLine.UsageError("no verb begins with '\(words.joined(separator: " "))'") }
    let width = verbs.map(\.usage.count).max() ?? 0
    let list = verbs.map { verb in
      "  \(verb.usage)\(String(repeating: " ", count: width - verb.usage.count))  \(verb.summary)\n"
    }.joined()
    guard words.isEmpty else { return list }
    return """
      identityctl [OPTION…] VERB…

      Asks identityd who this machine is, and what is installed on it.

      Verbs:
      \(list)
      Options:
      \(CommandLine.help(known))
      See identityctl(1) and identityd-protocol(7).

      """
  }
}
