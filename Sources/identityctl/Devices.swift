import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

extension DaemonConnection.Answer {
  /// Whether the answer is an empty word alone.
  var isEmptyWord: Bool {
    guard case .ok(let content) = final else { return false }
    return content.words == [""] && content.attributes.isEmpty && rows.isEmpty
  }

  /// Keeps the other devices that nothing was heard from for a time, or never.
  ///
  /// - Parameter text: the time in seconds, as in `--stale`.
  mutating func keepDevices(silentFor text: String) throws(CommandLine.UsageError) {
    let silence = Int64(try Options.microseconds(text, of: "stale") / 1_000)
    let now = Clock.realtimeMilliseconds
    rows.removeAll { row in
      guard row["self"] != "yes" else { return true }
      guard let seen = row["seen"].flatMap({ Timestamp(parsing: $0) }) else { return false }
      return now - seen.milliseconds < silence
    }
  }
}
