import IdentityCore
import IdentityWire
import LinuxSystem

/// The processes behind connections that last longer than a moment.
///
/// Each process is watched once. However many connections a user has through a process, the watch takes only one
/// descriptor, which counts against the bound on descriptors.
struct PeerProcessTable {
  /// A process and the user as which it connected.
  struct Key: Hashable {
    let number: Int32
    let userID: UInt32

    init(number: Int32, userID: UInt32) {
      self.number = number
      self.userID = userID
    }

    init(_ peer: Peer) { self.init(number: peer.processID, userID: peer.userID) }
  }

  /// A watched process and its connections.
  private final class Process {
    let descriptor: Descriptor
    let peer: HeldPeer
    var connections: Set<ConnectionToken>

    init(_ descriptor: consuming Descriptor, _ connection: Connection) {
      self.descriptor = descriptor
      peer = connection.held
      connections = [connection.token]
    }
  }

  private var processes: [Key: Process] = [:]

  /// Returns the pidfd of a watched process; nil if the process is not watched.
  func watched(_ key: Key) -> Int32? { processes[key]?.descriptor.number }

  /// Adds a connection to a watched process.
  mutating func add(_ token: ConnectionToken, to key: Key) { processes[key]?.connections.insert(token) }

  /// Adds a process to watch, with its first connection.
  mutating func insert(_ process: consuming Descriptor, _ key: Key, _ connection: Connection) {
    processes[key] = Process(process, connection)
  }

  /// Returns the ``HeldPeer`` for a connection: that of the process's earlier connections if their peer is equal, so
  /// that they share one object.
  func held(_ held: HeldPeer) -> HeldPeer {
    if let process = processes[Key(held.peer)], process.peer.peer == held.peer { return process.peer }
    return held
  }

  /// Removes a connection. After the last connection of a process, the process is no longer watched.
  mutating func remove(_ token: ConnectionToken, of key: Key) {
    guard let process = processes[key], process.connections.remove(token) != nil else { return }
    if process.connections.isEmpty { processes[key] = nil }
  }

  /// Removes a process that has ended, and returns its connections ordered by token.
  mutating func end(_ key: Key) -> [ConnectionToken] {
    guard let process = processes.removeValue(forKey: key) else { return [] }
    return process.connections.sorted { $0.rawValue < $1.rawValue }
  }
}

// A connection ends when the process that opened it exits. A process that inherited the connection is another peer.
extension Server {
  /// Watches the process behind a connection from now on.
  ///
  /// Not called at connect time, because most connections end after one request, and the watch would be wasted on them.
  func watchProcess(of connection: Connection) {
    guard let process = connection.process.take() else { return }
    let key = PeerProcessTable.Key(connection.peer)
    do {
      if let watched = processes.watched(key) {
        // A PID belongs to one process at a time. So this is the watched process, unless that has ended.
        if try PeerCredentials.isAlive(watched) { return processes.add(connection.token, to: key) }
        endProcess(key)
      }
      try readiness.add(process.number, .read, token: LoopToken.process(key))
      processes.insert(process, key, connection)
    } catch {
      // The end of the process would go unnoticed.
      drop(connection, "\(error)")
    }
  }

  /// Finds the process of a connection that was taken over. The process may have ended meanwhile.
  func findProcess(of connection: Connection) {
    do {
      connection.process = try PeerCredentials.processDescriptor(
        of: connection.descriptor, number: connection.peer.processID)
    } catch {
      orphan(connection, goesOn: false)
    }
  }

  /// Ends the connections of a process that has ended.
  func endProcess(_ key: PeerProcessTable.Key) {
    for token in processes.end(key) { if let connection = connections[token] { orphan(connection) } }
  }

  /// Ends a connection whose process has ended. Input sent before is still answered. Later input is not from
  /// that process.
  private func orphan(_ connection: Connection, goesOn: Bool = true) {
    guard connection.session.reading == .open, !connection.session.isDraining else { return }
    connection.session.endProcess(unread: (try? connection.descriptor.unread()) ?? 0)
    endSubscription(of: connection)
    // Queued, because one process may leave a thousand connections.
    if goesOn { waitForTurn(connection) }
  }

  /// Sends the reason before the connection closes, in case another process still has the connection.
  func refuseOrphan(_ connection: Connection) {
    connection.session.close()
    Refusal.orphaned.append(to: &connection.output)
  }
}
