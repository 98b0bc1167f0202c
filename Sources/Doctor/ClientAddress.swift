import IdentityClient

/// The options with which a command of the client reaches the daemon that was examined.
struct ClientAddress: Sendable {
  /// The command for an admin of the system's daemon.
  static let system = ClientAddress(asRoot: true, [])

  /// Whether an admin's command needs root.
  private let needsRoot: Bool
  private let options: [String]

  private init(asRoot needsRoot: Bool, _ options: [String]) {
    self.needsRoot = needsRoot
    self.options = options
  }

  /// Creates the address of the daemon at a socket.
  ///
  /// - Parameter isAdmin: whether the caller is an admin of the daemon.
  init(path: String, isAdmin: Bool) {
    switch path {
    case DaemonSocket.systemPath: self = .system
    case DaemonSocket.ownPath: self.init(asRoot: false, ["--user"])
    default: self.init(asRoot: !isAdmin, ["--socket=\(path)"])
    }
  }

  /// Returns a command for an admin.
  func remedy(_ words: String...) -> Remedy { remedy(words) }

  /// Returns a command for an admin.
  func remedy(_ words: [String]) -> Remedy { .command(asRoot: needsRoot, ["identityctl"] + options + words) }
}
