import Attestation
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions
package import Systemd

/// The socket on which admins use the service. Requests and answers are lines, as those of identityd.
///
/// The peers are attested as those of identityd, and a connection is the same state machine, ``Session``, with the service
/// in the place of the writer. An answer fits into the socket of a client that reads its answers.
package final class ControlSocket {
  /// The maximum length of a line in bytes, including its line feed: an invitation in Base64 fits.
  static let longestLine = 8_192

  private let loop: EventLoop
  private let listener: Descriptor
  private let path: String
  private let made: FileStatus?
  private let service: ServiceThread
  private let rules: AttestationRules
  /// The watch of the listening socket; nil while accepting is paused.
  private var source: EventSource?
  private var acceptAgain: EventSource?
  private var connections = ControlConnections()

  /// The group whose members may use the socket, besides root and the user of this process.
  package var adminGroup: UInt32? {
    get { rules.settings.adminGroup }
    set { rules.settings.adminGroup = newValue }
  }

  /// Listens on a path, and creates its folder if it is missing.
  ///
  /// - Parameters:
  ///   - adminGroup: the group whose members may use the socket, besides root and the user of this process.
  ///   - service: carries out the requests.
  package init(_ loop: EventLoop, path: String, adminGroup: UInt32?, _ service: ServiceThread) throws {
    if let end = path.lastIndex(of: "/"), end != path.startIndex {
      try Folder.create(path: String(path[..<end]), mode: 0o755)
    }
    // Everybody may connect and is told the reason of a refusal. The kernel tells who it is.
    listener = try UnixSocket.listen(at: path, mode: 0o666, backlog: Bound.backlog)
    made = UnixSocket.identity(of: path)
    self.loop = loop
    self.path = path
    self.service = service
    var settings = AttestationSettings()
    settings.adminGroup = adminGroup
    rules = try AttestationRules(settings)
    try watch()
    service.answer = { [unowned self] in answer($0, to: $1) }
  }

  /// Removes the socket.
  package func close() { UnixSocket.remove(path, ifStill: made) }

  // MARK: Accepting

  private func watch() throws(SystemdError) {
    source = try loop.watch(readable: listener.number) { [unowned self] in accept() }
  }

  /// Accepts pending connections. The kernel reports further ones again, after other work of the service.
  private func accept() {
    for _ in 0..<Bound.acceptsAtOnce {
      do throws(SystemError) {
        guard let accepted = try UnixSocket.accept(on: listener) else { return }
        admit(accepted)
      } catch {
        return pause()
      }
    }
  }

  /// Pauses accepting when descriptors or memory run out. Existing connections go on.
  private func pause() {
    source = nil
    let pause = UInt64(Bound.acceptPauseMilliseconds) * 1_000
    if let acceptAgain { return acceptAgain.arm(after: pause) }
    acceptAgain = try? loop.timer(after: pause) { [unowned self] in
      if (try? watch()) == nil { acceptAgain?.arm(after: pause) }
    }
  }

  private func admit(_ socket: consuming Descriptor) {
    let attested: PeerAttestation
    do throws(Refusal) {
      attested = try attest(socket)
    } catch {
      Self.send(to: socket) { error.append(to: &$0) }
      return
    }
    let connection = connections.insert(socket, attested.peer.held.principal, attested.intoProcess())
    do throws(SystemdError) {
      connection.end = try loop.watch(readable: connection.process.number) { [unowned self, unowned connection] in
        finish(connection)
      }
    } catch {
      return end(connection)
    }
    watchInput(of: connection)
  }

  private func watchInput(of connection: ControlConnection) {
    do throws(SystemdError) {
      connection.watch = .input(
        try loop.watch(readable: connection.socket.number) { [unowned self, unowned connection] in
          receive(from: connection)
          goOn(with: connection)
        })
    } catch {
      // Without a source, nobody would read the connection or learn of its end.
      end(connection)
    }
  }

  private func attest(_ socket: borrowing Descriptor) throws(Refusal) -> PeerAttestation {
    let attested = try PeerAttestation(of: socket, by: rules)
    rules.latest = attested.peer
    try check(attested.peer.held)
    return attested
  }

  /// Refuses a peer without rights, and a connection without room.
  private func check(_ held: HeldPeer) throws(Refusal) {
    let peer = held.peer
    // The user of this process can read its memory, and so has all of its rights.
    let isOwn = peer.userID == Accounts.ownUserID && !peer.place.isContained
    guard peer.isAdmin || isOwn else {
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "admin rights; only root and members of AdminGroup= in identity-fleet.conf have them, outside of "
          + "containers"
      )
    }
    try connections.check(held.principal, usesReserve: held.usesReserve)
  }

  // MARK: Requests

  /// Reads once.
  ///
  /// - Returns: whether there may be more to read.
  @discardableResult
  private func receive(from connection: ControlConnection) -> Bool {
    var chunk = [UInt8](repeating: 0, count: Self.longestLine)
    defer { chunk.wipe() }
    return connection.receive(through: &chunk)
  }

  /// Goes on with a connection as far as its input and the service allow.
  private func goOn(with connection: ControlConnection) {
    carryOut(connection)
    if connection.session.reading.isOfEndedProcess {
      // No event comes for the input of an ended process. Requests that it has sent are still carried out.
      while connection.isOpen, receive(from: connection) { carryOut(connection) }
      conclude(connection)
      if !connection.isWaiting { end(connection) }
    } else {
      conclude(connection)
    }
    guard connection.isOpen else { return }
    // Input that is not read would wake the loop again and again.
    if connection.isWaiting || connection.end == nil { return connection.watch = .none }
    if case .none = connection.watch { watchInput(of: connection) }
  }

  private func carryOut(_ connection: ControlConnection) {
    // A client that does not read its answers is not served any more.
    while connection.isOpen, !connection.session.isDraining {
      switch connection.next() {
      case .carryOut(let line, let next):
        var request = connection.take(line, upTo: next)
        defer { request.wipe() }
        if !request.isEmpty { carryOut(request, on: connection) }
      case .refuse(let refusal):
        send(connection) { refusal.append(to: &$0) }
        return
      case .wait: return
      }
    }
  }

  /// Ends a turn of a connection.
  private func conclude(_ connection: ControlConnection) {
    guard connection.isOpen else { return }
    switch connection.session.conclusion(hasUnsentOutput: false, hasMoreWork: false, stop: .running) {
    case .refuseOrphan:
      connection.close()
      send(connection) { Refusal.orphaned.append(to: &$0) }
      end(connection)
    case .end: if !connection.drain() { end(connection) }
    case .close, .park: end(connection)
    case .rest: break
    }
  }

  /// Answers a request, or leaves it to the service.
  private func carryOut(_ line: [UInt8], on connection: ControlConnection) {
    do throws(Refusal) {
      switch try ControlLine(parsing: line) {
      case .help(let words): send(try ControlVerb.help(words), on: connection)
      case .status: send(try service.state.reply(), on: connection)
      case .request(let request):
        connection.beginRequest()
        service.carryOut(request, of: connection.number)
      }
    } catch {
      send(connection) { error.append(to: &$0) }
    }
  }

  /// Sends an answer of the service, and goes on with the connection. The client may have gone.
  private func answer(_ result: Result<ControlRequest.Answer, Refusal>, to number: ControlConnection.Number) {
    guard let connection = connections[number] else { return }
    connection.finishRequest()
    switch result {
    case .success(let (reply, secret)): send(reply, secret, on: connection)
    case .failure(let refusal): send(connection) { refusal.append(to: &$0) }
    }
    goOn(with: connection)
  }

  private func send(_ reply: Reply, _ secret: Secret? = nil, on connection: ControlConnection) {
    send(connection) { line in
      guard let secret else { return reply.append(to: &line) }
      // In front of the other attributes, and straight into the line, so that no other text has the secret.
      var final: [UInt8] = []
      reply.append(to: &final)
      line += Array("OK data=".utf8)
      secret.withBytes { Base64Text.append($0, to: &line) }
      line += final.dropFirst(2)
    }
  }

  /// Sends an answer, which fits into the buffer of a client that reads its answers. Any other client is not served.
  private func send(_ connection: ControlConnection, _ append: (inout [UInt8]) -> Void) {
    if !Self.send(to: connection.socket, append) { end(connection) }
  }

  /// Sends a line.
  ///
  /// - Returns: whether the socket took all of it.
  @discardableResult
  private static func send(to socket: borrowing Descriptor, _ append: (inout [UInt8]) -> Void) -> Bool {
    var line: [UInt8] = []
    // Room for an invitation, which leaves no copy behind if the storage does not grow.
    line.reserveCapacity(longestLine)
    append(&line)
    defer { line.wipe() }
    return (try? socket.send(line)) == line.count
  }

  /// Ends a connection whose process has exited, once its requests are carried out.
  private func finish(_ connection: ControlConnection) {
    connection.end = nil
    connection.endProcess()
    goOn(with: connection)
  }

  private func end(_ connection: ControlConnection) {
    connection.watch = .ended
    connection.end = nil
    connections.remove(connection)
  }
}
