// The changes of a restore (identityd-protocol(7), section "What a restore changes").
extension Registry {
  /// Decides the changes of a restore. Records that are not in the backup stay.
  ///
  /// Identifiers, versions and push tokens belong to a device. From a backup of other hardware, they are restored only
  /// if this machine is to replace the other one. Otherwise two machines would have the same identifiers. Items are
  /// always restored.
  package func restoration(of backup: Backup, adoptsDevice: Bool, _ context: Context) throws(Refusal) -> Decision {
    guard !isSealed else {
      throw .unavailable("the store is sealed for a golden image; the next start of identityd begins a new store")
    }
    if let itemFault { throw .unavailable(itemFault) }
    var restoration = Restoration(
      backup, into: self, follows: backup.isFromHere || adoptsDevice, at: context.now, by: context.peer?.author)
    restoration.tellDevice()
    try restoration.keepApart(context)
    restoration.installApps()
    restoration.bringIdentifiers()
    restoration.bringAccount()
    restoration.bringFleet()
    restoration.bring(backup.records, context.digest)
    for stored in backup.items { restoration.bring(stored) }
    for history in backup.versions.all { restoration.bring(history) }
    for token in backup.tokens { restoration.bring(token) }
    restoration.endProofKeys()
    restoration.begin(epoch: try context.random())
    return restoration.decision
  }
}

/// A restore in progress: the changes, and a row of the answer for each result.
private struct Restoration {
  private let backup: Backup
  /// Whether identifiers, versions and push tokens are restored too.
  private let follows: Bool
  private let now: Timestamp
  private let author: Text?
  private var plan: Plan
  private var reply = Reply()
  private var rows: Int64 = 0

  init(_ backup: Backup, into registry: Registry, follows: Bool, at now: Timestamp, by author: Text?) {
    self.backup = backup
    self.follows = follows
    self.now = now
    self.author = author
    plan = Plan(registry)
  }

  var decision: Decision {
    var reply = reply
    reply.ok()
    reply.word(.number(rows))
    return Decision(changes: plan.changes, reply: reply)
  }

  private mutating func tell(_ what: String, _ outcome: String, _ attributes: (String, Reply.Value?)...) {
    rows += 1
    reply.row()
    reply.word(.string(what))
    reply.word(.string(outcome))
    for (name, value) in attributes { reply.attribute(name, value) }
  }

  /// Ends the proof keys, since the machine of the backup may have proofs of its own until now.
  mutating func endProofKeys() { if !plan.changes.isEmpty { plan.endProofKeys(.lost) } }

  /// Begins a new epoch of events, because event positions from before the restore do not cover the restored state.
  mutating func begin(epoch: UUID) { if !plan.changes.isEmpty { plan.add(.epochBegan(epoch)) } }

  // MARK: Identifiers

  /// Adds the row about the device identifier.
  mutating func tellDevice() {
    let ours = plan.registry[.device]?.value
    let outcome =
      switch (theirs, follows) {
      case (nil, _): "unknown"
      case (_, false): "clone"
      case (ours, true): "kept"
      case (_, true): backup.isFromHere ? "restored" : "adopted"
      }
    tell(
      "device", outcome, ("value", (follows ? theirs ?? ours : ours).map(Reply.Value.uuid)),
      ("previous", follows && theirs != nil && theirs != ours ? ours.map(Reply.Value.uuid) : nil),
      ("backup", theirs.map(Reply.Value.uuid)))
  }

  /// The device identifier in force in the backup.
  private var theirs: UUID? { backup.identifiers.last { $0.scope == .device && $0.end == nil }?.value }

  /// Marks the machine-id as spent if it would give this machine the other device's identifier.
  ///
  /// A copied machine-id would otherwise give both machines the same identifier.
  mutating func keepApart(_ context: Context) throws(Refusal) {
    guard !follows, let theirs, plan.registry[.device] == nil, var record = plan.registry.machine,
      try context.machine(.device) == theirs
    else { return }
    record.spentMachine = record.fingerprint.machine
    plan.add(.machineRecorded(record))
  }

  /// Installs the apps without a manifest. Apps with a manifest are installed by their packages.
  mutating func installApps() {
    for (id, app) in backup.apps.sorted(by: { $0.key < $1.key }) where app.manifest == nil && id.isUnclaimedApp {
      guard plan.registry.apps[id] == nil else { continue }
      plan.add(.appInstalled(id, App(installed: app.installed)))
      tell("app", "installed", ("app", .text(id)))
    }
  }

  mutating func bringIdentifiers() {
    guard follows else { return }
    for identifier in newestUnknown { plan.add(.identifierRemembered(identifier)) }
    for identifier in backup.identifiers where identifier.end == nil { bring(identifier) }
  }

  /// The past identifiers of the backup that this history lacks, oldest first: the newest of each scope that have room
  /// in it.
  ///
  /// An identifier in force in the backup ends at the time of the backup.
  private var newestUnknown: [Identifier] {
    var room: [Scope: Int] = [:]
    var newest: [Identifier] = []
    for identifier in backup.identifiers.reversed() where isUnknown(identifier) {
      let left = room[identifier.scope] ?? plan.registry.history.room(in: identifier.scope)
      guard left > 0 else { continue }
      room[identifier.scope] = left - 1
      var past = identifier
      past.end = past.end ?? .init(time: backup.created, cause: .restored)
      newest.append(past)
    }
    return newest.reversed()
  }

  private func isUnknown(_ identifier: Identifier) -> Bool {
    !plan.registry.identifiers(valued: identifier.value).contains {
      $0.scope == identifier.scope && $0.created == identifier.created
    }
  }

  private mutating func bring(_ identifier: Identifier) {
    let scope = identifier.scope
    let before = plan.registry[scope]
    guard before?.value != identifier.value else { return }
    let isDevice = scope == .device
    guard isWanted(scope) else {
      return tell("\(scope.level.rawValue)", "skipped", attributes(of: scope), ("reason", .string("not installed")))
    }
    plan.put(
      Identifier(
        scope: scope, value: identifier.value, created: now, origin: .restored, cause: .restored, author: author))
    if isDevice { return plan.endSuspicion() }
    tell(
      scope.level.rawValue, "restored", ("value", .uuid(identifier.value)),
      ("previous", (before?.value).map(Reply.Value.uuid)), attributes(of: scope))
  }

  /// Returns whether the identifier of a scope can be restored.
  ///
  /// The identifier of an installation or a vendor needs an installed app, because nothing would ever end it otherwise.
  private func isWanted(_ scope: Scope) -> Bool {
    switch scope {
    case .device, .deviceOfApp, .deviceOfVendor: true
    case .installation(let app): plan.registry.apps[app] != nil
    case .vendor(let vendor): plan.registry.apps.hasAny(of: vendor)
    }
  }

  private func attributes(of scope: Scope) -> (String, Reply.Value?) {
    if let app = scope.app { return ("app", .text(app)) }
    return ("vendor", scope.vendor.map(Reply.Value.text))
  }

  // MARK: Account

  mutating func bringAccount() {
    if let account = backup.account, account != plan.registry.account, follows || plan.registry.account == nil {
      for change in plan.registry.accountChanges(to: account) { plan.add(change) }
      tell("account", "changed", ("value", .text(account)))
    }
    describeOwnDevice()
    // Devices of two different accounts must not be mixed.
    guard backup.account == plan.registry.account else { return }
    for device in backup.devices where plan.registry.devices[device.value] == nil {
      // A removal that is known here holds, unless the backup has a message that outranks the known one; see below. A
      // record without a listed device means a removal, too, whose tombstone is not written yet.
      if plan.registry.records[device.value] != nil { continue }
      guard plan.registry.devices.count < Bound.devices else { return }
      plan.add(.deviceListed(device))
      tell("devices", "added", ("value", .uuid(device.value)))
    }
  }

  /// Restores the name and last-seen time of this device in the list, together with its identifier.
  private mutating func describeOwnDevice() {
    guard let own = plan.registry[.device]?.value, own == theirs, follows,
      let said = backup.devices.first(where: { $0.value == own }),
      let listed = plan.registry.devices[own], listed.name == nil, listed.seen == nil,
      listed != said
    else { return }
    plan.add(.deviceDescribed(said))
  }

  /// Restores the counter and the generation of the fleet, unless the present ones are higher: a counter that fell would
  /// be used twice.
  ///
  /// Runs stay where they are, because they tell a device from its copy.
  mutating func bringFleet() {
    guard follows, let theirs = backup.fleet else { return }
    var standing = plan.registry.fleet ?? FleetStanding()
    standing.counter = max(standing.counter, theirs.counter)
    standing.generation = max(standing.generation, theirs.generation)
    guard standing != plan.registry.fleet ?? FleetStanding() else { return }
    plan.add(.fleetAdvanced(standing))
    tell("fleet", "restored", ("counter", .number(standing.counter)))
  }

  /// Restores the messages of the fleet that outrank the present ones, and lists or removes their devices.
  mutating func bring(_ records: [FleetRecord], _ digest: @escaping (Text) -> Text) {
    // They are sealed for the account.
    guard backup.account == plan.registry.account else { return }
    let listed = Dictionary(backup.devices.map { ($0.value, $0) }) { first, _ in first }
    for record in records {
      guard record.compare(with: plan.registry.records[record.device], digest) == .higher,
        plan.registry.hasRoom(for: record)
      else { continue }
      let isListed = plan.registry.devices[record.device] != nil
      if !record.isGone, !isListed, let device = listed[record.device] {
        guard plan.registry.devices.count < Bound.devices else { continue }
        plan.add(.deviceListed(device))
        tell("devices", "added", ("value", .uuid(record.device)))
      }
      plan.store(record)
      if record.isGone, isListed, record.device != plan.registry[.device]?.value {
        plan.add(.deviceUnlisted(record.device))
        tell("devices", "removed", ("value", .uuid(record.device)))
      }
    }
  }

  // MARK: Items

  mutating func bring(_ stored: Backup.StoredItem) {
    let theirs = stored.item
    let ours = plan.registry.items[theirs.key]
    // The same edition means that the item has not changed since the backup.
    guard ours?.edition != theirs.edition else { return }
    guard !theirs.endsWithInstallation || plan.registry.apps[theirs.owner] != nil else {
      return tell(theirs, "skipped", reason: "not installed")
    }
    var item = theirs
    item.number = ours?.number ?? plan.registry.nextItemNumber
    item.secretLength = stored.secret.length
    plan.add(.itemStored(item, stored.secret, ours == nil ? .added : .replaced))
    tell(theirs, ours == nil ? "added" : "replaced", reason: nil, inPlaceOf: ours)
  }

  /// Adds the row about an item. For a replaced one, it has the times of both.
  private mutating func tell(_ item: Item, _ outcome: String, reason: String?, inPlaceOf ours: Item? = nil) {
    tell(
      "item", outcome, ("group", .text(item.key.group)), ("service", .text(item.key.service)),
      ("account", .text(item.key.account)), ("modified", ours.map { _ in .time(item.modified) }),
      ("previous-modified", (ours?.modified).map(Reply.Value.time)), ("reason", reason.map(Reply.Value.string)))
  }

  // MARK: Versions and tokens

  /// Adds the backup's versions of an app or of the system to those known here. A last report known here stays current.
  mutating func bring(_ theirs: VersionHistory) {
    guard follows else { return }
    let subject = theirs.subject
    let of: (String, Reply.Value?) = ("of", .string(subject == .system ? "os" : "app"))
    let app: (String, Reply.Value?) = ("app", subject.app.map(Reply.Value.text))
    if let id = subject.app, plan.registry.apps[id] == nil {
      return tell("versions", "skipped", of, app, ("reason", .string("not installed")))
    }
    let before = plan.changes.count
    for installed in theirs.releases { bring(installed, of: subject) }
    for claim in theirs.claims { bring(claim, of: subject) }
    // Only this machine can tell which system runs here.
    if subject != .system, var report = theirs.current, plan.registry.versions[subject].current == nil {
      report.number = plan.registry.versions.lastReport + 1
      plan.add(.version(.reported(subject, report)))
    }
    if plan.changes.count > before { tell("versions", "restored", of, app) }
  }

  private mutating func bring(_ theirs: InstalledRelease, of subject: VersionSubject) {
    let ours = plan.registry.versions[subject].installed(theirs.release)
    let versions = plan.registry.versions
    let hasRoom = versions[subject].releases.count < Bound.releasesPerApp && versions.releases < Bound.releases
    guard ours != nil || hasRoom else { return }
    let installed = InstalledRelease(
      number: ours?.number ?? plan.registry.versions.lastRelease + 1, release: theirs.release,
      installed: min(theirs.installed, ours?.installed ?? theirs.installed),
      last: max(theirs.last, ours?.last ?? theirs.last))
    guard installed != ours else { return }
    plan.add(.version(ours == nil ? .installed(subject, installed) : .reinstalled(subject, installed)))
  }

  private mutating func bring(_ theirs: VersionClaim, of subject: VersionSubject) {
    let versions = plan.registry.versions
    guard versions[subject].claims.count < Bound.claimsPerApp, versions.claims < Bound.claims,
      !plan.registry.isClaimed(theirs.name, for: theirs.version, of: subject)
    else { return }
    var claim = theirs
    claim.number = versions.lastClaim + 1
    plan.add(.version(.claimed(subject, claim)))
  }

  /// Restores a push token, unless the app has one here, which is newer.
  mutating func bring(_ theirs: Token) {
    guard follows, plan.registry.tokens[theirs.app, theirs.provider] == nil else { return }
    let whose: [(String, Reply.Value?)] = [("app", .text(theirs.app)), ("provider", .text(theirs.provider))]
    guard plan.registry.apps[theirs.app] != nil else {
      return tell("token", "skipped", whose[0], whose[1], ("reason", .string("not installed")))
    }
    // The app may see another device identifier now. If it does not exist yet, making it moves the token.
    let device = plan.registry[plan.registry.deviceScope(of: theirs.app)]?.value ?? theirs.device
    let tokens = plan.registry.tokens
    guard tokens.count(of: theirs.app) < Bound.tokensPerApp, tokens.count < Bound.tokens else { return }
    plan.add(.tokenStored(theirs.with(number: tokens.lastNumber + 1, device: device), .created))
    tell("token", "added", whose[0], whose[1])
  }
}
