import IdentityCore
import LinuxSystem
import Systemd

/// What a run of the daemon leaves with the service manager, for the next (`FileDescriptorStoreMax=`, systemd.service(5)).
package enum Kept {
  /// A client's connection.
  package static let connection = "identityd-connection"
  /// The ``HandoverMemory``, which is current all the time.
  package static let memory = "identityd-memory"
  /// The sealed memory that an orderly stop leaves.
  package static let handover = "identityd-handover"

  /// Whether a descriptor that the service manager hands over is one of these.
  package static func isName(_ name: String) -> Bool { [connection, memory, handover].contains(name) }
}

// A restart that nobody notices: the service manager holds the connections meanwhile.
extension Server {
  /// Goes on with the connections of the last run, and keeps them for the next from now on.
  ///
  /// - Parameter descriptors: what the service manager has kept, each with its name.
  func takeOver(_ descriptors: [(number: Int32, name: String)]) throws(SystemError) {
    let memory = try HandoverMemory()
    self.memory = memory
    let legacy = legacy(among: descriptors)
    sequence.resume(after: legacy.lastUUID)
    memory.set(lastUUID: legacy.lastUUID)
    let sockets = descriptors.filter { $0.name == Kept.connection }
    for socket in sockets { takeOver(socket.number, legacy) }
    ServiceManager.removeStored(name: Kept.memory)
    ServiceManager.store([memory.descriptor], name: Kept.memory)
    ServiceManager.removeStored(name: Kept.handover)
    // What is sealed is true only as long as nothing has moved on.
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
    if !sockets.isEmpty { say(.connectionsTakenOver(connections.count, closed: sockets.count - connections.count)) }
  }

  /// What the last run left: sealed where it ended in order, else as far as it had come.
  private func legacy(among descriptors: [(number: Int32, name: String)]) -> HandoverMemory.Legacy {
    var legacy: HandoverMemory.Legacy?
    for name in [Kept.handover, Kept.memory] {
      for descriptor in descriptors where descriptor.name == name {
        do {
          let file = try MemoryFile(adopting: Descriptor(adopting: descriptor.number))
          if legacy != nil { continue }
          legacy = name == Kept.memory ? try HandoverMemory.legacy(of: file) : try .init(sealed: file)
        } catch {
          say(.handoverUnreadable("\(error)"))
        }
      }
    }
    return legacy ?? HandoverMemory.Legacy()
  }

  private func takeOver(_ number: Int32, _ legacy: HandoverMemory.Legacy) {
    do {
      let socket = Descriptor(adopting: number)
      let inode = try socket.inode()
      guard UnixSocket.isConnectedStream(number), let record = legacy.records[inode],
        record.subscription.map({ max($0.place, $0.lag?.last ?? 0) <= events.last }) ?? true
      else {
        // Nothing is known of it, or nobody could say how far its request came: the client must not wait for ever.
        return try socket.shutdownBoth()
      }
      let connection = connections.insert(socket, peer: processes.held(attestation.held(record.peer)), settings.limits)
      connection.isStored = true
      connection.input = record.input
      connection.output = record.output
      // Nobody can tell any more what is in it.
      connection.holdsSecret = !record.output.isEmpty
      connection.hasEnded = record.hasEnded
      connection.isClosing = record.isClosing
      connection.subscription = record.subscription
      if record.subscription != nil { countSubscriber(connection) }
      findProcess(of: connection)
      rest(connection)
      beginToWatch(connection)
    } catch {
      say(.handoverUnreadable("\(error)"))
    }
  }

  /// Goes on with what was taken over, once everything else is in place.
  func resume() {
    for connection in connections.all {
      watchProcess(of: connection)
      if connections[connection.token] === connection { advance(connection) }
    }
  }
}

// MARK: - Keeping

extension Server {
  /// A connection goes on: a kill from here on leaves it at a point that nobody knows.
  func hold(_ connection: Connection) { if connection.isStored { memory?.set(.busy, connection.token.slot) } }

  /// A connection rests. What is to be known of it is written down where that is not there already, and the service
  /// manager has it.
  func rest(_ connection: Connection) {
    guard connection.isStored, let memory, connection.inFlight == 0, !connection.hasLongAnswer,
      connections[connection.token] === connection
    else { return }
    // Most are, most of the time.
    if connection.isKeptAsItIs, !connection.isDraining { return memory.set(.atRest, connection.token.slot) }
    guard !connection.isDraining else { return memory.forget(connection.token.slot) }
    let shape = connection.shape
    if shape.isPlain, shape == connection.keptShape {
      if let place = connection.subscription?.place { memory.set(place: place, connection.token.slot) }
      return memory.set(.atRest, connection.token.slot)
    }
    guard let record = record(of: connection) else { return }
    connection.keptShape = memory.keep(record, in: connection.token.slot) ? shape : nil
  }

  private func record(of connection: Connection) -> HandoverRecord? {
    guard let inode = try? connection.descriptor.inode() else { return nil }
    return HandoverRecord(
      inode: inode, peer: connection.peer, subscription: connection.subscription, hasEnded: connection.hasEnded,
      isClosing: connection.isClosing, input: connection.input,
      output: Array(connection.output[connection.sent...]))
  }

  /// Settles new connections, those that are still there after a moment: most are not.
  func settleSoon(_ connection: Connection) {
    fresh.append(connection.token)
    guard fresh.count == 1 else { return }
    freshTimer?.arm(after: UInt64(Bound.settleConnectionMilliseconds) * 1_000)
  }

  /// Watches the processes of those that wait for it, and gives the connections to the service manager.
  func settleConnections() {
    var waiting: [Connection] = []
    while let token = fresh.popFirst() { if let connection = connections[token] { waiting.append(connection) } }
    // Thousands that came at once leave no memory behind.
    fresh = TokenQueue()
    for connection in waiting { watchProcess(of: connection) }
    waiting.removeAll { connections[$0.token] !== $0 }
    guard memory != nil, !waiting.isEmpty else { return }
    for connection in waiting {
      connection.isStored = true
      rest(connection)
    }
    ServiceManager.store(waiting.map { $0.descriptor.number }, name: Kept.connection)
  }

  /// The end of an orderly stop: everything that the next run has to know is sealed and given away.
  func handOver() {
    guard memory != nil else { return }
    settleConnections()
    do {
      let records = connections.all.filter { !$0.isDraining }.compactMap { record(of: $0) }
      let file = try HandoverMemory.seal(records, lastUUID: sequence.lastHandedOut)
      ServiceManager.store([file.descriptor.number], name: Kept.handover)
    } catch {
      say(.handoverUnreadable("\(error)"))
    }
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
  }
}
