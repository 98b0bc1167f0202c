import IdentityClient
import IdentityCore
import LinuxSystem
import Sessions
import Systemd

/// A connection of an admin at the control socket.
final class ControlConnection {
  /// A number that identifies a connection. Numbers are never reused.
  typealias Number = UInt64

  /// The watch of the socket.
  enum Watch {
    /// Input wakes the loop.
    case input(EventSource)
    /// The service carries out a request, or the process that connected has ended: nothing is read in the meantime, or all
    /// of it at once.
    case none
    /// The connection has ended.
    case ended
  }

  let number: Number
  let socket: Descriptor
  /// The principal that the connection is charged to.
  let principal: Principal
  /// A pidfd of the process that connected.
  let process: Descriptor
  var watch = Watch.none
  /// The watch of the process, until it has ended.
  var end: EventSource?
  private(set) var session = Session()
  /// Input that was received and not carried out yet.
  private var input: [UInt8] = []

  init(
    _ number: Number, _ socket: consuming Descriptor, _ principal: Principal, _ process: consuming Descriptor
  ) {
    self.number = number
    self.socket = socket
    self.principal = principal
    self.process = process
  }

  deinit { input.wipe() }

  /// Whether the connection has not ended.
  var isOpen: Bool { if case .ended = watch { false } else { true } }

  /// Whether the service carries out a request.
  var isWaiting: Bool { session.isAtWriter }

  /// Receives available bytes into the front of a buffer, which the caller wipes, and keeps those that count.
  ///
  /// - Returns: whether bytes or the end of the input were there.
  func receive(through buffer: inout [UInt8]) -> Bool {
    guard !isWaiting, session.reading.mayGoOn else { return false }
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

  /// Returns the next step in the input. The service carries out one request of a connection at a time.
  func next() -> Session.Step {
    let input = input
    let hasRoom = session.takesRequest(most: 1)
    return session.next(in: input.span, from: 0, limit: ControlSocket.longestLine, hasRoom)
  }

  /// Notes that the service carries out a request.
  func beginRequest() { session.sendJob(last: nil) }

  /// Notes that the service has answered.
  func finishRequest() { session.finishJob() }

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
  private var lastNumber: ControlConnection.Number = 0
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

  /// The connection with a number; nil if it has ended.
  subscript(_ number: ControlConnection.Number) -> ControlConnection? { all.first { $0.number == number } }

  /// Adds a connection.
  ///
  /// - Parameter process: a pidfd of the process that connected.
  mutating func insert(
    _ socket: consuming Descriptor, _ principal: Principal, _ process: consuming Descriptor
  ) -> ControlConnection {
    lastNumber += 1
    let connection = ControlConnection(lastNumber, socket, principal, process)
    all.append(connection)
    counts[principal, default: 0] += 1
    return connection
  }

  /// Removes a connection. A connection that was removed before is left alone.
  mutating func remove(_ connection: ControlConnection) {
    guard let index = all.firstIndex(where: { $0 === connection }) else { return }
    all.remove(at: index)
    let left = counts[connection.principal, default: 1] - 1
    counts[connection.principal] = left > 0 ? left : nil
  }
}
