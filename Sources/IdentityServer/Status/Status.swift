import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem

/// The answers to `status`.
final class StatusAnswers {
  private let state: CommittedState
  private let connections: ConnectionTable
  let lease: FleetLease
  /// The kernel's ID of this boot; nil if unknown.
  private let boot: UUID?
  private let socketPath: String
  private let stateDirectory: String
  private var manifestFolders: [String]
  /// The refusal of the last reload; nil if it succeeded.
  private var configurationRefusal: ConfigurationRefusal?
  /// The start of the daemon.
  let started = Timestamp(milliseconds: Clock.realtimeMilliseconds)
  private let startedMonotonic = Clock.monotonicMicroseconds

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ lease: FleetLease, boot: UUID?, socketPath: String,
    stateDirectory: String,
    _ settings: ServerSettings
  ) {
    self.state = state
    self.connections = connections
    self.lease = lease
    self.boot = boot
    self.socketPath = socketPath
    self.stateDirectory = stateDirectory
    manifestFolders = settings.appDirectories
  }

  /// Applies new settings.
  func use(_ settings: ServerSettings) {
    manifestFolders = settings.appDirectories
    configurationRefusal = nil
  }

  /// Notes that a reload refused the configuration.
  func note(_ refusal: ConfigurationRefusal) { configurationRefusal = refusal }

  /// `status`: one row per value, in the order of the table of rows.
  func answer(for peer: Peer) -> Reply {
    let registry = state.registry
    let condition = state.condition
    let events = state.events
    var rows = StatusRows(for: peer, sharesDevice: registry.may(peer, see: .sharing))
    rows.add(.version, .string(Version.program))
    rows.add(.lineProtocol, .number(Version.lineProtocol))
    rows.add(.process, .number(Int64(ProcessGuard.processID)))
    rows.add(.started, .time(started))
    rows.add(.uptime, .number(Int64(clamping: (Clock.monotonicMicroseconds - startedMonotonic) / 1_000_000)))
    rows.add(.boot, boot.map(Reply.Value.uuid) ?? .string("unknown"))
    rows.add(.socket, .string(socketPath))
    rows.add(.store, .string(state.kind.rawValue))
    rows.add(.storeIdentifier, state.store.map(Reply.Value.uuid))
    rows.add(.connections, .number(Int64(connections.count)))
    rows.add(.subscribers, .number(Int64(connections.subscribers)))
    let knowsEvents = !registry.unproven.contains(.events)
    rows.add(.lastEvent, knowsEvents ? .number(events.last) : nil)
    rows.add(.epoch, knowsEvents ? .text(events.epoch) : nil)
    rows.add(.keptEvents, knowsEvents ? .number(events.last - events.oldest) : nil)
    rows.add(.apps, .number(Int64(registry.apps.count)))
    rows.add(.manifests, .number(Int64(registry.apps.count - registry.apps.withoutManifest)))
    rows.add(.suspendedApps, registry.apps.suspended == 0 ? nil : .number(Int64(registry.apps.suspended)))
    rows.add(.installations, .number(Int64(registry.history.inForce.count(of: .installation))))
    rows.add(.vendors, .number(Int64(registry.history.inForce.count(of: .vendor))))
    rows.add(.devices, .number(Int64(registry.devices.count)))
    rows.add(
      .deviceOrigin,
      .string(
        registry[.device]?.origin.rawValue ?? (registry.unproven.contains(.identifiers) ? "unknown" : "none")))
    rows.add(.items, state.lacksItems ? nil : .number(Int64(registry.items.total.items)))
    rows.add(.itemBytes, state.lacksItems ? nil : .number(Int64(registry.items.total.bytes)))
    rows.add(.tokens, .number(Int64(registry.tokens.count)))
    rows.add(.masterKey, .string(state.usableKeySource?.rawValue ?? "unavailable"))
    rows.add(.recoveryKey, state.recoveryKeyTime.map(Reply.Value.time))
    rows.add(.lastBackup, registry.lastBackup.map(Reply.Value.time))
    rows.add(.fleet, .text(lease.saidState))
    for word in lease.words { rows.add(.fleetWord, .string("\(word.name)=\(word.value)")) }
    rows.add(.suspect, (registry.machine?.suspicion).map { .string("\($0.cause.rawValue) \($0.since)") })
    rows.add(.machineChange, registry.unacknowledged.map { .string("\($0.cause.rawValue) \($0.since)") })
    rows.add(.masterKeyReason, registry.itemFault.map { .string($0) })
    let proofKey = ProofKeyState(registry, fault: state.proofFault, at: Writer.now)
    rows.add(.proofKey, (proofKey?.text).map { .string($0) })
    rows.add(.proofKeyReason, (proofKey?.reason).map { .string($0) })
    rows.add(.sealed, registry.isSealed ? .yesOrNo(true) : nil)
    rows.add(.storeReason, (condition.refusal?.text).map { .string($0) })
    rows.add(.unproven, registry.unproven.isEmpty ? nil : .string(registry.unproven.text))
    rows.add(.storeSource, state.storeSource == .cache ? .string("cache") : nil)
    for fault in state.manifestFaults.prefix(Self.shownFaults) { rows.add(.manifestFault, .string(fault)) }
    rows.add(.manifestFaults, state.manifestFaults.isEmpty ? nil : .number(Int64(state.manifestFaults.count)))
    rows.add(.configurationReason, (configurationRefusal?.reason).map { .string($0) })
    rows.add(.provisionReason, state.provisionFault.map { .string($0) })
    rows.add(.stateDirectory, .string(stateDirectory))
    for folder in manifestFolders { rows.add(.manifestFolder, .string(folder)) }
    rows.reply.ok()
    return rows.reply
  }

  /// The number of faults shown. All faults are in the journal.
  private static var shownFaults: Int { 16 }
}

/// The state of the proof key in words.
private struct ProofKeyState {
  let text: String
  let reason: String?

  /// - Parameter fault: the reason why the last proof could not be signed; nil if it was.
  init?(_ registry: Registry, fault: String?, at now: Timestamp) {
    // A first key that could not be made is a fault, too.
    guard !registry.proofKeys.isEmpty || fault != nil else { return nil }
    reason = registry.itemFault ?? fault
    text = reason == nil ? registry.signingProofKey(at: now).map { "\($0.pair.identifier)" } ?? "locked" : "unavailable"
  }
}

/// The rows that a peer may see.
private struct StatusRows {
  var reply = Reply()
  private let told: [RowAudience]

  init(for peer: Peer, sharesDevice: Bool) {
    told = RowAudience.allCases.filter { $0.includes(peer, sharesDevice: sharesDevice) }
  }

  /// Adds a row if the peer may see it. The value is evaluated only then, because counting all identifiers takes time.
  ///
  /// - Parameter value: the value; nil for no row.
  mutating func add(_ row: StatusRow, _ value: @autoclosure () -> Reply.Value?) {
    guard told.contains(row.audience), let value = value() else { return }
    reply.row()
    reply.attribute(row.name, value)
  }
}
