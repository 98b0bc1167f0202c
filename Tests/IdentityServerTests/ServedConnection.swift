import Attestation
import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem
import Sessions
import Systemd
import TestSupport

@testable import IdentityServer

/// A connection over a real socket that the parts of the loop serve in the process of the test, from a new store.
///
/// There is no writer's thread: requests that need a change wait forever. The test takes turns explicitly.
final class ServedConnection {
  private let folder: TemporaryFolder
  private let client: Descriptor
  private let connections = ConnectionTable()
  private let scheduler: TurnScheduler
  private let closer: ConnectionCloser
  private let service: ConnectionService
  let connection: Connection

  init() throws {
    folder = try TemporaryFolder()
    var store = try Store.open(
      try StateDirectory.open(path: folder.path + "/state"), options: .init(), now: Timestamp(milliseconds: 0),
      identity: UUID(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef), machine: MachineMarks())
    let log = LogSink { _ in }
    let loop = try EventLoop()
    let settings = ServerSettings()
    let (known, measurements, uuids) = (KnownAnswers(), Measurements(), FreshUUIDs())
    let content = store.takeContent()
    let lifetimes = CurrentLifetimes(Lifetimes(content.derivation, .none, settings.proofs))
    let secretMemory = try store.makeSecretMemory()
    let readiness = try ReadinessSet()
    let state = CommittedState(content, keySource: store.keySource, proofKeyCipher: nil, log: log)
    let writer = try WriterChannel()
    let handover = Handover(connections, uuids, log)
    scheduler = TurnScheduler(connections, writer)
    let publisher = Publisher(state, connections, scheduler)
    let failures = CredentialFailures(connections, scheduler, loop, log, settings)
    let encoder = AnswerEncoder(
      state, connections, uuids, handover, measurements, failures, secretMemory: secretMemory)
    let lease = FleetLease()
    let status = StatusAnswers(state, connections, lease, boot: nil, socketPath: "", stateDirectory: "", settings)
    let statistics = StatisticsAnswers(
      state, connections, writer, known, measurements, status,
      logBacklog: { LogBacklog(waiting: 0, lost: 0, suppressed: 0) })
    let jobs = JobSubmission(connections, writer, publisher)
    let orders = ProofOrders(
      state, connections, scheduler, encoder, measurements, jobs, readiness: readiness, loop: loop)
    let proofs = ProofAnswers(
      state, connections, scheduler, encoder, measurements, jobs, lifetimes: lifetimes, loop: loop, orders: orders)
    let local = LocalRequests(
      state, publisher, encoder, status: status, statistics: statistics, lifetimes: lifetimes, lease: lease,
      failures: failures)
    let dispatcher = RequestDispatcher(
      state, connections, scheduler, encoder, local: local, proofs: proofs, jobs: jobs, lifetimes: lifetimes,
      lease: lease, known: known, measurements: measurements, secretMemory: secretMemory)
    let processes = PeerProcesses(readiness)
    closer = ConnectionCloser(
      connections, scheduler, local, publisher, handover, processes, measurements: measurements, readiness: readiness,
      loop: loop, log: log)
    let credentials = CredentialAnswers(
      connections, scheduler, dispatcher, encoder, measurements, loop: loop, lifetimes: lifetimes
    ) { peer, _ in peer }
    service = ConnectionService(
      connections, scheduler, dispatcher, publisher, handover, processes, closer: closer, credentials: credentials,
      jobs: jobs, known: known, readiness: readiness)
    var ends: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    try system("socketpair") { unsafe socketpair(AF_UNIX, kind, 0, &ends) }
    client = Descriptor(adopting: ends[1])
    let peer = Peer(userID: 1_000, groupID: 1, processID: 2, isAdmin: false)
    connection = connections.insert(
      Descriptor(adopting: ends[0]), peer: HeldPeer(peer, .user(1_000)), settings.limits, process: nil)
    service.begin(connection)
  }

  /// Whether the daemon has closed the connection, or shut its side down.
  var hasEnded: Bool { connection.session.isDraining || connections[connection.token] == nil }

  /// The number of bytes that are kept because their line is not complete.
  var waitingInput: Int { connection.input.count }

  /// Sends bytes as the client, takes turns until nothing is left to do, and returns the lines received.
  func send(_ bytes: [UInt8]) throws -> [String] {
    var left = bytes[...]
    var received: [UInt8] = []
    repeat {
      let count = try? client.send(Array(left))
      left = left.dropFirst((count ?? nil) ?? 0)
      serve()
      received += try receive()
    } while (!left.isEmpty || connection.hasUnsentOutput) && !hasEnded
    received += try receive()
    return String(decoding: received, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Sends text as the client.
  func send(_ text: String) throws -> [String] { try send(Array(text.utf8)) }

  /// Shuts down the client's sending side, and returns the lines received.
  func endSending() throws -> [String] {
    try client.shutdownWriting()
    serve()
    return String(decoding: try receive(), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func serve() {
    service.takeIn(.newsAndRoom, of: connection, isTurn: true)
    while scheduler.waiting > 0 { scheduler.giveTurns(behind: 0, service) }
  }

  private func receive() throws -> [UInt8] {
    let buffer = ByteBuffer(count: 65_536)
    var received: [UInt8] = []
    while let count = try client.receive(into: buffer, atMost: buffer.count), count > 0 {
      buffer.withBytes(first: count) { received.appendWiping($0) }
    }
    return received
  }
}
