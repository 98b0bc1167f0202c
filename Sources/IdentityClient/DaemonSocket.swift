import LinuxSystem

/// The address of a daemon, and the users whose daemon a client accepts there.
package struct DaemonSocket: Hashable, Sendable {
  /// The path of the socket.
  package let path: String
  /// Whose daemon is asked.
  package let trust: DaemonTrust

  /// Says where, and whose.
  ///
  /// - Parameter path: nil for ``defaultPath``.
  package init(_ path: String?, _ trust: DaemonTrust = .systemOrOwn) {
    self.path = path ?? Self.defaultPath
    self.trust = trust
  }

  /// The socket of the system's daemon.
  package static let systemPath = "/run/identityd/identityd.sock"

  /// The path of `IDENTITYD_SOCKET`, else the system's socket, else the user's own where only that is there.
  ///
  /// Root has no daemon of its own, and can inherit the `XDG_RUNTIME_DIR` of another user.
  package static var defaultPath: String {
    if let path = Environment["IDENTITYD_SOCKET"] { return path }
    guard Accounts.ownUserID != 0, UnixSocket.identity(of: systemPath) == nil,
      let runtime = Environment["XDG_RUNTIME_DIR"]
    else { return systemPath }
    let own = "\(runtime)/identityd/identityd.sock"
    return UnixSocket.identity(of: own) == nil ? systemPath : own
  }

  // MARK: Connecting

  /// Connects, waiting where others wait to be let in as well; the descriptor blocks.
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

  /// Connects where that takes no waiting; the descriptor does not block.
  ///
  /// - Returns: nil where as many wait to be let in as the daemon has room for.
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

  /// The user that the daemon of the system runs as.
  private static let daemonUser = "identityd"

  /// Checks the owners of a connection.
  private func check(_ connection: borrowing Descriptor) throws(DaemonConnection.Failure) {
    guard trust == .systemOrOwn else { return }
    let owners: SocketOwners
    do {
      owners = try SocketOwners(of: connection, at: path)
    } catch {
      throw .unreachable(path: path, code: error.code)
    }
    if let fault = SocketFault(owners, isTrusted: Self.isTrusted) { throw .untrusted(path: path, fault) }
  }

  private static func isTrusted(_ user: UInt32) -> Bool {
    if user == 0 || user == Accounts.ownUserID { return true }
    if let unnamed = try? UserNamespace.unnamedUser(), user == unnamed { return true }
    guard let daemon = try? Accounts.userID(named: daemonUser) else { return false }
    return user == daemon
  }
}
