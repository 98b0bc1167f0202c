package import IdentityCore
package import IdentityStore
import IdentityWire

/// The importance of a log entry, by the priorities of syslog(3).
package enum LogLevel: Int, CaseIterable, Comparable, Sendable {
  case error = 3
  case warning = 4
  case notice = 5
  case info = 6
  case debug = 7

  /// The name of the level in `[Log] Level=` and `--log-level`.
  package var name: String {
    switch self {
    case .error: "err"
    case .warning: "warning"
    case .notice: "notice"
    case .info: "info"
    case .debug: "debug"
    }
  }

  /// Creates a level from its name. Returns nil for an unknown name.
  package init?(name: String) {
    guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  /// Orders by importance: a more important level is less.
  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// One entry for the journal, or a line for standard error. Each text in an entry is a single line; see ``LogText``.
package struct LogEntry: Sendable {
  /// The importance.
  package let level: LogLevel
  /// The text for people.
  package let text: String
  /// The kind of entry, for programs: the `MESSAGE_ID` of systemd.journal-fields(7), 32 hexadecimal digits.
  package let messageID: String
  /// Further journal fields.
  package let fields: [(name: String, value: String)]
  /// The party that caused the entry.
  package let originator: Originator

  /// Returns the text with commands that reach this daemon.
  ///
  /// - Parameter isOwn: whether the daemon is that of a user.
  package func text(isOwn: Bool) -> String { Advice.text(text, isOwn: isOwn) }
}

/// The function that takes log entries. Only the loop's thread calls the function, and the call never blocks.
package typealias Log = (LogEntry) -> Void

/// Everything that is logged, each kind with its own `MESSAGE_ID` and its originator. No entry contains a secret. Text
/// from outside the daemon is escaped.
package enum LogEvent: Sendable {
  case started(socket: String)
  case startRefused(String)
  case stopping
  case stopped
  case store(StoreNoticeText)
  case noMachineIdentifier(String, by: Originator)
  case deviceMade(UUID, Origin, Cause, by: Originator)
  case appInstalled(Text, by: Originator)
  case appUninstalled(Text, by: Originator)
  case appReplaced(Text, Text, by: Originator)
  case appSuspended(Text, by: Originator)
  case appResumed(Text, by: Originator)
  case identifierChanged(Scope, Cause, by: Originator)
  case deviceSuspected(Cause)
  case machineChanged(Cause)
  case machineResumed
  case provisioned
  case provisionFailed(String)
  case systemChanged(VersionReport)
  case systemUnknown(String)
  case sealed
  case itemsLocked(String)
  case itemsOpened
  case secretDamaged(String, by: Originator)
  case keyRotated(KeySource)
  case recoveryKeySet
  case keyRecovered(KeySource)
  case proofKeyMade(Text, signs: Timestamp, by: Originator)
  case proofKeyLocked(Text)
  case proofKeyEnded(Text, by: Originator)
  case unusedForgotten(Int)
  case manifestFault(String)
  case manifestsInOrder
  case connectionsTakenOver(Int, closed: Int)
  case handoverUnreadable(String)
  case notServing(String)
  case configurationLoaded
  case configurationWarning(String)
  case configurationRefused(String)
  case managerNotTold(String)
  case connectionRefused(reason: String, by: Originator)
  case acceptPaused(String)
  case noStopTimer(String)
  case storeNotClosed(String)
  case credentialRefused(CredentialRequest, owner: UInt32?, isOwnDaemon: Bool, Refusal, by: Originator)
  case connectionFailed(app: Text, processID: Int32, reason: String, by: Originator)
  case entriesDropped(Int)
  case entriesSuppressed(Principal?, Int)

  /// The level and text of a notice of the store.
  package struct StoreNoticeText: Sendable {
    let level: LogLevel
    let text: String
  }

  /// The log entry of the event.
  package var entry: LogEntry {
    switch self {
    case .started(let socket):
      make(.notice, "bceca82c7e264512b87524002f21a3a6", "Serving on \(socket).", [("IDENTITYD_SOCKET", socket)])
    case .startRefused(let reason): make(.error, "037eff59b2e749b18d2a87ee247c212d", reason)
    case .stopping: make(.notice, "510cc04e694e471d98b7e1f458c86161", "Stopping.")
    case .stopped: make(.notice, "2a72676ada9c42ce934e0692089f4e02", "Stopped.")
    case .store(let notice): make(notice.level, "59a29e58e0284377a5b3e5ec52d7320d", notice.text)
    case .noMachineIdentifier(let reason, _):
      make(.warning, "f4d38141d31d44e4ad910def59c2d242", "The new device identifier is random: \(reason).")
    case .deviceMade(let value, let origin, let cause, _):
      make(
        .notice, "5dc79c7eefe14a028ebaf17b3228b4e9",
        "The device identifier is \(value) from now on (\(cause.rawValue)).",
        [
          ("IDENTITYD_DEVICE", "\(value)"), ("IDENTITYD_ORIGIN", origin.rawValue),
          ("IDENTITYD_CAUSE", cause.rawValue),
        ])
    case .identifierChanged(let scope, let cause, _):
      make(
        .notice, "465000a1b1514da98745b0620ad2dc1a",
        "A new \(scope.level.rawValue) identifier is in force (\(cause.rawValue)).",
        [
          ("IDENTITYD_APP", scope.app.map { "\($0)" } ?? ""),
          ("IDENTITYD_VENDOR", scope.vendor.map { "\($0)" } ?? ""), ("IDENTITYD_CAUSE", cause.rawValue),
        ])
    case .deviceSuspected(.cloned):
      make(
        .warning, "2a561078c34e443abbb2a1560fb8d1c2",
        "Another machine speaks for this device, because one is a copy of the other (cloned). On the copy, run 'identityctl renew device'; on the original, run 'identityctl machine acknowledge'.",
        [("IDENTITYD_CAUSE", Cause.cloned.rawValue)])
    case .deviceSuspected(let cause):
      make(
        .warning, "2a561078c34e443abbb2a1560fb8d1c2",
        "This may be another machine (\(cause.rawValue)); the identifiers were kept. To replace the device identifier, run 'identityctl renew device'; if it is the same machine, run 'identityctl machine acknowledge'.",
        [("IDENTITYD_CAUSE", cause.rawValue)])
    case .machineChanged(let cause):
      make(
        .warning, "8671cdb7210643ae93a3bafbf2cc5afb",
        "This is another machine than before (\(cause.rawValue)), and its identifiers were renewed. The former ones come back with the former machine. If the change is intended, run 'identityctl machine acknowledge', which deletes push tokens and items that are left to the former machine.",
        [("IDENTITYD_CAUSE", cause.rawValue)])
    case .machineResumed:
      make(
        .notice, "f1b7c3de52a94e0d9d6c48e20b7a5f13",
        "The machine goes on from a snapshot: sessions have other identifiers from now on.")
    case .provisioned:
      make(
        .notice, "7c0a9d3f4b1e4c67a58e21d6f93b0c48",
        "The machine has the identity that its credentials give at a first start.")
    case .provisionFailed(let reason):
      make(
        .error, "b94e2d7a06f1483ca1c5e80f7d2639be",
        "The machine was not given the identity of its credentials: \(reason). Correct that, and restart identityd before anything is stored."
      )
    case .systemChanged(let report):
      make(
        .notice, "303b534fb269405abc1cb56e1d5f27e0",
        "The system is \(report.release.text) from now on (\(report.state.rawValue)).",
        [("IDENTITYD_STATE", report.state.rawValue)])
    case .systemUnknown(let reason):
      make(.info, "c6a1b6a1f10c4715aa63c8fe4b3c09bd", "The version of the system is unknown: \(reason).")
    case .sealed:
      make(.notice, "557c5a8f492444d29e6889d6cbd3ea62", "The store is sealed: the next start begins a new store.")
    case .itemsLocked(let reason): make(.error, "7d6d8372fc4e49f4af607cde9ae1bede", "Items are unavailable: \(reason).")
    case .itemsOpened: make(.notice, "faa105508e734a7aa7ca33493775770d", "Items are available again.")
    case .secretDamaged(let text, _): make(.error, "c1d9497b3f22408eb22e8cf9f2ef7688", text)
    case .keyRotated(let source):
      make(
        .notice, "7166d8143a1d4ee7bc71eacafe380721",
        "The data key is now wrapped in a new master key (\(source.rawValue)).")
    case .recoveryKeySet:
      make(.notice, "9fbefa8dd31b47a0a76c2a6469748900", "The data key is now wrapped in a new recovery key as well.")
    case .keyRecovered(let source):
      make(
        .notice, "5a3a1d7bf0f34a21b4d54125ca052dfc",
        "The recovery key opened the data key, which is now wrapped in the present master key (\(source.rawValue)).")
    case .proofKeyMade(let key, let signs, _):
      make(
        .notice, "2f6b1c9e04d74a58b3e7a1d85c60f942", "The proof key \(key) is published, and signs from \(signs).",
        [("IDENTITYD_PROOF_KEY", "\(key)")])
    case .proofKeyLocked(let key):
      make(
        .warning, "8d13e5a7b2c94f60a4f8c61e907b35d2",
        "The proof key \(key) belongs to another machine and signs nothing here. It comes back with that machine.",
        [("IDENTITYD_PROOF_KEY", "\(key)")])
    case .proofKeyEnded(let key, _):
      make(
        .notice, "c4a09f7e15b3482d8e6d20b9f7315ac8",
        "The proof key \(key) has ended. Another one is made when a proof is asked for; publish the key set again.",
        [("IDENTITYD_PROOF_KEY", "\(key)")])
    case .manifestFault(let text): make(.error, "5c97b254880d4140af7d4cb07538a7d7", text)
    case .manifestsInOrder: make(.notice, "a5df2946860d45b0b12253fc6538521b", "The manifests are in order again.")
    case .connectionsTakenOver(let kept, let closed):
      make(
        .info, "45da7f9808454b68b189290ddbf52e59",
        "Connections of the previous run: \(kept) continue, \(closed) were closed.")
    case .handoverUnreadable(let reason):
      make(
        .warning, "1ca621af64ac404db300757ce118e4fb",
        "A connection of the previous run could not be continued: \(reason).")
    case .notServing(let reason):
      make(.error, "d6ecd60ffaf9432a8e87720f2c83aa3a", "Waiting for requests failed and is tried again: \(reason).")
    case .appInstalled(let app, _):
      make(.info, "a39a97467e6e44669648256c00b19d26", "\(app) is installed.", [("IDENTITYD_APP", "\(app)")])
    case .appUninstalled(let app, _):
      make(.info, "9da229fef1c24ebe824d403660cb465f", "\(app) is uninstalled.", [("IDENTITYD_APP", "\(app)")])
    case .appReplaced(let previous, let app, _):
      make(
        .notice, "d3b07e5c94f14a7d8c61f20b5ae97438", "\(app) has taken the place of \(previous).",
        [("IDENTITYD_APP", "\(app)")])
    case .appSuspended(let app, _):
      make(
        .notice, "5e0a3f4b7c1d4f0e9b62d8a1c47f2e95",
        "\(app) is suspended, because its manifest is missing. Its identifiers and data stay until it is back.",
        [("IDENTITYD_APP", "\(app)")])
    case .appResumed(let app, _):
      make(.info, "0c9d6e2a81f74b5fa3e8d7b649c1502d", "\(app) is resumed.", [("IDENTITYD_APP", "\(app)")])
    case .unusedForgotten(let count):
      make(
        .notice, "6a2f0c1be3d64f1f8d0c9b7a3e58d214",
        "Uninstalled \(count) apps that were unused or suspended for too long ([Apps] ForgetUnused=, ForgetSuspended=)."
      )
    case .configurationLoaded: make(.info, "5bc309105b5d4354b2a50ae729fa5b14", "The configuration was loaded.")
    case .configurationWarning(let text): make(.warning, "bd40656b5a1d4218b7427108d1dad62d", text)
    case .configurationRefused(let text):
      make(
        .error, "9e1a64351e06491d839f2217f1a958d7", "Configuration refused, the previous one stays in force: \(text)")
    case .connectionRefused(let reason, _):
      make(.warning, "83dc46dbddc34885b4f82aa89e1ccaa1", "A connection was refused: \(reason).")
    case .credentialRefused(let request, let owner, let isOwnDaemon, let refusal, _):
      make(
        .error, "d0b4ca5d10414e7a9c2c1b6f0f3b7e52", request.reason(owner: owner, isOwnDaemon: isOwnDaemon, refusal),
        [("IDENTITYD_UNIT", "\(request.unit)"), ("IDENTITYD_CREDENTIAL", "\(request.name)")])
    case .managerNotTold(let reason):
      make(
        .warning, "a4edfedef44240d4a5734fac60ad6743",
        "The service manager could not be notified that identityd is ready: \(reason).")
    case .noStopTimer(let reason):
      make(
        .warning, "35e10089bb0046dfa67d9844766c6ca6",
        "The stop has no time limit and waits for every client: \(reason).")
    case .storeNotClosed(let reason):
      make(
        .error, "bcf187fa233841df8895e02a2ef019d3",
        "The store was not closed cleanly, but nothing is lost: \(reason).")
    case .acceptPaused(let reason):
      make(.error, "6bf6f226ed654e42839616fa8d1ac1b0", "Accepting connections is paused: \(reason).")
    case .connectionFailed(let app, let processID, let reason, _):
      make(
        .debug, "506a20f91c7c40bfbe4309ade1ed5750", "The connection of \(app) broke: \(reason).",
        [("IDENTITYD_APP", "\(app)"), ("IDENTITYD_PEER_PID", "\(processID)")])
    case .entriesDropped(let count):
      make(
        .warning, "6804e539700a416a89a70a0ecc1aeaf4",
        "Entries are missing here, because the log was too slow or could not be written: \(count).",
        [("IDENTITYD_DROPPED", "\(count)")])
    case .entriesSuppressed(let principal, let count):
      make(
        .warning, "b93868962ab3408ab2e4cd37ed88ce1d",
        "Entries that \(principal?.description ?? "other peers") caused are missing here, because they were too many: \(count).",
        [("IDENTITYD_PRINCIPAL", principal?.description ?? ""), ("IDENTITYD_SUPPRESSED", "\(count)")])
    }
  }

  /// The party that causes an entry of this kind. ``LogShares`` limits the entries of peers without admin rights.
  private var originator: Originator {
    switch self {
    case .noMachineIdentifier(_, let originator), .deviceMade(_, _, _, let originator),
      .appInstalled(_, let originator), .appUninstalled(_, let originator),
      .appReplaced(_, _, let originator), .appSuspended(_, let originator), .appResumed(_, let originator),
      .identifierChanged(_, _, let originator), .proofKeyMade(_, _, let originator), .proofKeyEnded(_, let originator),
      .secretDamaged(_, let originator),
      .connectionRefused(_, let originator), .credentialRefused(_, _, _, _, let originator),
      .connectionFailed(_, _, _, let originator):
      originator
    case .sealed, .machineResumed, .keyRotated, .recoveryKeySet, .keyRecovered, .configurationLoaded,
      .configurationWarning, .configurationRefused:
      .admin
    case .started, .startRefused, .stopping, .stopped, .store, .deviceSuspected, .machineChanged, .provisioned,
      .proofKeyLocked,
      .provisionFailed, .systemChanged,
      .systemUnknown, .itemsLocked, .itemsOpened, .unusedForgotten, .manifestFault, .manifestsInOrder,
      .connectionsTakenOver, .handoverUnreadable, .notServing, .managerNotTold, .acceptPaused, .noStopTimer,
      .storeNotClosed, .entriesDropped, .entriesSuppressed:
      .daemon
    }
  }

  private func make(
    _ level: LogLevel, _ messageID: String, _ text: String, _ fields: [(name: String, value: String)] = []
  ) -> LogEntry {
    LogEntry(
      level: level, text: LogText.line(text), messageID: messageID,
      fields: fields.map { ($0.name, LogText.line($0.value)) }, originator: originator)
  }
}

extension CredentialRequest {
  /// The reason why a unit does not get the credential, with the command that stores it.
  fileprivate func reason(owner: UInt32?, isOwnDaemon: Bool, _ refusal: Refusal) -> String {
    let reason = "The start of \(unit) fails, because its credential \(name) cannot be given: \(refusal.text)."
    guard case .notFound = refusal else { return reason }
    let user = isOwnDaemon ? " --user" : ""
    let of = isOwnDaemon ? "" : owner.map { " owner=\($0)" } ?? ""
    let command = "identityctl\(user) credential put \(Self.quoted(unit)) \(Self.quoted(name))\(of) --data-file=-"
    return "\(reason) To store it, run this with the secret as input, and start the unit again: \(command)"
  }

  /// Returns a word for a shell. The name of a credential can be chosen by a user, and the command is for an admin.
  private static func quoted(_ word: Text) -> String {
    let text = "\(word)"
    let isPlain = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || "-._@:".utf8.contains(byte)
    }
    return isPlain
      ? text : "'\(text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
  }
}

extension Release {
  /// The release in words.
  fileprivate var text: String {
    (distribution.map { "\($0) " } ?? "") + "\(version)" + (build.map { " (build \($0))" } ?? "")
  }
}
