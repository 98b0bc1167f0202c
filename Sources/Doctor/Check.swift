package import IdentityClient

/// A check of `identityctl check`.
package struct Check: Sendable {
  /// The name, which never changes because scripts depend on it.
  package let name: String
  /// The subject of the check, as a sentence for the manual.
  package let summary: String
  private let look: @Sendable (Examination) -> Finding

  /// Declares a check.
  init(_ name: String, _ summary: String, _ look: @escaping @Sendable (Examination) -> Finding) {
    self.name = name
    self.summary = summary
    self.look = look
  }

  /// All checks in the order of the report. A check precedes the checks that depend on it.
  package static let all: [Check] = [
    Check("socket", "The socket is root's, identityd's or the caller's, may be used, and a daemon answers on it.") {
      SocketFacts($0).finding
    },
    Check("unit", "systemd knows the units, runs or can start the daemon, and starts it at the next boot too.") {
      UnitFacts($0).finding
    },
    Check("peer", "The daemon sees who asks as who it is; whether that is an admin, and which app.") {
      PeerFacts($0).finding
    },
    Check("machine-id", "There is a machine-id, and no other machine is known to have the same.") {
      MachineIDFacts($0).finding
    },
    Check(
      "manifests",
      "Every manifest can be used, no two conflict, nobody but root can change one, and each names the users it means."
    ) {
      ManifestFacts($0).finding
    },
    Check("key", "The key of the items is there, and not in a file beside what it encrypts.") { KeyFacts($0).finding },
    Check("store", "The store is in order and takes changes, and nothing lies about that was set aside.") {
      StoreFacts($0).finding
    },
    Check("space", "The file system of the state has room, and room for files.") { SpaceFacts($0).finding },
    Check("clock", "The clock is not behind this release or the last event, and something keeps it right.") {
      ClockFacts($0).finding
    },
    Check("permissions", "State, socket and configuration have the owner and the mode that keeps others out.") {
      PermissionFacts($0).finding
    },
    Check("versions", "The daemon that runs is of the same release as this program.") { VersionFacts($0).finding },
  ]

  /// Runs all checks.
  ///
  /// - Parameter socket: The address of the daemon, and the users that the daemon may run as.
  package static func examine(_ socket: DaemonSocket) -> Report {
    let examination = Examination(of: socket)
    return Report(all.map { ($0.name, $0.look(examination)) }, for: examination.userID)
  }
}
