import LinuxSystem

/// The address of a daemon, and the users whose daemon a client accepts at that address.
package struct DaemonSocket: Hashable, Sendable {
  /// The path of the socket.
  package let path: String
  /// The users whose daemon the client accepts.
  package let trust: DaemonTrust
  /// The name of the user that the system's daemon runs as.
  private let daemonUser: String

  /// Creates an address.
  ///
  /// - Parameters:
  ///   - path: The path of the socket; nil for ``defaultPath``.
  ///   - trust: The users whose daemon the client accepts.
  ///   - user: The name of the user that the system's daemon runs as.
  package init(_ path: String?, _ trust: DaemonTrust = .systemOrOwn, user: String = "identityd") {
    daemonUser = user
    self.path = path ?? Self.defaultPath
    self.trust = trust
  }

  /// The path of the system daemon's socket.
  package static let systemPath = "/run/identityd/identityd.sock"

  /// The path in `IDENTITYD_SOCKET`, else the system's socket, else the user's own socket if only that one exists.
  ///
  /// Root has no daemon of its own, and can inherit `XDG_RUNTIME_DIR` of another user, so the last rule does not
  /// apply to root.
  package static var defaultPath: String {
    if let path = Environment["IDENTITYD_SOCKET"] { return path }
    guard Accounts.ownUserID != 0, UnixSocket.identity(of: systemPath) == nil, let ownPath else { return systemPath }
    return UnixSocket.identity(of: ownPath) == nil ? systemPath : ownPath
  }

  /// The path of the socket of this user's own daemon; nil without a run-time directory.
  package static var ownPath: String? { Environment["XDG_RUNTIME_DIR"].map { "\($0)/identityd/identityd.sock" } }

  /// Whether the daemon is this user's own one, which `identityctl` reaches with `--user`.
  package var isOwn: Bool { path == Self.ownPath }

  // MARK: Connecting

  /// Connects, and blocks while the daemon's accept queue is full. The returned descriptor blocks.
  ///
  /// - Throws: `unreachable` or `untrusted`.
  func connect() throws(DaemonConnection.Failure) -> Descriptor {
    let connected: Descriptor
    do {
      connected = try UnixSocket.connect(to: path)
    } catch {
      throw .unreachable(path: path, code: error.code)
    }
    try check(connected)
    return connected
  }

  /// Connects without blocking. The returned descriptor does not block.
  ///
  /// - Returns: Nil if the daemon's accept queue is full.
  /// - Throws: `unreachable` or `untrusted`.
  func connectAtOnce() throws(DaemonConnection.Failure) -> Descriptor? {
    let connected: Descriptor?
    do {
      connected = try UnixSocket.connectAtOnce(to: path)
    } catch {
      throw .unreachable(path: path, code: error.code)
    }
    guard let connected else { return nil }
    try check(connected)
    return connected
  }

  // MARK: Trust

  /// Checks the owners of the listening process, the socket and its folder.
  ///
  /// - Throws: `untrusted` if one of them is a user that ``trust`` does not allow.
  private func check(_ connection: borrowing Descriptor) throws(DaemonConnection.Failure) {
    guard trust == .systemOrOwn else { return }
    let owners: SocketOwners
    do {
      owners = try SocketOwners(of: connection, at: path)
    } catch {
      throw .unreachable(path: path, code: error.code)
    }
    if let fault = SocketFault(owners, isTrusted: isTrusted) { throw .untrusted(path: path, fault) }
  }

  private func isTrusted(_ user: UInt32) -> Bool {
    if user == 0 || user == Accounts.ownUserID { return true }
    if let unnamed = try? UserNamespace.unnamedUser(), user == unnamed { return true }
    guard let daemon = try? Accounts.userID(named: daemonUser) else { return false }
    return user == daemon
  }
}
