import IdentityCore
import LinuxSystem
import Sessions
import Systemd

/// The names of the descriptors that the service manager keeps for the next run of the daemon
/// (`FileDescriptorStoreMax=`, systemd.service(5)).
package enum Kept {
  /// The name of a client's connection.
  package static let connection = "identityd-connection"
  /// The name of the ``HandoverMemory``, which is kept current all the time.
  package static let memory = "identityd-memory"
  /// The name of the sealed memory file that an orderly stop leaves.
  package static let handover = "identityd-handover"

  /// Returns whether a descriptor's name is one of these names.
  package static func isName(_ name: String) -> Bool { [connection, memory, handover].contains(name) }
}

/// A restart that keeps connections open: meanwhile the service manager holds them and their state.
final class Handover {
  private let connections: ConnectionTable
  private let uuids: FreshUUIDs
  private let log: LogSink
  /// The state that the next run of the daemon takes over; nil if the service manager keeps no descriptors.
  private var memory: HandoverMemory?

  init(_ connections: ConnectionTable, _ uuids: FreshUUIDs, _ log: LogSink) {
    self.connections = connections
    self.uuids = uuids
    self.log = log
  }

  /// Whether the service manager keeps the connections for the next run.
  var isEnabled: Bool { memory != nil }

  // MARK: Taking over

  /// A connection of the last run: the socket and its record.
  struct LegacyConnection: ~Copyable {
    let socket: Descriptor
    let record: HandoverRecord
  }

  /// Takes over the connections of the last run, and keeps connections for the next run from now on.
  ///
  /// - Parameters:
  ///   - descriptors: the descriptors that the service manager has kept, each with its name.
  ///   - lastEvent: the last event, which no subscription may be ahead of.
  ///   - adopt: adopts a connection. Connections without a usable record are closed instead.
  func begin(
    _ descriptors: [(number: Int32, name: String)], lastEvent: Int64, adopt: (consuming LegacyConnection) -> Void
  ) throws(SystemError) {
    let memory = try HandoverMemory()
    self.memory = memory
    let legacy = readLegacy(among: descriptors)
    uuids.resume(after: legacy.lastUUID)
    memory.set(lastUUID: legacy.lastUUID)
    let sockets = descriptors.filter { $0.name == Kept.connection }
    for socket in sockets {
      if let connection = usable(socket.number, legacy, lastEvent: lastEvent) { adopt(connection) }
    }
    ServiceManager.removeStored(name: Kept.memory)
    ServiceManager.store([memory.descriptor], name: Kept.memory)
    ServiceManager.removeStored(name: Kept.handover)
    // The sealed state is out of date as soon as any connection proceeds, so the service manager must drop it first.
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
    if !sockets.isEmpty { log(.connectionsTakenOver(connections.count, closed: sockets.count - connections.count)) }
  }

  /// Returns the state that the last run left: the sealed state after an orderly stop, else the state last reached.
  private func readLegacy(among descriptors: [(number: Int32, name: String)]) -> HandoverMemory.Legacy {
    var legacy: HandoverMemory.Legacy?
    for name in [Kept.handover, Kept.memory] {
      for descriptor in descriptors where descriptor.name == name {
        do {
          let file = try MemoryFile(adopting: Descriptor(adopting: descriptor.number))
          if legacy != nil { continue }
          legacy = name == Kept.memory ? try HandoverMemory.legacy(of: file) : try .init(sealed: file)
        } catch {
          log(.handoverUnreadable("\(error)"))
        }
      }
    }
    return legacy ?? HandoverMemory.Legacy()
  }

  /// Returns a socket with its record, or shuts the socket down if there is no usable record: the connection is unknown,
  /// the progress of its request is unknown, or its subscription is ahead of the event log. The client must not wait
  /// forever.
  private func usable(_ number: Int32, _ legacy: HandoverMemory.Legacy, lastEvent: Int64) -> LegacyConnection? {
    do {
      let socket = Descriptor(adopting: number)
      let inode = try socket.inode()
      guard UnixSocket.isConnectedStream(number), let record = legacy.records[inode],
        record.subscription.map({ max($0.position, $0.lag?.last ?? 0) <= lastEvent }) ?? true
      else {
        try socket.shutdownBoth()
        return nil
      }
      return LegacyConnection(socket: socket, record: record)
    } catch {
      log(.handoverUnreadable("\(error)"))
      return nil
    }
  }

  // MARK: Keeping

  /// Marks a connection as busy: if the daemon is killed from here on, the progress of the request is unknown.
  func markBusy(_ connection: Connection) {
    if connection.establishment.isKept { memory?.set(.busy, connection.token.slot) }
  }

  /// Marks a connection as at rest, and saves its record if the saved one is out of date.
  func markAtRest(_ connection: Connection) {
    guard connection.establishment.isKept, let memory, !connection.session.isAtWriter,
      !connection.session.hasLongAnswer,
      connections[connection.token] === connection
    else { return }
    // The usual case.
    if connection.isKeptAsItIs { return memory.set(.atRest, connection.token.slot) }
    guard !connection.session.isDraining else { return memory.forget(connection.token.slot) }
    let shape = connection.shape
    if shape.isPlain, shape == connection.keptShape {
      if let position = connection.subscription?.position { memory.set(position: position, connection.token.slot) }
      return memory.set(.atRest, connection.token.slot)
    }
    guard let record = HandoverRecord(connection) else { return }
    connection.keptShape = memory.keep(record, in: connection.token.slot) ? shape : nil
  }

  /// Gives new connections to the service manager.
  func store(_ new: [Connection]) {
    guard isEnabled, !new.isEmpty else { return }
    for connection in new {
      connection.establishment.kept = .otherwise
      markAtRest(connection)
    }
    ServiceManager.store(new.map { $0.descriptor.number }, name: Kept.connection)
  }

  /// Drops the record of a connection that closes.
  func forget(_ connection: Connection) { memory?.forget(connection.token.slot) }

  /// Saves the last ascending UUID, behind which the next run continues.
  func keep(lastUUID uuid: UUID) { memory?.set(lastUUID: uuid) }

  /// Ends an orderly stop: seals the state for the next run and gives it to the service manager.
  func finish() {
    guard isEnabled else { return }
    do {
      let records = connections.all.filter { !$0.session.isDraining }.compactMap { HandoverRecord($0) }
      let file = try HandoverMemory.seal(records, lastUUID: uuids.lastHandedOut)
      ServiceManager.store([file.descriptor.number], name: Kept.handover)
    } catch {
      log(.handoverUnreadable("\(error)"))
    }
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
  }
}

extension HandoverRecord {
  /// Records the state of a connection; nil if the inode of its socket is unknown.
  init?(_ connection: Connection) {
    guard let inode = try? connection.descriptor.inode() else { return nil }
    self.init(
      inode: inode, peer: connection.peer, subscription: connection.subscription,
      hasEnded: connection.session.hasEnded, isClosing: connection.session.isClosing || connection.hasFleetOpen,
      input: connection.input, output: Array(connection.output[connection.sent...]))
  }
}
