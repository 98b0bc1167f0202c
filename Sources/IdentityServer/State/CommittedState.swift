import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem

/// The loop's copy of the daemon's state, as of the last commit. The loop answers requests from this copy.
///
/// Only the writer's reports change the copy, so a client never sees a value that a power cut could take back.
final class CommittedState {
  /// Parts of the start that are not finished.
  private struct Unfinished: OptionSet {
    let rawValue: UInt8
    /// The comparison of the machine. Before its end, requests go to the writer, which tries to finish it, and refuses them
    /// if it cannot.
    static let startup = Unfinished(rawValue: 1)
    /// The items of a large store, which the writer reads.
    static let items = Unfinished(rawValue: 2)
  }

  private(set) var registry: Registry
  private(set) var condition: StoreCondition
  /// The newest events, as the lines to send.
  private(set) var events: EventLog
  private var unfinished: Unfinished
  /// The reader of secrets; nil if the writer has to be asked for each secret, as before its first report.
  private(set) var itemReader: ItemReader?
  private var keySource: KeySource?
  /// The cipher of proof keys; nil if the data key is not available.
  private(set) var proofKeyCipher: ProofKeyCipher?
  /// The source of the items' master key; nil if items cannot be used.
  var usableKeySource: KeySource? { registry.itemFault == nil ? keySource : nil }
  /// The time at which the recovery key was set; nil if there is none.
  private(set) var recoveryKeyTime: Timestamp?
  private(set) var manifestFaults: [String] = []
  /// The reason why the machine could not be given its identity; nil if it was, or needed none.
  private(set) var provisionFault: String?
  /// The reason why the last proof could not be signed; nil if it was, or none was asked for.
  var proofFault: String?
  /// The identifier of the store; nil if it is not proven.
  let store: UUID?
  /// The source from which the start read the store: the disk or the page cache.
  let storeSource: DiskReading.Source
  /// The editions of items whose secrets have a fault that was logged already.
  private var loggedFaults: Set<UUID> = []
  private let log: LogSink

  init(_ content: StoreContent, keySource: KeySource?, proofKeyCipher: ProofKeyCipher?, log: LogSink) {
    registry = content.registry
    condition = content.condition
    unfinished = content.lacksItems ? [.startup, .items] : .startup
    events = EventLog(content.events, last: content.registry.lastEvent, epoch: content.epoch)
    store = content.store
    storeSource = content.source
    self.keySource = keySource
    self.proofKeyCipher = proofKeyCipher
    self.log = log
  }

  /// Whether startup has finished, so that the loop answers from the registry.
  var isStarted: Bool { !unfinished.contains(.startup) }

  /// Whether the registry lacks the items.
  var lacksItems: Bool { unfinished.contains(.items) }

  /// The condition of the store, as `status` and `stats` show it.
  var kind: StoreCondition.Kind { lacksItems && condition == .writable ? .checking : condition.kind }

  /// Returns whether the answer to a request can be made from the registry.
  func mayAnswer(_ command: RegistryCommand) -> Bool {
    unfinished.isEmpty || isStarted && !command.rule.needsItems
  }

  /// Applies a report, whose changes are durable, and logs what people should know of it.
  func apply(_ report: WriterReport) {
    let standing = isStarted ? (nil, nil) : (registry.machine?.suspicion, registry.unacknowledged)
    if let replacement = report.registry {
      let fault = registry.itemFault
      registry = replacement
      unfinished.remove(.items)
      if registry.itemFault != fault { logItemFault() }
    }
    if let items = report.items {
      registry.restoreItems(of: items)
      unfinished.remove(.items)
    }
    if let reopened = report.reopened {
      itemReader = reopened.reader
      keySource = reopened.keySource
      proofKeyCipher = reopened.proofKeyCipher
    }
    if let store = report.store { recoveryKeyTime = store.recoveryKeyTime }
    for recorded in report.results.changes {
      registry.apply(recorded)
      if case .epochBegan(let epoch) = recorded.change { events.begin(epoch) }
      if let event = LogEvent(recorded) { log(event) }
    }
    for line in report.results.events { events.append(line) }
    for notice in report.notices { take(notice) }
    if let started = report.isStarted {
      if started { unfinished.remove(.startup) } else { unfinished.insert(.startup) }
      if started { logStanding(standing) }
    }
    if let subordinates = report.subordinates { registry.use(subordinates) }
    if let survey = report.survey { apply(survey) }
    if let new = report.condition { condition = new }
  }

  private func apply(_ survey: WriterReport.Survey) {
    for fault in survey.faults where !manifestFaults.contains(fault) { log(.manifestFault(fault)) }
    if survey.faults.isEmpty, !manifestFaults.isEmpty { log(.manifestsInOrder) }
    manifestFaults = survey.faults
  }

  /// Logs a notice, and keeps what `status` shows of it.
  private func take(_ notice: WriterNotice) {
    switch notice {
    case .store(let notice): log(.store(notice))
    case .noMachineIdentifier(let reason, let originator): log(.noMachineIdentifier(reason, by: originator))
    case .systemUnknown(let reason): log(.systemUnknown(reason))
    case .secretFault(let item, let refusal, let originator): logFault(of: item, refusal, by: originator)
    case .keyRotated(let source):
      keySource = source
      log(.keyRotated(source))
    case .recoveryKeySet: log(.recoveryKeySet)
    case .keyRecovered(let source): log(.keyRecovered(source))
    case .provisioned: log(.provisioned)
    case .provisionFailed(let reason):
      provisionFault = reason
      log(.provisionFailed(reason))
    case .unusedForgotten(let count): log(.unusedForgotten(count))
    case .closing(let reason): log(.storeNotClosed(reason))
    }
  }

  /// Logs a fault of a secret, once per edition of the item, because each request for the secret finds the same fault.
  ///
  /// - Parameter originator: the party that requested the secret.
  func logFault(of item: Item, _ refusal: Refusal, by originator: Originator) {
    if loggedFaults.count >= Bound.loggedFaults { loggedFaults = [] }
    if loggedFaults.insert(item.edition).inserted { log(.secretDamaged(refusal.text, by: originator)) }
  }

  /// Logs a change of the machine that was noticed at an earlier start and that no admin has acknowledged.
  private func logStanding(_ changes: (suspicion: MachineRecord.Suspicion?, renewal: MachineRecord.Suspicion?)) {
    if let suspicion = changes.suspicion, suspicion == registry.machine?.suspicion {
      log(.deviceSuspected(suspicion.cause))
    }
    if let renewal = changes.renewal, renewal == registry.unacknowledged { log(.machineChanged(renewal.cause)) }
  }

  /// Logs whether items are served, after a change.
  private func logItemFault() {
    if let fault = registry.itemFault { log(.itemsLocked(fault)) } else { log(.itemsOpened) }
  }
}

extension LogEvent {
  /// The log event of a change; nil if the change is not logged.
  fileprivate init?(_ recorded: RecordedChange) {
    let originator = recorded.originator
    switch recorded.change {
    case .identifierMade(let identifier) where identifier.scope == .device:
      self = .deviceMade(identifier.value, identifier.origin, identifier.cause, by: originator)
    case .identifierMade(let identifier) where identifier.cause != .firstUse:
      self = .identifierChanged(identifier.scope, identifier.cause, by: originator)
    case .machineRecorded(let record):
      guard let suspicion = record.suspicion else { return nil }
      self = .deviceSuspected(suspicion.cause)
    case .machineLeft(let former):
      guard !former.isAcknowledged else { return nil }
      self = .machineChanged(former.cause)
    case .appInstalled(let app, _): self = .appInstalled(app, by: originator)
    case .appUninstalled(let app): self = .appUninstalled(app, by: originator)
    case .appReplaced(let new): self = .appReplaced(new.previous, new.id, by: originator)
    case .appUpdated(let app, let new):
      // Only a change with an event has suspended or resumed the app.
      guard recorded.event != nil else { return nil }
      self = new.suspended == nil ? .appResumed(app, by: originator) : .appSuspended(app, by: originator)
    case .proofKeyStored(let key):
      guard recorded.event != nil else { return nil }
      self = .proofKeyMade(key.pair.identifier, signs: key.signs, by: originator)
    case .proofKeyLocked(let key): self = .proofKeyLocked(key.pair.identifier)
    case .proofKeyForgotten(let key, .lost): self = .proofKeyEnded(key.pair.identifier, by: originator)
    case .sealed: self = .sealed
    case .deviceResumed(.device): self = .machineResumed
    case .version(.reported(.system, let report)) where report.state != .unchanged: self = .systemChanged(report)
    case .identifierMade, .identifierRemembered, .identifierEnded, .identifierForgotten, .appUsed,
      .appUseForgotten, .dayBegan, .deviceSuspected, .deviceAcknowledged, .deviceResumed, .accountSet, .deviceListed,
      .deviceDescribed, .deviceReplaced, .deviceUnlisted, .fleetAdvanced, .fleetRecorded, .fleetForgotten,
      .proofKeyForgotten, .backupTaken, .machineAcknowledged, .machineForgotten, .deviceLeft, .leftDeviceForgotten,
      .itemStored,
      .itemDeleted, .version, .tokenStored, .tokenDeleted, .epochBegan:
      return nil
    }
  }
}
