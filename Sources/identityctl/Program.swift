import ClientFormats
import ClientSecrets
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The bundled client: the words of the protocol on the command line.
enum Program {
  /// How it ends besides the statuses of ``ErrorCode/exitStatus``; `identityctl(1)` lists them all.
  enum ExitStatus {
    static let success: Int32 = 0
    /// The answer is no; see ``Predicate``.
    static let no: Int32 = 1
    static let usage: Int32 = 2
    /// No daemon can be reached, or the daemon may be another user's.
    static let unreachable: Int32 = 3
    /// The daemon's answer broke off, or is not the protocol.
    static let brokenAnswer: Int32 = 4
    /// Standard output took no more.
    static let outputFailed: Int32 = 5
    /// What `wait` waited for did not happen in time.
    static let timedOut: Int32 = 6
    /// A file cannot be read or written or is not what it should be, or there is no passphrase.
    static let fileFailed: Int32 = 7
    /// `check` found something that does not work.
    static let checkFailed: Int32 = 8
    /// The daemon gave a code that this client does not know.
    static let unknownCode: Int32 = 9
  }

  /// Why it ends without an answer that could be shown.
  struct Ending: Error {
    let status: Int32
    let text: String
  }

  /// Runs the client to its end.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      // Where one is closed, the answer would otherwise be written into the daemon's socket.
      try StandardStream.reserve()
      let line = try CommandLine(Array(Swift.CommandLine.arguments.dropFirst()), Options.known)
      if line.options["help"] != nil { return write(try Help.text(about: line.words)) }
      if line.options["version"] != nil { return write("identityctl \(Version.program)\n") }
      guard let first = line.words.first?.lowercased() else { throw CommandLine.UsageError("there is no verb") }
      try Options.check(line)
      return switch first {
      case "monitor": try follow(line, untilFirst: false)
      case "wait": try follow(line, untilFirst: true)
      case "backup": try backUp(line)
      case "restore": try restore(line)
      case "check" where line.words.count == 1: examine(line)
      case "stats": try showStatistics(line)
      case "top": try top(line)
      default: try ask(line)
      }
    } catch let failure as DaemonConnection.Failure {
      complain("\(failure)")
      return switch failure {
      case .unreachable, .untrusted: ExitStatus.unreachable
      case .busy, .closed, .malformed, .timeUp, .outputClosed, .interrupted: ExitStatus.brokenAnswer
      }
    } catch let ending as Ending {
      complain(ending.text)
      return ending.status
    } catch let error as SystemError {
      complain("\(error)")
      return ExitStatus.fileFailed
    } catch {
      complain("\(error); see 'identityctl --help'")
      return ExitStatus.usage
    }
  }

  /// Sends one request and shows the answer.
  static func ask(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let predicate = try Predicate(line.words)
    let words = try wordsWithToken(try wordsWithFile(predicate?.words ?? line.words, line), line)
    var request = try request(words, line)
    defer { request.wipe() }
    var connection = try DaemonConnection(to: DaemonSocket(line.options["socket"]))
    let answer = try connection.ask(line: request)
    if line.options["raw"] != nil { return try showSecret(answer, to: line) }
    return try show(answer, to: line, format, predicate)
  }

  /// The places of the operands behind a verb of two words: whatever is no attribute.
  static func operands(of words: [String]) -> [Int] {
    words.indices.dropFirst(2).filter { !WordEncoder.looksLikeAttribute(Array(words[$0].utf8)) }
  }

  /// Writes an answer in the way the options ask for.
  ///
  /// - Returns: the exit status that goes with it.
  static func show(
    _ answer: DaemonConnection.Answer, to line: CommandLine, _ format: UUIDFormat, _ predicate: Predicate? = nil
  ) throws -> Int32 {
    let isQuiet = line.options["quiet"] != nil
    if line.options["json"] != nil, !isQuiet {
      guard StandardStream.output.write(JSONOutput(format).document(answer)) else { return ExitStatus.outputFailed }
    } else if case .error(let code, let text) = answer.final {
      complain("\(text) (\(code))")
    } else if !isQuiet, predicate?.isSilent != true {
      // What a restore changes has no first word that a script could do with.
      let isForPeople = StandardStream.output.isTerminal || line.words.first == "restore"
      let output = TextOutput(format, isForPeople: isForPeople)
      guard StandardStream.output.write(output.text(answer, to: line.words)) else { return ExitStatus.outputFailed }
    }
    if case .ok(let content) = answer.final, let predicate { return predicate.status(content) }
    return status(of: answer)
  }

  /// The status for an answer.
  static func status(of answer: DaemonConnection.Answer) -> Int32 {
    switch answer.final {
    case .ok: ExitStatus.success
    case .error(let code, _): status(of: code)
    case .row, .event: ExitStatus.brokenAnswer
    }
  }

  /// The status for a code of the protocol.
  static func status(of code: Text) -> Int32 { ErrorCode(rawValue: "\(code)")?.exitStatus ?? ExitStatus.unknownCode }

  private static func write(_ text: String) -> Int32 {
    StandardStream.output.write(text) ? ExitStatus.success : ExitStatus.outputFailed
  }

  /// Writes one line to standard error, without hidden characters: the text may quote the daemon.
  static func complain(_ text: String) { StandardStream.error.write("identityctl: \(WordEncoder.visible(text))\n") }
}
