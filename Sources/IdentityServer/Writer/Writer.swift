import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Systemd

/// The writer, on the thread that owns the store. Its registry is ahead of the committed one by the batch in flight.
///
/// All jobs that arrive during one commit share the next commit (group commit). Then many writing clients cost little
/// more than one, and no timer delays a single client.
final class Writer {
  var store: Store
  var registry: Registry
  var surveyor: Surveyor
  let activity: WriterActivity
  private(set) var lifetimes: Lifetimes { didSet { surroundings = lifetimes.surroundings } }
  private var surroundings: Surroundings
  var startup: Startup
  private var limits: Limits
  /// The secrets of items that were changed in the batch in flight, by edition.
  private var uncommitted: [UUID: SealedSecret] = [:]
  private let uuids = FreshUUIDs()
  /// The time of the last attempt to heal the store, in microseconds of the monotonic clock.
  var lastHealing: UInt64?
  /// The party whose request is being decided; the daemon between two requests.
  var originator = Originator.daemon
  /// The backups and restores that were asked for.
  var longJobs = LongJobs()
  /// Whether the loop has its reader of secrets, as far as one can be made.
  var hasReader = false
  private let outbox: Mailbox<WriterReport>

  init(
    store: consuming Store, content: StoreContent, start: StartFacts, lifetimes: Lifetimes,
    sources: WriterSources, outbox: Mailbox<WriterReport>, activity: WriterActivity
  ) {
    self.store = store
    registry = content.registry
    startup = .comparing(start, isServing: false)
    self.lifetimes = lifetimes
    surroundings = lifetimes.surroundings
    limits = start.limits
    surveyor = Surveyor(sources)
    self.outbox = outbox
    self.activity = activity
  }

  /// Does the work before the first request: compares the machine with the recorded one, reports the system's version,
  /// compares the installed apps with their manifests, and gives the machine its identity.
  func begin(_ folders: [String]) -> WriterReport {
    var report = WriterReport(store: facts)
    compareMachine(&report)
    reportSystem(&report)
    survey(folders, &report) {
      ServiceManager.notify(["EXTEND_TIMEOUT_USEC=\(Bound.startExtensionMicroseconds)"])
    }
    // After the survey, since a backup has the identifiers of apps, which have to be installed.
    provision(&report)
    return report
  }

  /// Processes messages until one of them is ``WriterMessage/stop``.
  func run(_ inbox: Mailbox<WriterMessage>) {
    var queue = JobQueue()
    var stops = false
    var forgetting: UnusedRemoval?
    // Done here and not in ``begin(_:)``, because only requests for secrets wait for the reader.
    store.measure()
    var report = WriterReport(store: facts)
    readItems(&report)
    handOverReader(&report)
    outbox.send(report)
    // A store of an earlier release may have a longer history than is kept.
    var hasSurplus = true
    while true {
      var report = WriterReport()
      var folders: [String]?
      var uses: (apps: Set<Text>, forgetting: ForgetPolicy)?
      var backup: Timestamp?
      var examines = false
      var hasNewOwner = false
      let isWaiting = queue.isEmpty && !hasSurplus && forgetting == nil && longJobs.jobs.isEmpty
      let messages = inbox.takeAll(waits: isWaiting)
      // A spurious wake-up: the messages of this ring were taken already.
      if messages.isEmpty, isWaiting { continue }
      for message in messages {
        switch message {
        case .job(let job): queue.append(job)
        case .survey(let named): folders = named
        case .rangeOwner(let user): hasNewOwner = surveyor.add(owner: user) || hasNewOwner
        case .limits(let new): limits = new
        case .proofs(let new): lifetimes.proofs = new
        case .used(let apps, let policy): uses = (apps.union(uses?.apps ?? []), policy)
        case .backupTaken(let made): backup = made
        case .examine: examines = true
        case .heartbeat(let number): report.heartbeat = number
        case .release:
          store.releaseMemory()
          ProcessMemory.release()
          ProcessMemory.releaseStack()
        case .stop: stops = true
        }
      }
      let jobs = queue.take(
        queue.isShared ? min(limits.changesPerCommit, Bound.changesPerSharedCommit) : limits.changesPerCommit)
      let hasWork = !jobs.isEmpty || folders != nil || uses != nil || backup != nil || forgetting != nil
      if examines { examine(&report) }
      if hasWork { healIfDue(&report) }
      if hasWork || examines {
        compareMachine(&report)
        reportSystem(&report)
      }
      // Done before the jobs, which may be those of users whose owner becomes known now. Faults are dropped here,
      // because each survey reports them.
      if hasNewOwner { readSubordinates(&report) }
      if jobs.lazy.compactMap(\.removedApp).contains(where: { registry.apps.hasManifest($0) }) {
        survey(folders ?? surveyor.folders, &report)
        folders = nil
      }
      for rest in carryOut(jobs, isShared: queue.isShared, &report) { queue.append(rest) }
      goOnWithLongWork(&report)
      if let folders { survey(folders, &report) }
      if let uses, record(uses.apps, &report) {
        // It may be another day, after which more is to be dropped.
        hasSurplus = true
        if !uses.forgetting.isNever { forgetting = UnusedRemoval(policy: uses.forgetting) }
      }
      if !stops, let removal = forgetting { forgetting = forgetUnused(removal, &report) }
      if let backup { record(backup: backup, &report) }
      if hasSurplus, !stops { hasSurplus = dropSurplus(&report) }
      handOverReader(&report)
      if stops { forgetting = nil }
      let isLast = stops && queue.isEmpty && longJobs.jobs.isEmpty
      if isLast {
        if let failure = activity.inStorage({ store.close() }) { report.notices.append(.closing(failure)) }
        report.hasStopped = true
        ProcessMemory.keepUntilExit(registry)
      }
      report.store = facts
      outbox.send(report)
      if isLast { return }
    }
  }

  /// Gives the loop a reader of secrets once there are items. Not before, because a reader is a database connection
  /// with memory of its own.
  func handOverReader(_ report: inout WriterReport) {
    guard !hasReader, registry.items.total.items > 0 else { return }
    hasReader = true
    report.reopened = Reopened(
      reader: store.makeItemReader(), keySource: store.keySource, proofKeyCipher: store.makeProofKeyCipher())
  }

  private var facts: WriterReport.StoreFacts {
    .init(recoveryKeyTime: store.recoveryKeyTime, size: store.size, isStartDue: store.isStartDue)
  }

  // MARK: Start

  /// Reads the items that the start on a large store has left out.
  ///
  /// - Returns: whether there were any to read.
  @discardableResult
  func readItems(_ report: inout WriterReport) -> Bool {
    guard store.lacksItems else { return false }
    let before = store.condition
    activity.inStorage { store.readItems(into: &registry) }
    report.items = registry
    noteCondition(before, &report)
    return true
  }

  /// Compares the machine with the recorded one.
  ///
  /// If identifiers have to be renewed and cannot be, nothing is answered, because the identifiers in force may be
  /// those of another machine.
  private func compareMachine(_ report: inout WriterReport) {
    guard case .comparing(let start, _) = startup else { return }
    let context = context(for: nil)
    do {
      func decided() throws(Refusal) -> [Change] {
        try registry.changesAtStart(
          on: start.fingerprint, isSealedHere: start.isSealedHere, onMachineChange: start.onMachineChange,
          onHardwareChange: start.onHardwareChange, context)
      }
      var changes = try decided()
      // A renewal for another machine looks at the items.
      if !changes.isEmpty, readItems(&report) { changes = try decided() }
      let isRecorded =
        changes.isEmpty || store.condition.refusal == nil && commit(changes, at: context.now, &report) == nil
      let renews = changes.contains { if case .identifierMade = $0 { true } else { false } }
      switch store.condition {
      case _ where isRecorded: startup = .recorded
      // A damaged store is served as far as it is proven. Nothing in it can be changed, whichever machine this is.
      case .damaged, .unreadable: startup = .comparing(start, isServing: true)
      case .writable, .full, .unwritable: startup = .comparing(start, isServing: !renews)
      }
    } catch {
      startup = .comparing(start, isServing: false)
    }
    report.isStarted = startup.isServing
  }

  // MARK: Jobs

  /// Carries out jobs in order. Consecutive jobs about the registry share a batch.
  ///
  /// - Parameter isShared: whether other principals may wait.
  /// - Returns: jobs for the rest of changes that take several steps.
  private func carryOut(_ jobs: [Job], isShared: Bool, _ report: inout WriterReport) -> [Job] {
    var batch: [(Job, RegistryCommand)] = []
    var rest: [Job] = []
    for job in jobs {
      switch job.work {
      case .registry(let command): batch.append((job, command))
      case .long(let task): longJobs.append(job, task)
      case .store(let command):
        rest += carryOutTogether(batch, isShared: isShared, &report)
        batch = []
        originator = job.originator
        report.results.add(.init(job, perform(command, &report)))
      }
    }
    rest += carryOutTogether(batch, isShared: isShared, &report)
    originator = .daemon
    return rest
  }

  private func carryOutTogether(_ batch: [(Job, RegistryCommand)], isShared: Bool, _ report: inout WriterReport)
    -> [Job]
  {
    guard !batch.isEmpty else { return [] }
    // A local variable. Closures of the context could change the property, so each read of the property would copy
    // the registry.
    var registry = registry
    var recorded: [RecordedChange] = []
    recorded.reserveCapacity(batch.count)
    var context = context(for: nil)
    var outcomes: [WriterReport.Outcome] = []
    outcomes.reserveCapacity(batch.count)
    var unfinished: [Job] = []
    var ends: [WriterReport.Results.End] = []
    var nextEnd = TurnBound.shared.changes
    // Several steps of a change share a transaction only if nobody waits for its end.
    let most = isShared ? 0 : limits.changesPerCommit
    for (job, command) in batch {
      originator = job.originator
      context.peer = job.peer
      let result = decideSteps(command, context, most, &registry, &recorded)
      if case .success(let answer) = result, let next = answer.next {
        unfinished.append(Job(job, goingOnWith: next))
      } else {
        outcomes.append(.init(job, result))
      }
      let size = max(recorded.count, outcomes.count)
      if size >= nextEnd {
        ends.append(.init(changes: recorded.count, outcomes: outcomes.count))
        nextEnd = size + TurnBound.shared.changes
      }
    }
    let events = recorded.events
    // A change that is not on disk is refused, even if a rule allowed it.
    if let failure = commit(recorded, events, &report) {
      outcomes = outcomes.map { $0.refused(failure) } + unfinished.map { .init($0, .failure(failure)) }
      report.results.add([], [], outcomes)
      return []
    }
    self.registry = consume registry
    report.results.add(recorded, events, outcomes, ends: ends)
    return unfinished
  }

  /// Decides a command, with as many of its further steps as fit into a number of changes.
  private func decideSteps(
    _ command: RegistryCommand, _ context: Context, _ most: Int, _ registry: inout Registry,
    _ recorded: inout [RecordedChange]
  ) -> Result<WriterReport.Answer, Refusal> {
    var result = decide(command, context, &registry, &recorded)
    while case .success(let answer) = result, let next = answer.next, recorded.count < most {
      result = decide(next, context, &registry, &recorded)
    }
    return result
  }

  private func decide(
    _ command: RegistryCommand, _ context: Context, _ registry: inout Registry, _ recorded: inout [RecordedChange]
  ) -> Result<WriterReport.Answer, Refusal> {
    do throws(Refusal) {
      try requireStarted()
      let decision = try registry.decide(command, context)
      // A command that changes nothing is served even if the store cannot be written.
      if !decision.changes.isEmpty { try refuseUnwritable() }
      var answer = WriterReport.Answer(reply: decision.reply, next: decision.nextCommand)
      for item in decision.reply.secrets { answer.secrets.append(try context.secret(item)) }
      for change in decision.changes { recorded.append(record(change, at: context.now, in: &registry)) }
      return .success(answer)
    } catch {
      return .failure(error)
    }
  }

  private func record(_ change: Change, at now: Timestamp, in registry: inout Registry) -> RecordedChange {
    let recorded = registry.record(change, at: now, by: originator)
    registry.apply(recorded)
    if case .itemStored(let item, let secret, _) = change { uncommitted[item.edition] = secret }
    return recorded
  }

  /// Applies changes to the registry, and commits them with their events in one transaction.
  ///
  /// - Returns: nil on success. After a refusal none of the changes is in effect.
  func commit(_ changes: [Change], at now: Timestamp, _ report: inout WriterReport) -> Refusal? {
    let before = registry
    let recorded = changes.map { record($0, at: now, in: &registry) }
    let events = recorded.events
    let failure = commit(recorded, events, &report)
    if failure == nil { report.results.add(recorded, events, []) } else { registry = before }
    return failure
  }

  /// Commits changes with their events in one transaction. The caller reports them if they are on disk.
  ///
  /// - Returns: nil on success. After a refusal none of the changes is in effect, and the caller must restore its
  ///   registry.
  private func commit(_ recorded: [RecordedChange], _ events: [EventLine], _ report: inout WriterReport) -> Refusal? {
    let before = store.condition
    if case .backup(let backup, _)? = longJobs.work {
      activity.inStorage { backup.writeAhead(of: recorded, from: store) }
    }
    let started = Clock.monotonicMicroseconds
    let failure = activity.inStorage { store.commit(recorded, events: events) }
    // The secrets are committed now, or their changes are refused.
    uncommitted = [:]
    if !recorded.isEmpty {
      let taken = Clock.monotonicMicroseconds - started
      report.commits.append(.init(changes: recorded.count, microseconds: taken, isDone: failure == nil))
    }
    noteCondition(before, &report)
    return failure
  }

  /// Reports the condition of the store if it differs from an earlier one.
  func noteCondition(_ before: StoreCondition, _ report: inout WriterReport) {
    // Logged once and not for each refused request. Otherwise a client could fill the journal.
    guard store.condition != before else { return }
    report.condition = store.condition
    report.notices.append(.store(.condition(store.condition)))
  }

  func requireStarted() throws(Refusal) {
    guard startup.isServing else { throw store.condition.refusal ?? .unavailable("startup has not finished") }
  }

  func refuseUnwritable() throws(Refusal) {
    if let refusal = store.condition.refusal { throw refusal }
  }

  /// Records that the machine goes on from a snapshot, with random bytes that no other machine has.
  func recordResumption() throws(Refusal) -> Resumption {
    uuids.forgetReserve()
    let value = try uuids.next(.random)
    let resumption = try activity.inStorage { () throws(Refusal) in try store.resume(as: value) }
    lifetimes.resumption = resumption
    return resumption
  }

  static var now: Timestamp { Timestamp(milliseconds: Clock.realtimeMilliseconds) }

  func context(for peer: Peer?) -> Context {
    Context(
      peer: peer, in: surroundings, limits: limits,
      random: { () throws(Refusal) in try self.uuids.next(.random) },
      machine: { (scope) throws(Refusal) in
        switch self.surveyor.sources.machine() {
        case .known(let identifier): return self.lifetimes.device(scope, on: identifier)
        case .unknown(let reason):
          self.outbox.send(WriterReport(notices: [.noMachineIdentifier(reason, by: self.originator)]))
          return nil
        }
      },
      digest: { FleetRecord.digest(of: $0) }, fingerprint: { Token.fingerprint(of: $0) },
      secret: { (item) throws(Refusal) in
        if let secret = self.uncommitted[item.edition] { return secret }
        do throws(Refusal) {
          return try self.store.secret(of: item)
        } catch {
          if case .broken = error {
            self.outbox.send(WriterReport(notices: [.secretFault(item, error, by: self.originator)]))
          }
          throw error
        }
      },
      identifier: { (secret) throws(Refusal) in try self.store.identifier(in: secret) })
  }
}
