import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `monitor` and `wait`: write events as they happen, across restarts of the daemon.
extension Program {
  /// Writes events as they happen.
  ///
  /// - Parameter untilFirst: whether to end after the first event, as `wait` does.
  static func follow(_ line: CommandLine, untilFirst: Bool) throws -> Int32 {
    let following = try Following(line, untilFirst: untilFirst)
    // If the reader of the output exits, this process must end with a status and not by SIGPIPE.
    ProcessGuard.ignoreFatalWriteSignals()
    return try following.run()
  }
}

/// One run of `monitor` or `wait`.
private struct Following {
  private let line: CommandLine
  private let untilFirst: Bool
  private let isQuiet: Bool
  private let daemon: DaemonSocket
  private let topics: [String]
  private let since: Int64?
  private let epoch: Text?
  private let patience: Patience
  private let output: EventOutput

  init(_ line: CommandLine, untilFirst: Bool) throws {
    self.line = line
    self.untilFirst = untilFirst
    isQuiet = line.options["quiet"] != nil
    daemon = try Program.socket(line)
    topics = Array(line.words.dropFirst())
    if let word = topics.first(where: { WordEncoder.looksLikeAttribute(Array($0.utf8)) }) {
      throw CommandLine.UsageError("'\(word)' is not a topic")
    }
    guard !untilFirst || !topics.isEmpty else { throw CommandLine.UsageError("'wait' requires a topic") }
    since = try line.options["since"].map(Self.sequence)
    epoch = line.options["epoch"].map { Text($0) }
    guard epoch == nil || since != nil else { throw CommandLine.UsageError("--epoch requires --since") }
    let time = try line.options["timeout"].map { try Options.microseconds($0, of: "timeout") }
    patience = Patience(
      until: time.map { Clock.monotonicMicroseconds + $0 }, needsOutput: !(untilFirst && isQuiet))
    output = EventOutput(try UUIDFormat(named: line.options["format"] ?? "hyphen"), try Self.style(line))
  }

  func run() throws(DaemonConnection.Failure) -> Int32 {
    var follower = EventFollower(of: daemon, topics: topics, since: since, epoch: epoch)
    var hasMissed = false
    while true {
      let step: EventFollower.Step
      do throws(DaemonConnection.Failure) {
        step = try follower.next(patience)
      } catch .timeUp {
        let status = Program.ExitStatus.timedOut
        return isQuiet ? status : Program.fail("no event happened within the time of --timeout", status, line)
      } catch .outputClosed {
        return hasMissed ? ErrorCode.gone.exitStatus : Program.ExitStatus.outputFailed
      }
      switch step {
      case .event(let event):
        guard untilFirst && isQuiet || StandardStream.output.write(output.line(event, epoch: follower.epoch)) else {
          return hasMissed ? ErrorCode.gone.exitStatus : Program.ExitStatus.outputFailed
        }
        if untilFirst { return Program.ExitStatus.success }
      case .lost(.busy(let why)): note("the daemon is busy (\(why)); retrying")
      case .lost: note("the daemon is gone; waiting until it is back")
      case .found: note("the daemon is back")
      case .missed(let why):
        if untilFirst {
          return Program.fail("events may have been missed: \(why)", ErrorCode.gone.exitStatus, line)
        }
        hasMissed = true
        Program.complain("events may have been missed: \(why); continuing with new events", line)
      case .refused(let code, let text):
        return Program.fail(code, text, line)
      }
    }
  }

  /// Reports a condition that is not an error.
  private func note(_ text: String) { if !isQuiet { Program.complain(text, nil) } }

  private static func style(_ line: CommandLine) throws(CommandLine.UsageError) -> EventOutput.Style {
    line.options["json"] != nil ? .json : .text(isColoured: try Program.isColoured(line, .output))
  }

  private static func sequence(_ text: String) throws(CommandLine.UsageError) -> Int64 {
    guard Options.isDecimal(text), let sequence = Int64(text) else {
      throw CommandLine.UsageError("--since cannot be '\(text)'; allowed: the number of an event")
    }
    return sequence
  }
}
