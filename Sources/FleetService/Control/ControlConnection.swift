import IdentityClient
import IdentityCore
import LinuxSystem
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
  private var received: [UInt8] = []

  init(_ socket: consuming Descriptor, _ principal: Principal, _ process: consuming Descriptor) {
    self.socket = socket
    self.principal = principal
    self.process = process
  }

  deinit { received.wipe() }

  /// The number of received bytes that no request was taken from.
  var unread: Int { received.count }

  /// The length of the first line, without its line feed; nil if no line is complete.
  var lineLength: Int? { received.firstIndex(of: UInt8(ascii: "\n")) }

  /// Receives available bytes into the front of a buffer, which the caller wipes, and keeps them.
  ///
  /// - Returns: the number of bytes; 0 at the end, nil if there are none now.
  func receive(through buffer: inout [UInt8]) -> Int? {
    do throws(SystemError) {
      guard let count = try socket.receive(into: &buffer) else { return nil }
      received.appendWiping(buffer.span.extracting(..<count))
      return count
    } catch {
      // The client has reset the connection.
      return 0
    }
  }

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

/// The open connections at the control socket, with the number of each principal.
struct ControlConnections {
  /// The bounds, which are of the same kinds as those of identityd.
  private static let limits: Limits = {
    var limits = Limits()
    limits.connections = Bound.controlConnections
    limits.connectionsPerUser = Bound.controlConnectionsPerUser
    return limits
  }()

  private var all: [ControlConnection] = []
  private var counts: [Principal: Int] = [:]

  /// Refuses a further connection that the bounds forbid.
  ///
  /// As in identityd, the last ``Limits/reservedConnections`` are for root, and a principal has its fair share of the
  /// others.
  func check(_ peer: Principal, usesReserve: Bool) throws(Refusal) {
    let limits = Self.limits
    let open = peer.isTrusted ? limits.connections : limits.connections - limits.reservedConnections
    guard all.count < open else {
      throw .busy("there are \(all.count) connections, which is the limit; try again later")
    }
    guard !peer.isTrusted, let own = counts[peer] else { return }
    let share = limits.share(
      of: open, atMost: limits.connectionsPerUser, used: all.count, own: own, principals: counts.count,
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
    guard let place = all.firstIndex(where: { $0 === connection }) else { return }
    all.remove(at: place)
    let left = counts[connection.principal, default: 1] - 1
    counts[connection.principal] = left > 0 ? left : nil
  }
}
