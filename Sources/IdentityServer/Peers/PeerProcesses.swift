import Attestation
import IdentityCore
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

/// The processes that opened connections. A connection ends when the process that opened it exits: a process that
/// inherited the connection is another peer.
final class PeerProcesses {
  private let readiness: ReadinessSet
  private var table = PeerProcessTable()
  /// A pidfd of the process whose connection ended last. While any pidfd of a process is open, the kernel creates
  /// another one cheaply, and a process that connected once often connects again.
  private var latest: Descriptor?
  /// Processes that have ended while they still had connections.
  private var ended: [PeerProcessTable.Key] = []
  /// Whether processes have ended. Stored, because a look into the array would cost more.
  private(set) var hasOrphans = false

  init(_ readiness: ReadinessSet) { self.readiness = readiness }

  /// Returns the ``HeldPeer`` for a connection; see ``PeerProcessTable/held(_:)``.
  func held(_ held: HeldPeer) -> HeldPeer { table.held(held) }

  /// Watches the process behind a connection from now on.
  ///
  /// Not called at connect time, because most connections end after one request, and the watch would be wasted on them.
  ///
  /// - Parameter orphan: takes each connection of an earlier process with the same PID, which has ended.
  /// - Throws: an error if the end of the process would go unnoticed.
  func watch(_ connection: Connection, orphan: (ConnectionToken) -> Void) throws(SystemError) {
    guard let process = connection.establishment.process.take() else { return }
    let key = PeerProcessTable.Key(connection.peer)
    if let watched = table.watched(key) {
      // A PID belongs to one process at a time. So this is the watched process, unless that has ended.
      if try PeerCredentials.isAlive(watched) { return table.add(connection.token, to: key) }
      for token in table.end(key) { orphan(token) }
    }
    try readiness.add(process.number, .read, token: LoopToken.process(key))
    table.insert(process, key, connection)
  }

  /// Notes that a watched process has ended.
  func noteEnd(of key: PeerProcessTable.Key) {
    ended.append(key)
    hasOrphans = true
  }

  /// Removes the processes that have ended, and returns their connections.
  func takeOrphans() -> [ConnectionToken] {
    let orphans = ended.flatMap { table.end($0) }
    ended.removeAll(keepingCapacity: true)
    hasOrphans = false
    return orphans
  }

  /// Removes a connection that has closed.
  func remove(_ connection: Connection) {
    if let process = connection.establishment.process.take() {
      latest = consume process
    } else {
      table.remove(connection.token, of: PeerProcessTable.Key(connection.peer))
    }
  }
}
