import IdentityServer
import LinuxSystem
import Systemd

/// Where the daemon's log goes: to the journal with fields where standard error is the journal, else to standard error as
/// plain lines.
final class LogOutput {
  /// Entries that matter less are left out.
  var level: LogLevel
  private let isJournal = Journal.isStandardError
  private let standardError = StandardStream.error

  init(level: LogLevel) { self.level = level }

  /// Writes one entry.
  func write(_ entry: LogEntry) {
    guard entry.level <= level else { return }
    if isJournal, (try? Journal.send(fields(of: entry))) != nil { return }
    let prefix = entry.level <= .warning ? "\(entry.level.name): " : ""
    standardError.write("identityd: \(prefix)\(entry.text)\n")
  }

  private func fields(of entry: LogEntry) -> [(name: String, value: [UInt8])] {
    let own = [
      ("MESSAGE", entry.text), ("MESSAGE_ID", entry.messageID), ("PRIORITY", "\(entry.level.rawValue)"),
      ("SYSLOG_IDENTIFIER", "identityd"),
    ]
    return (own + entry.fields).map { ($0.0, Array($0.1.utf8)) }
  }
}
