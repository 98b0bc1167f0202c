import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
package import Systemd

/// The socket on which admins use the service. Requests and answers are lines, as those of identityd.
package final class ControlSocket {
  /// The greatest number of connections at a time. A further one takes the place of the oldest.
  private static let mostConnections = 8
  /// The maximum length of a line in bytes, including its line feed: an invitation in Base64 fits.
  static let longestLine = 8_192

  private let loop: EventLoop
  private let listener: Descriptor
  private let path: String
  private let made: FileStatus?
  private let service: Service
  /// The group whose members may use the socket, besides root and the user of this process.
  package var adminGroup: UInt32?
  private var source: EventSource?
  private var connections: [Connection] = []

  private final class Connection {
    let socket: Descriptor
    var source: EventSource?
    var received: [UInt8] = []

    init(_ socket: consuming Descriptor) { self.socket = socket }

    deinit { received.wipe() }

    /// Removes and returns the first bytes. No other copy of them remains, because they may be an invitation.
    func take(_ count: Int) -> [UInt8] {
      let taken = Array(received[..<count])
      var rest: [UInt8] = []
      if count < received.count { rest.appendWiping(received.span.extracting(count...)) }
      received.wipe()
      received = rest
      return taken
    }
  }

  /// Listens on a path, and creates its folder if it is missing.
  ///
  /// - Parameters:
  ///   - adminGroup: the group whose members may use the socket, besides root and the user of this process.
  ///   - service: carries out the requests.
  package init(_ loop: EventLoop, path: String, adminGroup: UInt32?, _ service: Service) throws {
    if let end = path.lastIndex(of: "/"), end != path.startIndex {
      try Folder.create(path: String(path[..<end]), mode: 0o755)
    }
    // Everybody may connect and is told the reason of a refusal. The kernel tells who it is.
    listener = try UnixSocket.listen(at: path, mode: 0o666, backlog: 16)
    made = UnixSocket.identity(of: path)
    self.loop = loop
    self.path = path
    self.adminGroup = adminGroup
    self.service = service
    source = try loop.watch(readable: listener.number) { [unowned self] in accept() }
  }

  /// Removes the socket.
  package func close() { UnixSocket.remove(path, ifStill: made) }

  private func accept() {
    guard let accepted = (try? UnixSocket.accept(on: listener)) ?? nil else { return }
    let connection = Connection(accepted)
    guard let peer = try? PeerCredentials(of: connection.socket) else { return }
    guard mayUse(peer, connection) else {
      let refusal = Refusal.denied(
        app: "the client", userID: peer.userID,
        grant: "admin rights; only root and members of AdminGroup= in identity-fleet.conf have them")
      return send(connection) { refusal.append(to: &$0) }
    }
    if connections.count >= Self.mostConnections { end(connections[0]) }
    connections.append(connection)
    // Without a source, nobody would read the connection, so it ends here.
    connection.source = try? loop.watch(readable: connection.socket.number) { [unowned self, unowned connection] in
      receive(connection)
    }
    if connection.source == nil { end(connection) }
  }

  private func mayUse(_ peer: PeerCredentials, _ connection: Connection) -> Bool {
    if peer.userID == 0 || peer.userID == Accounts.ownUserID { return true }
    guard let adminGroup else { return false }
    return peer.groupID == adminGroup
      || (try? PeerCredentials.groups(of: connection.socket))?.contains(adminGroup) == true
  }

  private func receive(_ connection: Connection) {
    var chunk = [UInt8](repeating: 0, count: Self.longestLine)
    defer { chunk.wipe() }
    guard let count = try? connection.socket.receive(into: &chunk) else { return }
    guard count > 0 else { return end(connection) }
    connection.received.appendWiping(chunk.span.extracting(..<count))
    // A connection that an answer has ended is not served any more.
    while connection.source != nil {
      let lineFeed = connection.received.firstIndex(of: UInt8(ascii: "\n"))
      guard lineFeed ?? connection.received.count < Self.longestLine else {
        send(connection) { Refusal.tooLong(limit: Self.longestLine).append(to: &$0) }
        return end(connection)
      }
      guard let lineFeed else { return }
      var request = connection.take(lineFeed + 1)
      defer { request.wipe() }
      request.removeLast()
      reply(to: request, on: connection)
    }
  }

  private func reply(to line: [UInt8], on connection: Connection) {
    do throws(Refusal) {
      let (reply, secret) = try service.answer(to: try ControlRequest(parsing: line))
      send(connection) { line in
        guard let secret else { return reply.append(to: &line) }
        // In front of the other attributes, and straight into the line, so that no other text has the secret.
        var final: [UInt8] = []
        reply.append(to: &final)
        line += Array("OK \(secret.name)=".utf8)
        secret.value.withBytes { line.appendWiping($0) }
        line += final.dropFirst(2)
      }
    } catch {
      send(connection) { error.append(to: &$0) }
    }
  }

  /// Sends an answer, which fits into the buffer of a client that reads its answers.
  private func send(_ connection: Connection, _ append: (inout [UInt8]) -> Void) {
    var line: [UInt8] = []
    // Room for an invitation, which leaves no copy behind if the storage does not grow.
    line.reserveCapacity(Self.longestLine)
    append(&line)
    defer { line.wipe() }
    let sent = try? connection.socket.send(line)
    if sent != line.count { end(connection) }
  }

  private func end(_ connection: Connection) {
    connection.source = nil
    connections.removeAll { $0 === connection }
  }
}
