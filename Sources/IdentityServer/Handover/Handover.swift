import IdentityCore
import LinuxSystem
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

// A restart without closing connections: the service manager holds the connections meanwhile.
extension Server {
  /// Takes over the connections of the last run, and keeps connections for the next run from now on.
  ///
  /// - Parameter descriptors: the descriptors that the service manager has kept, each with its name.
  func takeOver(_ descriptors: [(number: Int32, name: String)]) throws(SystemError) {
    let memory = try HandoverMemory()
    self.memory = memory
    let legacy = legacy(among: descriptors)
    freshUUIDs.resume(after: legacy.lastUUID)
    memory.set(lastUUID: legacy.lastUUID)
    let sockets = descriptors.filter { $0.name == Kept.connection }
    for socket in sockets { takeOver(socket.number, legacy) }
    ServiceManager.removeStored(name: Kept.memory)
    ServiceManager.store([memory.descriptor], name: Kept.memory)
    ServiceManager.removeStored(name: Kept.handover)
    // The sealed state is out of date as soon as any connection proceeds, so the service manager must drop it first.
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
    if !sockets.isEmpty { say(.connectionsTakenOver(connections.count, closed: sockets.count - connections.count)) }
  }

  /// Returns the state that the last run left: the sealed state after an orderly stop, else the state last reached.
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
        // There is no usable record: the connection is unknown, the progress of its request is unknown, or its
        // subscription is ahead of the event log. The client must not wait forever.
        return try socket.shutdownBoth()
      }
      let connection = connections.insert(socket, peer: processes.held(attestation.held(record.peer)), settings.limits)
      connection.isStored = true
      connection.input = record.input
      connection.output = record.output
      connection.session = SessionState(
        hasEnded: record.hasEnded, isClosing: record.isClosing, hasOutput: !record.output.isEmpty)
      connection.subscription = record.subscription
      if record.subscription != nil { countSubscriber(connection) }
      findProcess(of: connection)
      rest(connection)
      beginToWatch(connection)
    } catch {
      say(.handoverUnreadable("\(error)"))
    }
  }

  /// Serves the connections that were taken over, once all of startup is done.
  func resume() {
    for connection in connections.all {
      watchProcess(of: connection)
      if connections[connection.token] === connection { advance(connection) }
    }
  }
}

// MARK: - Keeping

extension Server {
  /// Marks a connection as busy, because the progress at a kill would be unknown from here on.
  func hold(_ connection: Connection) { if connection.isStored { memory?.set(.busy, connection.token.slot) } }

  /// Marks a connection as at rest, and saves its record if the saved one is out of date.
  func rest(_ connection: Connection) {
    guard connection.isStored, let memory, !connection.session.isAtWriter, !connection.session.hasLongAnswer,
      connections[connection.token] === connection
    else { return }
    // The usual case.
    if connection.isKeptAsItIs { return memory.set(.atRest, connection.token.slot) }
    guard !connection.session.isDraining else { return memory.forget(connection.token.slot) }
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
      inode: inode, peer: connection.peer, subscription: connection.subscription, hasEnded: connection.session.hasEnded,
      isClosing: connection.session.isClosing, input: connection.input,
      output: Array(connection.output[connection.sent...]))
  }

  /// Schedules ``settleConnections()`` for a new connection. Most connections have closed before the timer fires.
  func settleSoon(_ connection: Connection) {
    fresh.append(connection.token)
    guard fresh.count == 1 else { return }
    freshTimer?.arm(after: UInt64(Bound.settleConnectionMilliseconds) * 1_000)
  }

  /// Watches the processes of new connections, and gives the connections to the service manager.
  func settleConnections() {
    var waiting: [Connection] = []
    while let token = fresh.popFirst() { if let connection = connections[token] { waiting.append(connection) } }
    // A new queue, so that a burst of thousands of connections leaves no memory behind.
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

  /// Ends an orderly stop: seals the state for the next run and gives it to the service manager.
  func handOver() {
    guard memory != nil else { return }
    settleConnections()
    do {
      let records = connections.all.filter { !$0.session.isDraining }.compactMap { record(of: $0) }
      let file = try HandoverMemory.seal(records, lastUUID: freshUUIDs.lastHandedOut)
      ServiceManager.store([file.descriptor.number], name: Kept.handover)
    } catch {
      say(.handoverUnreadable("\(error)"))
    }
    ServiceManager.barrier(microseconds: UInt64(Bound.barrierMilliseconds) * 1_000)
  }
}
