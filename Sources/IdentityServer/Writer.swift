package import IdentityCore
import IdentityStore
import LinuxSystem
import Synchronization

/// A request that may change the registry, on its way to the writer.
struct Job: Sendable {
  let connection: ConnectionToken
  let command: RegistryCommand
  let peer: Peer
}

/// What the loop tells the writer.
enum WriterMessage: Sendable {
  case job(Job)
  /// To be answered in the next report.
  case heartbeat(UInt64)
  /// Finish what came before, close the store, and end.
  case stop
}

/// What the writer tells the loop, once a batch is on disk or refused.
struct WriterReport: Sendable {
  /// The answer to one job.
  struct Outcome: Sendable {
    let connection: ConnectionToken
    let result: Result<Reply, Refusal>
  }

  /// Durable, in order, to be applied to the committed registry.
  var changes: [Change] = []
  /// In the order of the jobs.
  var outcomes: [Outcome] = []
  /// What has to be logged.
  var notices: [WriterNotice] = []
  /// Takes the place of the committed registry, after the store was written anew.
  var registry: Registry?
  /// What the store can do now; nil where that has not changed.
  var condition: StoreCondition?
  /// The last heartbeat that was received.
  var heartbeat: UInt64?
  /// The store is closed, and the thread ends.
  var hasStopped = false
}

/// Something that the writer met and the loop logs.
enum WriterNotice: Equatable, Sendable {
  case store(StoreNotice)
  /// The device identifier is random, because there is no usable machine-id.
  case noMachineIdentifier(String)
  /// The store could not be closed as it should; everything acknowledged is on disk.
  case closing(String)
}

/// Where the writer gets what the rules must not read by themselves.
package struct WriterSources: Sendable {
  /// The identifier that the machine-id gives, or why there is none.
  package enum Machine: Equatable, Sendable {
    case known(UUID)
    case unknown(String)
  }

  /// Asked only while the device has no identifier.
  package let machine: @Sendable () -> Machine

  /// Names the sources.
  package init(machine: @escaping @Sendable () -> Machine) { self.machine = machine }
}

/// The thread that owns the store. Its registry is ahead of the committed one by the batch in flight.
///
/// All jobs that arrive during one commit share the next (group commit), so that many writers cost little more than one,
/// and no timer makes a single one wait.
final class Writer {
  private var store: Store
  private var registry: Registry
  private var entropy = Entropy()
  private var lastHealing: UInt64?
  private let sources: WriterSources
  private let inbox: Mailbox<WriterMessage>
  private let outbox: Mailbox<WriterReport>
  private let activity: WriterActivity

  init(
    store: consuming Store, registry: Registry, sources: WriterSources, inbox: Mailbox<WriterMessage>,
    outbox: Mailbox<WriterReport>, activity: WriterActivity
  ) {
    self.store = store
    self.registry = registry
    self.sources = sources
    self.inbox = inbox
    self.outbox = outbox
    self.activity = activity
  }

  /// Works until it is told to stop.
  func run() {
    while true {
      var jobs: [Job] = []
      var report = WriterReport()
      var stops = false
      for message in inbox.takeAll() {
        switch message {
        case .job(let job): jobs.append(job)
        case .heartbeat(let number): report.heartbeat = number
        case .stop: stops = true
        }
      }
      if !jobs.isEmpty { carryOut(jobs, &report) }
      if stops {
        activity.enterStorage()
        if let failure = store.close() { report.notices.append(.closing(failure)) }
        activity.leaveStorage()
        report.hasStopped = true
      }
      outbox.send(report)
      if stops { return }
    }
  }

  private func carryOut(_ jobs: [Job], _ report: inout WriterReport) {
    healIfDue(&report)
    let decisions = jobs.map { decide($0, &report) }
    let before = store.condition
    activity.enterStorage()
    let failure = store.commit(report.changes)
    activity.leaveStorage()
    // Nothing of a failed batch is in force, and this registry is ahead of the disk until the store was written anew.
    if failure != nil { report.changes = [] }
    // Said once, not once a refused request: a client could fill the journal.
    if store.condition != before {
      report.condition = store.condition
      report.notices.append(.store(.condition(store.condition)))
    }
    for (job, decision) in zip(jobs, decisions) {
      report.outcomes.append(.init(connection: job.connection, result: outcome(of: decision, after: failure)))
    }
  }

  /// The answer to a job: a change that is not on disk is refused, whatever was decided.
  private func outcome(of decision: Result<Decision, Refusal>, after failure: StoreCondition?) -> Result<Reply, Refusal>
  {
    switch decision {
    case .failure(let refusal): .failure(refusal)
    case .success(let decision):
      // An answer without changes may rest on a change of the same batch, so it is refused too.
      if let refusal = failure?.refusal { .failure(refusal) } else { .success(decision.reply) }
    }
  }

  private func decide(_ job: Job, _ report: inout WriterReport) -> Result<Decision, Refusal> {
    if let refusal = store.condition.refusal { return .failure(refusal) }
    do {
      let random = UUID(high: try entropy.next(), low: try entropy.next()).stamped(version: 4)
      let context = Context(
        peer: job.peer, now: Timestamp(milliseconds: Clock.realtimeMilliseconds), random: random,
        machine: machine(for: job.command, &report))
      let decision = try registry.decide(job.command, context)
      for change in decision.changes { registry.apply(change) }
      report.changes += decision.changes
      return .success(decision)
    } catch let refusal as Refusal {
      return .failure(refusal)
    } catch {
      return .failure(.broken("\(error)"))
    }
  }

  private func machine(for command: RegistryCommand, _ report: inout WriterReport) -> UUID? {
    guard command == .device, registry.device == nil else { return nil }
    switch sources.machine() {
    case .known(let identifier): return identifier
    case .unknown(let reason):
      report.notices.append(.noMachineIdentifier(reason))
      return nil
    }
  }

  private func healIfDue(_ report: inout WriterReport) {
    switch store.condition {
    case .writable, .damaged: return
    case .full, .unwritable: break
    }
    let now = Clock.monotonicMicroseconds
    if let lastHealing, now - lastHealing < UInt64(Bound.healPauseMilliseconds) * 1_000 { return }
    lastHealing = now
    activity.enterStorage()
    let healed = store.heal()
    activity.leaveStorage()
    report.condition = store.condition
    if let healed {
      registry = healed
      report.registry = healed
      report.notices.append(.store(.healed))
    }
  }
}

/// Whether the writer is inside a call to the disk: a slow disk is not a hung daemon, and a restart would not mend it.
final class WriterActivity: Sendable {
  private let inStorage = Atomic<Bool>(false)

  func enterStorage() { inStorage.store(true, ordering: .relaxed) }
  func leaveStorage() { inStorage.store(false, ordering: .relaxed) }
  var isInStorage: Bool { inStorage.load(ordering: .relaxed) }
}
