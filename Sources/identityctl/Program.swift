import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The bundled client: sends the words of the command line as a request of the protocol.
enum Program {
  /// The exit statuses besides those of ``ErrorCode/exitStatus``. `identityctl(1)` lists all of them.
  enum ExitStatus {
    static let success: Int32 = 0
    /// The answer is no. See ``Predicate``.
    static let no: Int32 = 1
    static let usage: Int32 = 2
    /// No daemon can be reached, or the daemon may belong to another user.
    static let unreachable: Int32 = 3
    /// The daemon's answer broke off, or does not follow the protocol.
    static let brokenAnswer: Int32 = 4
    /// Standard output could not be written.
    static let outputFailed: Int32 = 5
    /// The time of `--timeout` has passed: `wait` saw no event, or the daemon sent no answer.
    static let timedOut: Int32 = 6
    /// A file cannot be read or written or has the wrong content, or there is no passphrase.
    static let fileFailed: Int32 = 7
    /// `check` found a fault.
    static let checkFailed: Int32 = 8
    /// The daemon sent an error code that this client does not know.
    static let unknownCode: Int32 = 9
    /// The file of `--output` cannot be created: EX_CANTCREAT of sysexits.h(3head), which systemd shows by that name,
    /// whereas it shows ``fileFailed`` as "NOTRUNNING" for a service.
    static let cannotCreate: Int32 = 73
  }

  /// The reason to end without an answer to show.
  struct Ending: Error {
    let status: Int32
    /// The error code of a JSON document, if another one than that of the status.
    var code: String?
    let text: String
  }

  /// Runs the client.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    var line = CommandLine()
    do {
      // If a standard stream were closed, the socket could take its number, and output would go to the daemon.
      try StandardStream.reserve()
      try line.parse(CommandLine.arguments, Options.known)
      if line.options["help"] != nil { return try help(line.words, line) }
      if line.options["version"] != nil { return write("identityctl \(Version.program)\n") }
      try Options.check(line)
      if line.options["replaces"] != nil { line.words.append("replaces=yes") }
      if line.options["previous"] != nil { line.words.append("previous=yes") }
      if Options.sendsDryRun(line) { line.words.append("dry-run=yes") }
      _ = try isColoured(line, .output)
      let isForPeople = line.options["json"] == nil && line.options["quiet"] == nil
      guard let first = line.words.first?.lowercased() else {
        guard isForPeople else { throw CommandLine.UsageError("the verb is missing") }
        return try summarize(line)
      }
      return switch first {
      case "help" where isForPeople: try help(Array(line.words.dropFirst()), line)
      case "monitor": try follow(line, untilFirst: false)
      case "wait": try follow(line, untilFirst: true)
      case "backup": try backUp(line)
      case "restore": try restore(line)
      case "check": try check(line)
      case "stats": try showStatistics(line)
      case "seal" where line.options["root"] != nil: try sealStopped(line)
      default:
        try askFleet(line) ?? manageCredentials(line) ?? verifyProof(line) ?? writeDiscovery(line)
          ?? showTelemetryVariable(line) ?? ask(line)
      }
    } catch let failure as DaemonConnection.Failure {
      return fail(failure, line)
    } catch let ending as Ending {
      return fail(ending.text, ending.status, line, code: ending.code)
    } catch let error as SystemError {
      return fail("\(error)", ExitStatus.fileFailed, line)
    } catch let error as CommandLine.UsageError {
      let correction = error.unknownOption.flatMap { Correction(ofOption: $0, with: line.words) }
      return fail("\(error); \(correction?.question ?? "see 'identityctl --help'")", ExitStatus.usage, line)
    } catch {
      return fail("\(error); see 'identityctl --help'", ExitStatus.usage, line)
    }
  }

  /// Shows the help for the commands that begin with these words. Needs no daemon.
  private static func help(_ words: [String], _ line: CommandLine) throws -> Int32 {
    let text = try Help(width: width(of: .output)).text(about: words, isWhole: line.options["all"] != nil)
    return show(text, line) ? ExitStatus.success : ExitStatus.outputFailed
  }

  /// Returns how long to wait for the daemon: 25 seconds without any data, as D-Bus does, or the time of `--timeout`.
  static func patience(_ line: CommandLine) throws(CommandLine.UsageError) -> Patience {
    let time = try line.options["timeout"].map { (text) throws(CommandLine.UsageError) in
      try Options.microseconds(text, of: "timeout")
    }
    return Patience(until: nil, silence: time ?? 25_000_000)
  }

  /// Connects to the daemon, for at most the time that a request may take.
  static func connect(_ line: CommandLine, _ patience: Patience) throws -> DaemonConnection {
    let limit = patience.silence.map { Clock.monotonicMicroseconds + $0 }
    return try DaemonConnection(to: socket(line), Patience(until: limit))
  }

  /// Returns the socket that the options name, else the usual one.
  static func socket(_ line: CommandLine) throws(CommandLine.UsageError) -> DaemonSocket {
    guard line.options["user"] != nil else { return DaemonSocket(line.options["socket"]) }
    _ = try runtimeDirectory(line)
    return DaemonSocket(DaemonSocket.ownPath)
  }

  /// Returns the run-time directory of this user, in which the sockets of `--user` are.
  static func runtimeDirectory(_ line: CommandLine) throws(CommandLine.UsageError) -> String {
    guard line.options["socket"] == nil else {
      throw CommandLine.UsageError("'--user' cannot be combined with '--socket'")
    }
    guard let directory = Environment["XDG_RUNTIME_DIR"] else {
      throw CommandLine.UsageError("XDG_RUNTIME_DIR is not set, so there is no daemon of this user; log in as the user")
    }
    return directory
  }

  /// Sends one request and shows the answer.
  static func ask(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let predicate = try Predicate(line.words)
    var consent = try Consent(to: line)
    let words = try wordsWithToken(try wordsWithFile(predicate?.words ?? line.words, line), line)
    let sent = Command.withCanonicalUUIDs(words)
    var request = try request(sent, line)
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let known = try withKnownProvider(sent, over: &connection, patience)
    if known != sent {
      request = try self.request(known, line)
      var line = line
      line.words = known
      consent = try Consent(to: line)
    }
    if let refusal = try consent?.obtain(over: &connection, line, format, patience) {
      return try show(refusal, to: words, line, format, predicate)
    }
    if line.options["raw"] != nil {
      return try showSecret(try connection.exchange(request.takingSecret(), patience), to: line)
    }
    var answer = try connection.ask(request, patience)
    if let stale = line.options["stale"] { try answer.keepDevices(silentFor: stale) }
    return try show(answer, to: words, line, format, predicate)
  }

  /// Returns the indices of the operands after a verb of two words: all words that are not attributes.
  static func operands(of words: [String]) -> [Int] {
    words.indices.dropFirst(2).filter { !WordEncoder.looksLikeAttribute(Array(words[$0].utf8)) }
  }

  /// Writes an answer to the words of a request in the form that the options ask for.
  ///
  /// - Returns: the exit status for the answer.
  static func show(
    _ answer: DaemonConnection.Answer, to request: [String], _ line: CommandLine, _ format: UUIDFormat,
    _ predicate: Predicate? = nil
  ) throws -> Int32 {
    let isQuiet = line.options["quiet"] != nil
    let declared = ClientCommand.answer(to: request)
    if line.options["json"] != nil, !isQuiet {
      let document = JSONOutput(format).document(answer, to: request, declared)
      guard StandardStream.output.write(document) else { return ExitStatus.outputFailed }
    } else if case .error(let code, let text) = answer.final {
      return fail(code, text, line)
    } else if !isQuiet, predicate?.isSilent != true {
      // An empty name would be two quotation marks, which a shell takes for a name.
      if request.map({ $0.lowercased() }) == ["account"], answer.isEmptyWord {
        complain(
          "this device belongs to no account; to make one, run 'identityctl account create NAME', and to join one, 'identityctl account join CODE'",
          line)
      } else {
        guard show(try textOutput(format, line).text(answer, to: request, declared), line) else {
          return ExitStatus.outputFailed
        }
      }
    }
    if case .ok(let content) = answer.final, let predicate { return predicate.status(content) }
    return status(of: answer.final)
  }

  private static func textOutput(_ format: UUIDFormat, _ line: CommandLine) throws -> TextOutput {
    if StandardStream.output.isTerminal || format == .table {
      return TextOutput(format, .screen(try screen(line, .output)))
    }
    // Bare output drops attributes, and rows of `restore`, of reports and of `--dry-run` mean little without them.
    let isBare =
      line.words.first != "restore" && (line.options["key"] == nil || line.options["output"] != nil)
      && line.options["dry-run"] == nil && line.options["audience"] == nil
    return TextOutput(format, isBare ? .bare : .lines)
  }

  /// Returns the exit status for an answer.
  static func status(of final: ReplyLine) -> Int32 {
    switch final {
    case .ok: ExitStatus.success
    case .error(let code, _): status(of: code)
    case .row, .event: ExitStatus.brokenAnswer
    }
  }

  /// Returns the exit status for an error code of the protocol.
  static func status(of code: Text) -> Int32 { ErrorCode(rawValue: "\(code)")?.exitStatus ?? ExitStatus.unknownCode }

  private static func write(_ text: String) -> Int32 {
    StandardStream.output.write(text) ? ExitStatus.success : ExitStatus.outputFailed
  }

  /// Writes one line to standard error. Hidden characters are escaped, since the text may quote the daemon.
  ///
  /// - Parameter line: the command line, with whose options the commands in the text are shown; nil for a text without
  ///   commands, or with commands for another device.
  static func complain(_ text: String, _ line: CommandLine?) {
    let text = Advice.text(text, isOwn: line?.options["user"] != nil)
    StandardStream.error.write("identityctl: \(WordEncoder.visible(text))\n")
  }
}
