import IdentityClient
import LinuxSystem

/// The service manager that runs the daemon.
enum ServiceManager: Equatable, Sendable {
  /// The system's, at the system's socket.
  case system
  /// That of the user who runs the checks, at the user's own socket.
  case user

  /// The user's socket unit, as the packages install it.
  private static let userUnit = "/usr/lib/systemd/user/identityd.socket"

  /// Finds the manager of the daemon at a socket.
  ///
  /// - Parameters:
  ///   - path: The path of the socket.
  ///   - process: The process ID of the daemon; nil if it did not answer.
  /// - Returns: nil for a daemon that was started by hand.
  static func of(_ path: String, process: String?) -> ServiceManager? {
    if path == DaemonSocket.systemPath { return .system }
    guard path == DaemonSocket.ownPath, ((try? PathStatus.of(userUnit)) ?? nil) != nil else { return nil }
    guard let process else { return .user }
    let group = (try? ProcessFacts.controlGroup(ofProcess: process)) ?? nil
    return group?.hasSuffix("/\(UnitStates.service)") == true ? .user : nil
  }

  /// Returns a command for systemctl(1).
  func remedy(_ words: String...) -> Remedy {
    switch self {
    case .system: .command(asRoot: true, ["systemctl"] + words)
    case .user: .command(asRoot: false, ["systemctl", "--user"] + words)
    }
  }

  /// The command that lets systemd start the units again after too many failed starts.
  var resetUnits: Remedy { remedy("reset-failed", UnitStates.socket, UnitStates.service) }
  /// The command that starts the units anew. Not a start, which would join one that is under way and fails.
  var restartUnits: Remedy { remedy("restart", UnitStates.socket, UnitStates.service) }
  /// The command that starts stopped units.
  var startUnits: Remedy { remedy("start", UnitStates.socket, UnitStates.service) }
  /// The command that stops the units. The socket stops, too, because a connection would start the daemon again.
  var stopUnits: Remedy { remedy("stop", UnitStates.socket, UnitStates.service) }
}
