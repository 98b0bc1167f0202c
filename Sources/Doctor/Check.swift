package import IdentityClient
package import IdentityWire

/// A check of `identityctl check`.
package struct Check: Sendable {
  /// The name, which never changes because scripts depend on it.
  package let name: String
  /// The subject of the check, as a sentence for the manual.
  package let summary: String
  /// The facts of the check for programs. A finding may lack any of them.
  package let facts: [Verb.Field]
  private let look: @Sendable (Examination) -> Finding

  /// Declares a check.
  init(
    _ name: String, _ summary: String, facts: [Verb.Field], _ look: @escaping @Sendable (Examination) -> Finding
  ) {
    self.name = name
    self.summary = summary
    self.facts = facts
    self.look = look
  }

  /// All checks in the order of the report. A check precedes the checks that depend on it.
  package static let all: [Check] = [
    Check(
      "socket",
      "The socket belongs to root, identityd or the caller, every user can use it, and a daemon answers on it.",
      facts: [.word("path"), .number("uid"), .word("mode"), .number("owner")]
    ) { SocketFacts($0).finding },
    Check(
      "unit",
      "systemd has loaded the units, runs or can start the daemon as its user, does not restart it again and again, and starts it at boot.",
      facts: [
        .word("socket"), .word("socket-enabled"), .word("service"), .word("service-enabled"), .number("restarts"),
        .word("last-end"),
      ]
    ) { UnitFacts($0).finding },
    Check(
      "configuration",
      "The daemon accepts the configuration files, and knows each setting in them.",
      facts: [.word("refusal"), .number("warnings")]
    ) {
      ConfigurationFacts($0).finding
    },
    Check(
      "peer",
      "The daemon identifies the caller correctly; the facts name the app, the user and the rights.",
      facts: [.word("app"), .number("uid"), .word("unit"), .word("vendor"), .boolean("admin"), .word("manifest")]
    ) {
      PeerFacts($0).finding
    },
    Check(
      "machine-id",
      "The machine-id is valid, and no other machine is known to have the same one.",
      facts: [.word("file"), .word("state"), .word("device-origin"), .word("suspect"), .word("machine-change")]
    ) {
      MachineIDFacts($0).finding
    },
    Check(
      "manifests",
      "Every manifest is valid, no two conflict, only root can change them, and each names the intended users.",
      facts: [.list("folders"), .number("faults")]
    ) {
      ManifestFacts($0).finding
    },
    Check(
      "master-key",
      "The master key of the items is available, and is not a file in the state directory.",
      facts: [.word("source"), .word("reason")]
    ) {
      MasterKeyFacts($0).finding
    },
    Check(
      "proof-key",
      "The key of proofs, if there is one, can sign.",
      facts: [.word("key"), .word("reason")]
    ) {
      ProofKeyFacts($0).finding
    },
    Check(
      "store",
      "The store is in order and writable, no file of it is missing, and none that was set aside is left.",
      facts: [.word("state"), .word("reason"), .word("directory"), .number("size"), .list("set-aside")]
    ) {
      StoreFacts($0).finding
    },
    Check(
      "space",
      "The file system of the state directory can be written, and has free space and free inodes.",
      facts: [.word("directory"), .number("free-bytes"), .number("free-files")]
    ) {
      SpaceFacts($0).finding
    },
    Check(
      "clock",
      "The clock is not behind this release or the last event, and is synchronized.",
      facts: [.time("now"), .word("released"), .time("last-event"), .boolean("synchronized")]
    ) {
      ClockFacts($0).finding
    },
    Check(
      "fleet",
      "The fleet's service, if it is in use, runs, has its keys and a broker, and speaks for this device alone.",
      facts: [
        .word("service"), .word("state"), .word("broker"), .word("reason"), .number("connected"), .boolean("twin"),
        .boolean("alone"), .word("password"),
      ]
    ) { FleetFacts($0).finding },
    Check(
      "permissions",
      "State, socket and configuration have owners and modes that keep other users out.",
      facts: [.word("state"), .number("owner"), .word("mode"), .number("files"), .word("socket-mode")]
    ) {
      PermissionFacts($0).finding
    },
    Check(
      "versions",
      "The running daemon is of the same release as this program.",
      facts: [.word("daemon"), .word("client"), .number("protocol"), .number("client-protocol")]
    ) { VersionFacts($0).finding },
  ]

  /// Returns the kind of a fact.
  func kind(of fact: String) -> Verb.Field.Kind { facts.first { $0.name == fact }?.kind ?? .word }

  /// Runs all checks.
  ///
  /// - Parameter socket: The address of the daemon, and the users that the daemon may run as.
  package static func examine(_ socket: DaemonSocket) -> Report {
    let examination = Examination(of: socket)
    return Report(all.map { ($0, $0.look(examination)) }, for: examination.userID)
  }
}
