import IdentityCore
import IdentityWire
import LinuxSystem

/// The processes behind connections that last. Each is watched once, however many connections a user has by it: that is
/// what counts against the bound on descriptors.
struct PeerProcessTable {
  /// A process that connected as a user.
  struct Key: Hashable {
    let number: Int32
    let userID: UInt32

    init(number: Int32, userID: UInt32) {
      self.number = number
      self.userID = userID
    }

    init(_ peer: Peer) { self.init(number: peer.processID, userID: peer.userID) }
  }

  /// A process, and what it connected.
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

  /// The descriptor of the process with this number that is watched already; nil where none is.
  func watched(_ key: Key) -> Int32? { processes[key]?.descriptor.number }

  /// Takes in that a process which is watched has one more connection.
  mutating func add(_ token: ConnectionToken, to key: Key) { processes[key]?.connections.insert(token) }

  /// Takes in a process that is to be watched.
  mutating func insert(_ process: consuming Descriptor, _ key: Key, _ connection: Connection) {
    processes[key] = Process(process, connection)
  }

  /// What a connection of this peer is to hold: the same as those that its process has, where they are of the same peer.
  func held(_ held: HeldPeer) -> HeldPeer {
    if let process = processes[Key(held.peer)], process.peer.peer == held.peer { return process.peer }
    return held
  }

  /// A connection is gone; with its last one the process is watched no more.
  mutating func remove(_ token: ConnectionToken, of key: Key) {
    guard let process = processes[key], process.connections.remove(token) != nil else { return }
    if process.connections.isEmpty { processes[key] = nil }
  }

  /// A process has ended: its connections, in the order they came.
  mutating func end(_ key: Key) -> [ConnectionToken] {
    guard let process = processes.removeValue(forKey: key) else { return [] }
    return process.connections.sorted { $0.rawValue < $1.rawValue }
  }
}

// Who has connected counts, and only as long as that process lives: whoever it left the connection to is somebody else.
extension Server {
  /// Watches the process behind a connection from now on.
  ///
  /// Not at once when it connects: most are gone after one request, and would cost the watch for nothing.
  func watchProcess(of connection: Connection) {
    guard let process = connection.process.take() else { return }
    let key = PeerProcessTable.Key(connection.peer)
    do {
      if let watched = processes.watched(key) {
        // The number belongs to one process at a time, so this is that one, or that one has ended.
        if try PeerCredentials.isAlive(watched) { return processes.add(connection.token, to: key) }
        endProcess(key)
      }
      try readiness.add(process.number, .read, token: LoopToken.process(key))
      processes.insert(process, key, connection)
    } catch {
      // Nobody would notice its end.
      drop(connection, "\(error)")
    }
  }

  /// Finds the process of a connection that was taken over, which may have ended meanwhile.
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

  /// The process that connected has ended. What it sent is still answered; what comes from here on is not its.
  private func orphan(_ connection: Connection, goesOn: Bool = true) {
    guard connection.left == nil, !connection.isDraining else { return }
    connection.left = (try? connection.descriptor.unread()) ?? 0
    endSubscription(of: connection)
    // One process may leave a thousand of them.
    if goesOn { waitForTurn(connection) }
  }

  /// Says why before the connection closes, where anybody still has it.
  func sayOrphaned(_ connection: Connection) throws(SystemError) {
    connection.isClosing = true
    Refusal.orphaned.append(to: &connection.output)
    try flush(connection)
  }
}
