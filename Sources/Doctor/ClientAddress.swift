import IdentityClient

/// The options with which a command of the client reaches the daemon that was examined.
struct ClientAddress: Sendable {
  /// The command for an admin of the system's daemon.
  static let system = ClientAddress(asRoot: true, [])

  /// Whether an admin's command needs root.
  private let needsRoot: Bool
  private let options: [String]
  /// Whether the socket is neither the system's nor that of the user's own daemon.
  private let isPrivate: Bool

  private init(asRoot needsRoot: Bool, _ options: [String], isPrivate: Bool = false) {
    self.needsRoot = needsRoot
    self.options = options
    self.isPrivate = isPrivate
  }

  /// Creates the address of the daemon at a socket.
  ///
  /// - Parameter isAdmin: whether the caller is an admin of the daemon.
  init(path: String, isAdmin: Bool) {
    switch path {
    case DaemonSocket.systemPath: self = .system
    case DaemonSocket.ownPath: self.init(asRoot: false, ["--user"])
    default: self.init(asRoot: !isAdmin, ["--socket=\(path)"], isPrivate: true)
    }
  }

  /// Returns a command for an admin.
  func remedy(_ words: String...) -> Remedy { remedy(words) }

  /// Returns a command for an admin.
  private func remedy(_ words: [String]) -> Remedy { .command(asRoot: needsRoot, ["identityctl"] + options + words) }

  /// Returns a command of the fleet's service. Its socket beside a daemon at a private socket is unknown, but the daemon
  /// tells most of its state.
  func fleetRemedy(_ name: String) -> Remedy { isPrivate ? remedy("status") : remedy("fleet", name) }

  /// Returns a command of the fleet's service as a part of a sentence, in quotation marks.
  func fleetNamed(_ words: String...) -> String {
    "'\((isPrivate ? Self.system : self).remedy(words).text(for: 0))'"
  }

  /// Returns a command as a part of a sentence, in quotation marks.
  func named(_ words: String...) -> String { "'\(remedy(words).text(for: 0))'" }
}
