/// The state of the daemon as a value, with its rules. The registry does no I/O and reads no clock and no
/// random source.
package struct Registry: Equatable, Sendable {
  /// The installed apps by ID.
  package private(set) var apps = AppTable()
  private var uses = UseTable()
  /// The history of stored identifiers, including those in force.
  package private(set) var history = History()
  /// The ranges of subordinate users and their owners.
  package private(set) var subordinates = SubordinateUsers()
  /// The devices of the account, in the order in which they were added.
  package private(set) var devices = DeviceList()
  /// The part of the fleet; nil if there is nothing of it.
  private var fleetPart: RegistryPart<FleetContent>?
  /// The time of the last backup that a client read to its end; nil if there is none.
  package private(set) var lastBackup: Timestamp?
  /// The account, the machines and the seal; nil if there is nothing of them.
  private var settings: RegistryPart<SettingsContent>?
  /// The items without their secrets.
  package private(set) var items = ItemTable()
  /// The reason why no item can be used; nil if the key of the secrets is available.
  package var itemFault: String?
  /// The versions of the system and of the apps.
  package private(set) var versions = VersionTable()
  /// The push tokens.
  package private(set) var tokens = TokenTable()
  /// The kinds of records that are not all proven to be current; empty if the store is intact.
  package private(set) var unproven: Records = []
  /// The refusal of requests that need unproven records.
  private var unprovenRefusal = Refusal.broken("the store is damaged")
  /// The sequence number of the last event.
  package private(set) var lastEvent: Int64 = 0

  package init() {}

  /// The identifier in force for a scope.
  package subscript(_ scope: Scope) -> Identifier? { history[scope] }

  /// Every scope with an identifier in force, in the order in which these identifiers came into force.
  package var scopes: [Scope] { history.scopes }

  /// Returns every identifier that had this value, newest first.
  package func identifiers(valued value: UUID) -> some Sequence<Identifier> { history.identifiers(valued: value) }

  /// The counter, the generation and the runs of the fleet on this device; nil before the fleet is used.
  package var fleet: FleetStanding? { fleetPart?.content.standing }

  /// The messages of the fleet about the devices of the account.
  package var records: FleetRecords { fleetPart?.content.records ?? FleetRecords() }

  /// The name of the account, if any.
  package var account: Text? { settings?.content.account }

  /// The record of the machine; nil before the first start is recorded.
  package var machine: MachineRecord? { settings?.content.machine }

  /// The machines that the daemon ran on before, oldest first.
  package var formerMachines: [FormerMachine] { settings?.content.formerMachines ?? [] }

  /// The device identifiers that renewals left to other machines, oldest first.
  package var leftDevices: [LeftDevice] { settings?.content.leftDevices ?? [] }

  /// The keys of proofs, oldest first. Those of another device identifier or machine are locked.
  package var proofKeys: [StoredProofKey] { settings?.content.proofKeys ?? [] }

  /// Whether the store is sealed. A sealed store takes no further change, and the next start is a first start.
  package var isSealed: Bool { settings?.content.isSealed ?? false }

  /// The newest day on which the daemon ran; nil before the first day is recorded.
  package var day: AppUse? { uses.day }

  /// Returns the last recorded use of an app; nil if none is recorded.
  package func use(of app: Text) -> AppUse? { uses[app] }

  /// Returns the number of identifiers that a scope has had.
  package func count(of scope: Scope) -> Int { history.count(of: scope) }

  /// Returns the holder that is charged for the stored state of an app.
  func holder(of app: Text) -> Holder { Holder(of: app, subordinates) }

  /// Replaces the ranges of subordinate users, and recomputes which holders are charged.
  package mutating func use(_ subordinates: SubordinateUsers) {
    guard subordinates != self.subordinates else { return }
    self.subordinates = subordinates
    apps.use(subordinates)
    items.use(subordinates)
    history.use(subordinates)
  }
}

// MARK: - Changes

extension Registry {
  /// Applies a decided change and takes over the sequence number of its event.
  package mutating func apply(_ recorded: RecordedChange) {
    apply(recorded.change)
    if let event = recorded.event { lastEvent = event.sequence }
  }

  /// Notes that the store holds events up to this sequence number.
  package mutating func resume(after event: Int64) { lastEvent = max(lastEvent, event) }

  /// Replaces the apps with those read back from the store.
  package mutating func restore(_ apps: [InstalledApp]) { self.apps = AppTable(apps) }

  /// Replaces the history with the identifiers read back from the store, in order.
  package mutating func restore(_ identifiers: [NumberedIdentifier]) { history = History(identifiers) }

  /// Applies a change that was decided or read back from the store.
  package mutating func apply(_ change: Change) {
    switch change {
    case .appInstalled(let id, let app), .appUpdated(let id, let app): apps.store(app, as: id)
    case .appUninstalled(let id): apps.remove(id)
    case .appReplaced(let replacement): replace(replacement)
    case .appUsed(let id, let use): uses[id] = use
    case .appUseForgotten(let id): uses[id] = nil
    case .dayBegan(let new): uses.day = new
    case .identifierMade(let identifier):
      history.end(identifier.scope, .init(time: identifier.created, cause: identifier.cause))
      history.append(identifier)
    case .identifierRemembered(let identifier): history.append(identifier)
    case .identifierEnded(let scope, let how): history.end(scope, how)
    case .identifierForgotten(let forgotten): history.remove(forgotten.number)
    case .deviceSuspected, .deviceAcknowledged, .deviceResumed: break
    case .machineRecorded(let record): settings.change { $0.machine = record }
    case .machineLeft(let former): settings.change { $0.formerMachines.append(former) }
    case .machineAcknowledged(let former):
      settings.change { settings in
        for index in settings.formerMachines.indices where settings.formerMachines[index].number == former.number {
          settings.formerMachines[index] = former
        }
      }
    case .machineForgotten(let number): settings.change { $0.formerMachines.removeAll { $0.number == number } }
    case .deviceLeft(let left): settings.change { $0.leftDevices.append(left) }
    case .leftDeviceForgotten(let number): settings.change { $0.leftDevices.removeAll { $0.number == number } }
    case .accountSet(let name): settings.change { $0.account = name }
    case .deviceListed(let device): devices.append(device)
    case .deviceDescribed(let device): devices.replace(device.value, with: device)
    case .deviceReplaced(let previous, let device): devices.replace(previous, with: device)
    case .deviceUnlisted(let value): devices.remove(value)
    case .fleetAdvanced(let standing): fleetPart.change { $0.standing = standing }
    case .fleetRecorded(let record): fleetPart.change { $0.records.store(record) }
    case .fleetForgotten(let device): fleetPart.change { $0.records.remove(device) }
    case .backupTaken(let made): lastBackup = made
    case .itemStored(let item, _, _): items.store(item)
    case .itemDeleted(let item): items.remove(item.key)
    case .version(let change): versions.apply(change)
    case .tokenStored(let token, _): tokens.store(token)
    case .tokenDeleted(let token): tokens.remove(token)
    case .proofKeyStored(let key):
      settings.change { settings in
        if let index = settings.proofKeys.firstIndex(where: { $0.number == key.number }) {
          settings.proofKeys[index] = key
        } else {
          settings.proofKeys.append(key)
        }
      }
    case .proofKeyForgotten(let key, _): settings.change { $0.proofKeys.removeAll { $0.number == key.number } }
    case .proofKeyLocked: break
    case .sealed: settings.change { $0.isSealed = true }
    case .epochBegan: break
    }
  }

  private mutating func replace(_ replacement: Replacement) {
    apps.remove(replacement.previous)
    apps.store(replacement.app, as: replacement.id)
    for identifier in replacement.identifiers { history.move(identifier) }
    for moved in replacement.items {
      items.remove(moved.before.key)
      items.store(moved.item)
    }
    for change in replacement.versions { versions.apply(change) }
    for token in replacement.tokens {
      tokens.remove(token)
      tokens.store(token.with(app: replacement.id))
    }
  }

  /// Marks kinds of records as not proven to be current, and discards the records of whole kinds.
  ///
  /// - Parameters:
  ///   - kinds: the kinds in doubt. All of their records are discarded.
  ///   - incomplete: kinds of which some records are missing. The remaining records are proven to be current, and stay.
  package mutating func doubt(_ kinds: Records, incomplete: Records) {
    unproven = kinds.union(incomplete)
    unprovenRefusal = .broken("the store is damaged")
    if kinds.contains(.events) { lastEvent = 0 }
    if kinds.contains(.settings) { settings = nil }
    if kinds.contains(.proofs) { settings.change { $0.proofKeys = [] } }
    if kinds.contains(.apps) { apps = AppTable() }
    if kinds.contains(.uses) { uses = UseTable() }
    if kinds.contains(.identifiers) { history = History() }
    if kinds.contains(.devices) { devices = DeviceList() }
    if kinds.contains(.fleet) { fleetPart = nil }
    if kinds.contains(.backup) { lastBackup = nil }
    if kinds.contains(.items) { items = ItemTable() }
    if kinds.contains(.versions) { versions = VersionTable() }
    if kinds.contains(.tokens) { tokens = TokenTable() }
  }

  /// Sets the refusal of requests that need unproven records.
  package mutating func explain(_ refusal: Refusal) { if !unproven.isEmpty { unprovenRefusal = refusal } }

  /// Checks that all records of these kinds are proven to be current.
  ///
  /// - Throws: the refusal of requests that need unproven records.
  package func requireProof(of kinds: Records) throws(Refusal) {
    guard unproven.isDisjoint(with: kinds) else { throw unprovenRefusal }
  }

  /// Replaces the items with those read back from the store.
  package mutating func restore(_ items: [HeldItem]) { self.items = ItemTable(items) }

  /// Takes over the items of another registry, and what is known of the proofs of all records.
  package mutating func restoreItems(of other: Registry) {
    (items, unproven, unprovenRefusal) = (other.items, other.unproven, other.unprovenRefusal)
  }
}

/// A sequence of dependent changes. Each change is decided with the earlier ones already applied.
struct Plan {
  private(set) var registry: Registry
  private(set) var changes: [Change] = []

  init(_ registry: Registry) { self.registry = registry }

  mutating func add(_ change: Change) {
    registry.apply(change)
    changes.append(change)
    switch change {
    case .identifierMade(let identifier): dropSurplus(of: identifier.scope)
    case .identifierRemembered(let identifier): dropSurplus(of: identifier.scope)
    case .identifierEnded(let scope, _): dropSurplus(of: scope)
    default: break
    }
  }

  /// Drops the oldest ended identifiers of a scope that has more than are kept.
  mutating func dropSurplus(of scope: Scope) {
    for oldest in registry.history.surplus(of: scope) { add(.identifierForgotten(oldest)) }
  }

  /// Removes and returns the changes so far. They stay applied.
  mutating func takeChanges() -> [Change] {
    defer { changes = [] }
    return changes
  }
}
