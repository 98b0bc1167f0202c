/// The state of the daemon as a value, and its rules. It does no I/O and reads no clock and no random source.
package struct Registry: Equatable, Sendable {
  /// The installed apps by their ID.
  package private(set) var apps = AppTable()
  /// When each app without a manifest was used last.
  private var uses = DividedDictionary<Text, AppUse>()
  /// The newest day of the daemon; nil before the first was recorded.
  package private(set) var day: AppUse?
  /// Every stored identifier that is known.
  package private(set) var history = History()
  /// Which users are subordinate to which.
  package private(set) var subordinates = SubordinateUsers()
  /// The devices of the account, in the order they were added.
  package private(set) var devices: [ListedDevice] = []
  /// The account's name.
  package private(set) var account: Text?
  /// The machine under the daemon; nil before the first start was recorded.
  package private(set) var machine: MachineRecord?
  /// Nothing may follow: the next start is a first one.
  package private(set) var isSealed = false
  /// The items without their secrets.
  package private(set) var items = ItemTable()
  /// Why no item can be used now; nil where the key of their secrets is there.
  package var itemFault: String?
  /// The versions of the system and the apps.
  package private(set) var versions = VersionTable()
  /// The push tokens.
  package private(set) var tokens = TokenTable()
  /// The records that are not known to be current; none where the store is whole.
  package private(set) var unproven: Records = []
  /// The answer to what would need them.
  private var unprovenRefusal = Refusal.broken("the store is damaged")
  /// The number of the last event.
  package private(set) var lastEvent: Int64 = 0

  /// An empty registry: a first boot.
  package init() {}

  /// The identifier of a scope that is in force.
  package subscript(_ scope: Scope) -> Identifier? { history[scope] }

  /// Every scope that has an identifier, in the order they came into force.
  package var scopes: [Scope] { history.scopes }

  /// Every identifier that had this value, oldest first.
  package func identifiers(valued value: UUID) -> [Identifier] { history.identifiers(valued: value) }

  /// When an app was used last; nil where that was not recorded yet.
  package func use(of app: Text) -> AppUse? { uses[app] }

  /// How many identifiers a scope has had.
  package func count(of scope: Scope) -> Int { history.identifiers(of: scope).count }

  /// Which account is charged for what an app stores.
  func holder(of app: Text) -> Holder { Holder(of: app, subordinates) }

  /// Says which users are subordinate to which: holders are charged anew.
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
  /// Takes in a change that was decided, and the number of its event.
  package mutating func apply(_ recorded: RecordedChange) {
    apply(recorded.change)
    if let event = recorded.event { lastEvent = event.sequence }
  }

  /// Says that events up to this one were read back from the store.
  package mutating func resume(after event: Int64) { lastEvent = max(lastEvent, event) }

  /// Takes in the apps that were read back from the store.
  package mutating func restore(_ apps: [(Text, App)]) { self.apps = AppTable(apps) }

  /// Takes in the history that was read back from the store, in order.
  package mutating func restore(_ identifiers: [NumberedIdentifier]) { history = History(identifiers) }

  /// Takes in a change that was decided, or read back from the store.
  package mutating func apply(_ change: Change) {
    switch change {
    case .appInstalled(let id, let app), .appUpdated(let id, let app): apps.store(app, as: id)
    case .appUninstalled(let id): apps.remove(id)
    case .appUsed(let id, let use, isFirst: _): uses[id] = use
    case .appUseForgotten(let id): uses[id] = nil
    case .dayBegan(let new, isFirst: _): day = new
    case .identifierMade(let identifier):
      history.end(identifier.scope, .init(time: identifier.created, cause: identifier.cause))
      history.append(identifier)
    case .identifierRemembered(let identifier): history.append(identifier)
    case .identifierEnded(let scope, let how): history.end(scope, how)
    case .identifierForgotten(let forgotten): history.remove(forgotten.number)
    case .deviceSuspected: break
    case .machineRecorded(let record): machine = record
    case .accountSet(let name): account = name
    case .deviceListed(let device): devices.append(device)
    case .deviceDescribed(let device): replace(device.value, with: device)
    case .deviceReplaced(let previous, let device): replace(previous, with: device)
    case .deviceUnlisted(let value): if let place = place(ofListed: value) { devices.remove(at: place) }
    case .itemStored(let item, _, _): items.store(item)
    case .itemDeleted(let item): items.remove(item.key)
    case .version(let change): versions.apply(change)
    case .tokenStored(let token, _): tokens.store(token)
    case .tokenDeleted(let token): tokens.remove(token)
    case .sealed: isSealed = true
    case .epochBegan: break
    }
  }

  /// Says which records are not known to be current, and lets go of those of whole kinds.
  ///
  /// - Parameter incomplete: kinds of which some records are missing. The others are known to be current, and stay.
  package mutating func doubt(_ kinds: Records, incomplete: Records) {
    unproven = kinds.union(incomplete)
    unprovenRefusal = .broken("the store is damaged")
    if kinds.contains(.events) { lastEvent = 0 }
    if kinds.contains(.settings) { (account, machine, isSealed) = (nil, nil, false) }
    if kinds.contains(.apps) { apps = AppTable() }
    if kinds.contains(.uses) { (uses, day) = (DividedDictionary(), nil) }
    if kinds.contains(.identifiers) { history = History() }
    if kinds.contains(.devices) { devices = [] }
    if kinds.contains(.items) { items = ItemTable() }
    if kinds.contains(.versions) { versions = VersionTable() }
    if kinds.contains(.tokens) { tokens = TokenTable() }
  }

  /// Says what requests hear that need what is not known to be current.
  package mutating func explain(_ refusal: Refusal) { if !unproven.isEmpty { unprovenRefusal = refusal } }

  /// - Throws: where records of these kinds are not known to be current.
  package func requireProof(of kinds: Records) throws(Refusal) {
    guard unproven.isDisjoint(with: kinds) else { throw unprovenRefusal }
  }

  /// Takes in the items that were read back from the store.
  package mutating func restore(_ items: [Item]) { self.items = ItemTable(items) }

  private mutating func replace(_ value: UUID, with device: ListedDevice) {
    guard let place = place(ofListed: value) else { return }
    devices[place] = device
  }

  /// Each is listed once. From the end, where all but this device are taken off one by one.
  private func place(ofListed value: UUID) -> Int? { devices.lastIndex { $0.value == value } }
}

/// Changes that build on each other: each is decided with those before it in force.
struct Plan {
  private(set) var registry: Registry
  private(set) var changes: [Change] = []

  init(_ registry: Registry) { self.registry = registry }

  mutating func add(_ change: Change) {
    registry.apply(change)
    changes.append(change)
  }
}

// MARK: - Commands

extension Registry {
  /// Answers from what is there; nil when the answer takes a change first, which ``decide(_:_:)`` makes.
  package func answer(_ command: RegistryCommand, for peer: Peer, in surroundings: Surroundings) throws(Refusal)
    -> Reply?
  {
    unproven.isEmpty
      ? try answerFromAll(command, for: peer, in: surroundings)
      : try answerFromProven(command, for: peer, in: surroundings)
  }

  /// The same, where nothing is missing that the answer depends on.
  func answerFromAll(_ command: RegistryCommand, for peer: Peer, in surroundings: Surroundings) throws(Refusal)
    -> Reply?
  {
    switch command {
    case .get(let level, let named):
      let scope = scope(level, app: try app(named: named, by: peer))
      return self[scope].map { describe($0) }
    case .renew(let level, let named, let dryRun):
      let id = try app(named: named, by: peer)
      guard level == .device || apps[id] != nil else { throw .notFound("\(id) is not installed") }
      return dryRun ? renewalRows(of: scope(level, app: id)) : nil
    case .history(let level, let named):
      // Only the installation's is still known for an app that is gone: its manifest said whose the others are.
      return historyRows(of: scope(level, app: try app(named: named, by: peer, remembered: level == .installation)))
    case .resolve(let value): return try resolve(value, for: peer)
    case .migrate(let level, let value, let named, let commits, let forces):
      let migration = try migration(level, to: value, app: try app(named: named, by: peer), peer, forces: forces)
      guard migration.changes else { return migration.reply(commits: commits) }
      // Whether there is room for a new app depends on the limits, which decisions know.
      return commits || migration.installs(in: self) ? nil : migration.reply(commits: false)
    case .apps: return appRows(for: peer)
    case .forget(let id):
      try mayForget(id, peer)
      return nil
    case .forgetMatching:
      guard peer.isAdmin else {
        throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, to forget apps by unused= and app=")
      }
      return nil
    case .account:
      _ = try app(named: nil, by: peer)
      try requireSharing(peer)
      return accountReply
    case .setAccount(let name): return name == account && accountChanges(to: name).isEmpty ? .done : nil
    case .devices:
      _ = try app(named: nil, by: peer)
      return deviceRows(for: peer)
    case .putDevice(let value, let name, let seen): return try isListed(value, name: name, seen: seen) ? .done : nil
    case .removeDevice(let value):
      try mayRemove(value)
      return nil
    case .seal: return isSealed ? .done : nil
    case .migrateFromItem(let level, let name, let named, _, _):
      _ = try item(name, for: peer)
      _ = try scope(level, app: app(named: named, by: peer))
      return nil
    case .item(let command): return try answer(command, for: peer)
    case .version(let command): return try answer(command, for: peer, in: surroundings)
    case .token(let command): return try answer(command, for: peer, in: surroundings)
    }
  }

  /// Decides what a command changes. The caller makes it durable, then applies it and sends the reply.
  package func decide(_ command: RegistryCommand, _ context: Context) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    if isSealed || !command.isAlwaysDecided,
      let reply = try answer(command, for: peer, in: context.surroundings)
    {
      return Decision(reply: reply)
    }
    guard !isSealed else { throw .unavailable("the store is sealed: the next start of the daemon is a first one") }
    switch command {
    case .get(let level, let named): return try make(level, app: try app(named: named, by: peer), context)
    case .renew(let level, let named, _): return try renew(level, app: try app(named: named, by: peer), context)
    case .migrate(let level, let value, let named, let commits, let forces):
      return try migrate(
        level, to: value, app: try app(named: named, by: peer), commits: commits, forces: forces, context)
    case .forget(let id): return Decision(changes: uninstallation(of: id, context), reply: .done)
    case .forgetMatching(let condition, let dryRun): return forget(condition, dryRun: dryRun, context)
    case .setAccount(let name): return Decision(changes: accountChanges(to: name), reply: .done)
    case .devices: return try listOwnDevice(context)
    case .putDevice(let value, let name, let seen):
      return Decision(changes: [try deviceChange(value, name: name, seen: seen, at: context.now)], reply: .done)
    case .removeDevice(let value): return Decision(changes: [.deviceUnlisted(value)], reply: .done)
    case .seal: return Decision(changes: sealing(at: context.now), reply: .done)
    case .migrateFromItem(let level, let name, let named, let commits, let forces):
      let value = try context.identifier(try context.secret(try item(name, for: peer)))
      return try decide(.migrate(level, value, app: named, commits: commits, forces: forces), context)
    case .item(let command): return try decide(command, context)
    case .version(let command): return try decide(command, context)
    case .token(let command): return try decide(command, context)
    // These are always answered.
    case .history, .resolve, .apps, .account: throw .broken("\(command) was not answered")
    }
  }
}
