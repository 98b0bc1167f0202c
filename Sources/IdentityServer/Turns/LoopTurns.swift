import IdentityCore
import LinuxSystem
import Sessions
import Systemd

/// The turns of the loop: takes in the kernel's events, and gives out the work.
final class LoopTurns {
  private let readiness: ReadinessSet
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let arrivals: Arrivals
  private let processes: PeerProcesses
  private let service: ConnectionService
  private let closer: ConnectionCloser
  private let answers: WriterAnswers
  private let proofs: ProofAnswers
  private let lifeCycle: LifeCycle
  private let writer: WriterChannel
  private let measurements: Measurements
  private let loop: EventLoop
  private let log: LogSink
  /// The time for which the loop polls for events before it sleeps, in microseconds (`PollMicroseconds=`).
  var pollMicroseconds: UInt64

  init(
    _ readiness: ReadinessSet, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ arrivals: Arrivals,
    _ processes: PeerProcesses, _ service: ConnectionService, closer: ConnectionCloser, answers: WriterAnswers,
    proofs: ProofAnswers, lifeCycle: LifeCycle, writer: WriterChannel, measurements: Measurements, loop: EventLoop,
    log: LogSink, pollMicroseconds: UInt64
  ) {
    self.readiness = readiness
    self.connections = connections
    self.scheduler = scheduler
    self.arrivals = arrivals
    self.processes = processes
    self.service = service
    self.closer = closer
    self.answers = answers
    self.proofs = proofs
    self.lifeCycle = lifeCycle
    self.writer = writer
    self.measurements = measurements
    self.loop = loop
    self.log = log
    self.pollMicroseconds = pollMicroseconds
  }

  /// Adds the descriptors of the loop to the readiness set; see ``LoopToken``.
  func start() throws {
    // Edge-triggered: each ring is reported once, so the bell need not be reset, which would take another system call.
    try readiness.add(writer.reportDescriptor, [.read, .once], token: LoopToken.reports)
    try readiness.add(loop.descriptor, .read, token: LoopToken.sources)
    try lifeCycle.watchMounts(in: readiness)
    try arrivals.start(loop)
  }

  /// Runs one turn of the loop: takes in the kernel's events, then gives a turn to each principal with pending work, then
  /// takes in the writer's reports, then accepts a connection.
  ///
  /// Requests that are here already so never wait for one that only connects, nor for more than one.
  ///
  /// - Parameter waits: whether to wait if there is nothing to do.
  func run(waits: Bool) {
    let waiting = scheduler.waiting
    writer.inTurn { takeNews(waits: waits && waiting == 0 && !answers.isDue) }
    if scheduler.waiting > 0 { scheduler.giveTurns(behind: waiting, service) }
    if answers.isDue { writer.inTurn { answers.take() } }
    if arrivals.isDue { writer.inTurn { _ = arrivals.acceptOne() } }
    measurements.endTurn()
    // After their connections were served: most connections have ended together with their process.
    if processes.hasOrphans { for token in processes.takeOrphans() { closer.orphan(token) } }
    if closer.stage != .running { lifeCycle.goOnStopping() }
  }

  /// Takes in events from the kernel.
  ///
  /// If several principals are connected, takes in all events, so that no request waits behind a list of events of
  /// other principals. If only one is connected, takes in one batch, so that the events of that principal do not keep
  /// the loop from other work.
  ///
  /// - Parameter isLast: whether to take in all events in any case.
  private func takeNews(waits: Bool, isLast: Bool = false) {
    var count = 0
    var looks = 0
    repeat {
      do {
        count = try waits && count == 0 ? waitForNews() : readiness.wait(false)
      } catch {
        return log(.notServing("\(error)"))
      }
      if looks == 0 { measurements.beginTurn() }
      takeIn(count)
      looks += 1
    } while count == ReadinessSet.room && looks < Bound.looksAtOnce && (isLast || connections.isShared)
  }

  /// Waits for events. Busy-polls for `PollMicroseconds` before it sleeps.
  ///
  /// Going to sleep and waking up can take longer than an answer, above all in a virtual machine.
  private func waitForNews() throws(SystemError) -> Int {
    if pollMicroseconds > 0 {
      let started = Clock.monotonicMicroseconds
      repeat {
        let count = try readiness.wait(false)
        if count > 0 { return count }
      } while Clock.monotonicMicroseconds - started < pollMicroseconds
    }
    return try readiness.wait(true)
  }

  /// Takes in the events of the last wait.
  ///
  /// A ready connection is served at once, without a queue, if nobody waits for a turn and no other principal can
  /// become ready. The latter holds if there is only one event, or if only one principal is connected. After the length
  /// of a turn, the remaining connections are queued.
  private func takeIn(_ count: Int) {
    var isTurn = count == 1 || !connections.isShared
    let started = count == 1 ? 0 : Clock.monotonicMicroseconds
    var untilLook = Bound.servedBetweenLooks
    for index in 0..<count {
      untilLook -= 1
      if untilLook == 0 {
        untilLook = Bound.servedBetweenLooks
        isTurn = isTurn && Clock.monotonicMicroseconds - started < connections.turn.microseconds
      }
      takeIn(readiness[index], isTurn: isTurn && scheduler.waiting == 0)
    }
  }

  @inline(__always)
  private func takeIn(_ ready: ReadinessSet.Ready, isTurn: Bool) {
    if let connection = connections[ConnectionToken(rawValue: ready.token)] {
      service.takeIn(ready.interest, of: connection, isTurn: isTurn)
    } else {
      takeInOther(ready.token)
    }
  }

  /// Takes in an event of another descriptor than a connection's. Not inlined, because its exclusivity checks would be
  /// made for each event.
  @inline(never)
  private func takeInOther(_ token: UInt64) {
    switch token {
    case LoopToken.listener: arrivals.note()
    case LoopToken.reports: answers.noteNews()
    case LoopToken.sources: loop.wake()
    case LoopToken.mounts: lifeCycle.noteMount()
    case LoopToken.proofs: writer.inTurn { proofs.takeAnswers() }
    default: if let key = LoopToken.process(of: token) { processes.noteEnd(of: key) }
    }
  }

  /// Accepts the connections and serves the requests that are pending when the daemon stops, and accepts no others.
  func serveLast() {
    // Connections and requests made before the signal are in the sockets by now, so they are taken in once more.
    arrivals.acceptLast()
    takeNews(waits: false, isLast: true)
    scheduler.giveLastTurns(service)
  }
}
