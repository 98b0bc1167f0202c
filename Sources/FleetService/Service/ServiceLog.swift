import IdentityWire
import LinuxSystem

/// The log of the service: lines on standard error, with the priority in front if they go to the journal (sd-daemon(3)).
package struct ServiceLog: Sendable {
  private let isJournal: Bool
  /// Whether the commands in the log are for the own daemon of a user.
  package var isOwn = false

  /// Creates a log.
  ///
  /// - Parameter isJournal: whether standard error goes to the journal.
  package init(isJournal: Bool) { self.isJournal = isJournal }

  /// Logs something that an admin may want to know.
  package func note(_ text: String) { write(isJournal ? "<5>" : "identity-fleet: ", text) }

  /// Logs something that an admin should look at.
  package func warn(_ text: String) { write(isJournal ? "<4>" : "identity-fleet: warning: ", text) }

  /// Logs the reason why the service ends.
  package func fail(_ text: String) { write(isJournal ? "<3>" : "identity-fleet: err: ", text) }

  private func write(_ prefix: String, _ text: String) {
    let line = String(
      String.UnicodeScalarView(
        Advice.text(text, isOwn: isOwn).unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
    StandardStream.error.write("\(prefix)\(line)\n")
  }
}
