import IdentityClient
import IdentityCore
import LinuxSystem
import Sessions
import Systemd

/// A connection of an admin at the control socket.
final class ControlConnection {
  let socket: Descriptor
  /// The principal that the connection is charged to.
  let principal: Principal
  /// A pidfd of the process that connected.
  let process: Descriptor
  /// The watch of the socket; nil once the connection has ended.
  var source: EventSource?
  /// The watch of the process; see ``ControlSocket``.
  var end: EventSource?
  private(set) var session = Session()
  /// Input that was received and not carried out yet.
  private var input: [UInt8] = []

  init(_ socket: consuming Descriptor, _ principal: Principal, _ process: consuming Descriptor) {
    self.socket = socket
    self.principal = principal
    self.process = process
  }

  deinit { input.wipe() }

  /// Receives available bytes into the front of a buffer, which the caller wipes, and keeps those that count.
  ///
  /// - Returns: whether bytes or the end of the input were there.
  func receive(through buffer: inout [UInt8]) -> Bool {
    guard session.reading.mayGoOn else { return false }
    let received: Int?
    do throws(SystemError) {
      received = try socket.receive(into: &buffer)
    } catch {
      // The client has reset the connection.
      received = 0
    }
    guard let received else { return false }
    let count = session.receive(received)
    if session.isDraining {
      if session.discard(count) > Bound.drainedBytes { _ = session.receive(0) }
    } else {
      input.appendWiping(buffer.span.extracting(..<count))
    }
    return true
  }

  /// Returns the next step in the input.
  func next() -> Session.Step {
    let input = input
    return session.next(in: input.span, from: 0, limit: ControlSocket.longestLine, true)
  }

  /// Removes the input in front of an index, and returns the bytes of a range of it. No other copy of them remains,
  /// because they may be an invitation.
  func take(_ line: Range<Int>, upTo next: Int) -> [UInt8] {
    session.countRequests()
    session.drop(next)
    let taken = Array(input[line])
    var rest: [UInt8] = []
    if next < input.count { rest.appendWiping(input.span.extracting(next...)) }
    input.wipe()
    input = rest
    return taken
  }

  /// Notes that the process that connected has ended.
  func endProcess() { session.endProcess(unread: (try? socket.unread()) ?? 0) }

  /// Notes that no further request is carried out.
  func close() { session.close() }

  /// Shuts the sending side down after the last answer, unless the client sends nothing more. A close would lose the
  /// answer if input is unread.
  ///
  /// - Returns: whether the client may send more, which is discarded.
  func drain() -> Bool {
    guard !session.reading.isOver, !session.isDraining, (try? socket.shutdownWriting()) != nil else { return false }
    session.beginDraining()
    return true
  }
}

/// The open connections at the control socket, with the number of each principal.
struct ControlConnections {
  /// The bounds, which are of the same kinds as those of identityd.
  private static let limits: Limits = {
    var limits = Limits()
    limits.connections.total = Bound.controlConnections
    limits.connections.perUser = Bound.controlConnectionsPerUser
    return limits
  }()

  private var all: [ControlConnection] = []
  private var counts: [Principal: Int] = [:]

  /// Refuses a further connection that the bounds forbid.
  ///
  /// As in identityd, the last ``ConnectionLimits/reserved`` are for root, and a principal has its fair share of the
  /// others.
  func check(_ peer: Principal, usesReserve: Bool) throws(Refusal) {
    let limits = Self.limits
    let open = limits.connections.most(for: peer)
    guard all.count < open else {
      throw .busy("there are \(all.count) connections, which is the limit; try again later")
    }
    guard !peer.isTrusted, let own = counts[peer] else { return }
    let share = limits.share(
      of: open, atMost: limits.connections.perUser, used: all.count, own: own, principals: counts.count,
      usesReserve: usesReserve)
    guard own < share else { throw .busy("\(peer) has \(own) connections and may have no more now") }
  }

  /// Adds a connection.
  mutating func insert(_ connection: ControlConnection) {
    all.append(connection)
    counts[connection.principal, default: 0] += 1
  }

  /// Removes a connection. A connection that was removed before is left alone.
  mutating func remove(_ connection: ControlConnection) {
    guard let index = all.firstIndex(where: { $0 === connection }) else { return }
    all.remove(at: index)
    let left = counts[connection.principal, default: 1] - 1
    counts[connection.principal] = left > 0 ? left : nil
  }
}
