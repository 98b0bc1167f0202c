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

  /// Finds the manager that runs the daemon at a socket, unless the daemon was started by hand.
  ///
  /// - Parameter path: The path of the socket.
  /// - Returns: nil if no unit listens on this path.
  static func of(_ path: String) -> ServiceManager? {
    if path == DaemonSocket.systemPath { return .system }
    guard path == DaemonSocket.ownPath, ((try? PathStatus.of(userUnit)) ?? nil) != nil else { return nil }
    return .user
  }

  /// Whether the manager runs a process as the daemon: a user may have started one at the same socket by hand.
  ///
  /// - Parameter process: The process ID; nil for a daemon that did not answer.
  func runs(_ process: String?) -> Bool {
    guard self == .user, let process else { return true }
    let group = (try? ProcessFacts.controlGroup(ofProcess: process)) ?? nil
    return group?.hasSuffix("/\(UnitStates.service)") == true
  }

  /// The folder of the configuration (identityd(8), ENVIRONMENT).
  var configurationFolder: String {
    let base = Environment["XDG_CONFIG_HOME"] ?? Environment["HOME"].map { "\($0)/.config" }
    return self == .user ? base.map { "\($0)/identityd" } ?? "/etc/identityd" : "/etc/identityd"
  }

  /// The environment variables by which a program finds the manager, and the files of its user (systemd(1)).
  var variables: [String] {
    self == .user
      ? ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS"] : []
  }

  /// The option of systemctl(1) that addresses the manager.
  var options: [String] { self == .user ? ["--user"] : [] }

  /// Returns the command that shows the log of a unit, as a part of a sentence, in quotation marks.
  func journal(of unit: String) -> String {
    "'\((["journalctl"] + options + ["--unit=\(unit)"]).joined(separator: " "))'"
  }

  /// Returns a command for systemctl(1).
  func remedy(_ words: String...) -> Remedy { remedy(words) }

  /// Returns a command for systemctl(1).
  func remedy(_ words: [String]) -> Remedy { .command(asRoot: self == .system, ["systemctl"] + options + words) }

  /// The command that lets systemd start the units again after too many failed starts.
  var resetUnits: Remedy { remedy("reset-failed", UnitStates.socket, UnitStates.service) }
  /// The command that starts the units anew. Not a start, which would join one that is under way and fails.
  var restartUnits: Remedy { remedy("restart", UnitStates.socket, UnitStates.service) }
  /// The command that starts stopped units.
  var startUnits: Remedy { remedy("start", UnitStates.socket, UnitStates.service) }
  /// The command that stops the units. The socket stops, too, because a connection would start the daemon again.
  var stopUnits: Remedy { remedy("stop", UnitStates.socket, UnitStates.service) }
}
