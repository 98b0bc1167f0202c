import IdentityCore
import IdentityServer
import LinuxSystem
import Systemd

/// Where the daemon's log goes: to the journal with fields where standard error is the journal, else to standard error as
/// plain lines. Neither is waited for.
final class LogOutput {
  /// Entries that matter less are left out.
  var level = LogLevel.info
  private var thread: LogThread?

  /// Starts the thread that writes. Nothing is logged before.
  func start() throws(SystemError) {
    guard thread == nil else { return }
    var sink = LogSink()
    thread = try LogThread { sink.write($0) }
  }

  /// Has one entry written.
  func write(_ entry: LogEntry) { if entry.level <= level { thread?.put(entry) } }

  /// What became of the entries so far.
  var backlog: LogBacklog { thread?.backlog ?? LogBacklog(waiting: 0, lost: 0) }

  /// Logs why the daemon does not start, also where there is no thread: that is the last thing said, and said only if it
  /// takes no waiting.
  func refuse(_ entry: LogEntry) {
    do {
      try start()
      write(entry)
    } catch {
      StandardStream.error.writeAtOnce(LogSink.line(of: entry))
    }
  }

  /// Waits for what was logged to be written, but not for long. The process ends then, whatever became of it.
  func finish() { thread?.finish(within: Bound.logEndMilliseconds) }
}

/// Does the writing, in the log's own thread.
private struct LogSink {
  private let isJournal = Journal.isStandardError
  private let standardError = StandardStream.error
  /// The last line failed, maybe halfway.
  private var isTorn = false

  /// Writes one entry, for as long as that takes.
  ///
  /// - Returns: false where nobody takes it.
  mutating func write(_ entry: LogEntry) -> Bool {
    if isJournal, (try? Journal.send(Self.fields(of: entry))) != nil { return true }
    // Whoever shares the stream may have set it not to block.
    let isWritten = standardError.write(Array(((isTorn ? "\n" : "") + Self.line(of: entry)).utf8), waits: true)
    isTorn = !isWritten
    return isWritten
  }

  static func line(of entry: LogEntry) -> String {
    let prefix = entry.level <= .warning ? "\(entry.level.name): " : ""
    return "identityd: \(prefix)\(entry.text)\n"
  }

  private static func fields(of entry: LogEntry) -> [(name: String, value: [UInt8])] {
    let own = [
      ("MESSAGE", entry.text), ("MESSAGE_ID", entry.messageID), ("PRIORITY", "\(entry.level.rawValue)"),
      ("SYSLOG_IDENTIFIER", "identityd"),
    ]
    return (own + entry.fields).map { ($0.0, Array($0.1.utf8)) }
  }
}
