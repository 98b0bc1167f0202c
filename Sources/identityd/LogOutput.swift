import IdentityCore
import IdentityServer
import LinuxSystem
import Systemd

/// The output of the daemon's log: the journal with fields if standard error goes to the journal, else plain lines on
/// standard error. The daemon waits for neither.
final class LogOutput {
  /// The least important level that is still written.
  var level = LogLevel.info
  /// Whether the commands in the log are for the own daemon of a user.
  var isOwn = false
  private var thread: LogThread?

  /// Starts the log thread. Entries written before are dropped.
  func start() throws(SystemError) {
    guard thread == nil else { return }
    var sink = LogSink(isOwn: isOwn)
    thread = try LogThread { sink.write($0) }
  }

  /// Queues one entry for writing. Never blocks.
  func write(_ entry: LogEntry) { if entry.level <= level { thread?.put(entry) } }

  /// The numbers of entries that wait, and that are missing.
  var backlog: LogBacklog { thread?.backlog ?? LogBacklog(waiting: 0, lost: 0, suppressed: 0) }

  /// Logs the reason for a refused start, also without a log thread.
  ///
  /// Without the thread, the entry is written only if standard error takes it without blocking.
  func refuse(_ entry: LogEntry) {
    do {
      try start()
      write(entry)
    } catch {
      StandardStream.error.writeAtOnce(LogSink(isOwn: isOwn).line(of: entry))
    }
  }

  /// Waits for queued entries to be written, for at most `logEndMilliseconds`. The process exits after this.
  func finish() { thread?.finish(within: Bound.logEndMilliseconds) }
}

/// Writes log entries, on the log thread.
private struct LogSink {
  private let isJournal = Journal.isStandardError
  private let standardError = StandardStream.error
  /// Whether the last line on standard error failed, perhaps halfway.
  private var isTorn = false
  private let isOwn: Bool

  init(isOwn: Bool) { self.isOwn = isOwn }

  /// Writes one entry, and blocks until it is written.
  ///
  /// - Returns: false if the entry could not be written.
  mutating func write(_ entry: LogEntry) -> Bool {
    if isJournal, (try? Journal.send(fields(of: entry))) != nil { return true }
    // Another process that shares the stream may have made it non-blocking.
    let isWritten = standardError.write(Array(((isTorn ? "\n" : "") + line(of: entry)).utf8), waits: true)
    isTorn = !isWritten
    return isWritten
  }

  func line(of entry: LogEntry) -> String {
    let prefix = entry.level <= .warning ? "\(entry.level.name): " : ""
    return "identityd: \(prefix)\(entry.text(isOwn: isOwn))\n"
  }

  private func fields(of entry: LogEntry) -> [(name: String, value: [UInt8])] {
    let own = [
      ("MESSAGE", entry.text(isOwn: isOwn)),
      ("MESSAGE_ID", entry.messageID), ("PRIORITY", "\(entry.level.rawValue)"),
      ("SYSLOG_IDENTIFIER", "identityd"),
    ]
    return (own + entry.fields).map { ($0.0, Array($0.1.utf8)) }
  }
}
