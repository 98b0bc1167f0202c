import IdentityCore
import IdentityWire
import TestSupport

/// Whole sessions: request lines of several peers in turn, with actions on the machine and the manifests between them.
///
/// The first byte of a line names the peer, as in ``World/peer(_:)``. A line with `%` is such an action.
final class SessionTarget: FuzzTarget {
  private let table = VerbTable()

  init() throws {}

  func run(_ input: [UInt8]) throws {
    var world = World()
    for line in input.split(separator: UInt8(ascii: "\n")).prefix(96) {
      guard let first = line.first else { continue }
      let rest = Array(line.dropFirst())
      if first == UInt8(ascii: "%") {
        try world.happen(rest)
      } else if let peer = world.peer(first), rest.count < Bound.lineLength {
        try take(rest, of: peer, in: &world)
      }
    }
    try world.checkReadBack()
  }

  private func take(_ line: [UInt8], of peer: Peer, in world: inout World) throws(Finding) {
    let command: Command
    do throws(Refusal) {
      var parser = WordParser()
      do throws(SyntaxFault) { try parser.parse(line.span) } catch { throw .syntax(error) }
      command = try table.command(parser, in: line.span, by: peer, secrets: PlainIntake())
    } catch {
      return try WireCheck.refusal(error, to: line)
    }
    switch command {
    case .registry(let command): try world.carryOut(command, by: peer)
    case .local(.subscribe(let topics, since: _, snapshot: true)):
      var reply = world.registry.snapshot(of: topics, for: peer)
      reply.ok()
      try world.requireRights(try WireCheck.reply(reply), of: peer)
    case .local(let command): if let reply = try LocalAnswer(command) { try WireCheck.reply(reply.reply) }
    case .store: break
    }
  }
}

/// The registry as the daemon has it, and a simple model of its contents beside it.
struct World {
  private(set) var registry = Registry()
  private var follower = Follower()
  /// The secret of every item that must exist.
  private var items: [ItemKey: [UInt8]] = [:]
  private var secrets: [UUID: SealedSecret] = [:]
  /// The current manifests.
  private var manifests: [Text: Manifest] = [:]
  private var now: Int64 = 1_700_000_000_000
  private var launches: Int32 = 10
  private var machine: UInt64 = 1
  private var hardware = 1
  private let numbers = Numbers()

  /// Generates UUIDs, each one different.
  private final class Numbers {
    private var drawn: UInt64 = 0

    func next() -> UUID {
      drawn += 1
      return UUID(high: 0x4000, low: 1 << 63 | drawn)
    }
  }

  init() {
    registry.apply(.machineRecorded(MachineRecord(fingerprint: fingerprint)))
  }

  // MARK: Peers

  /// Returns the peer that a byte names: root, two users, a user's service, or one of three apps, with or
  /// without a manifest.
  func peer(_ name: UInt8) -> Peer? {
    switch name {
    case UInt8(ascii: "r"): peer("user:0", 0, isAdmin: true)
    case UInt8(ascii: "a"): peer("user:1000", 1_000)
    case UInt8(ascii: "b"): peer("user:1001", 1_001)
    case UInt8(ascii: "s"): peer("unit:x.service@1000", 1_000)
    case UInt8(ascii: "1"): peer("org.a", 998)
    case UInt8(ascii: "2"): peer("org.b", 998)
    case UInt8(ascii: "3"): peer("org.c", 998)
    default: nil
    }
  }

  private func peer(_ app: Text, _ user: UInt32, isAdmin: Bool = false) -> Peer {
    Peer(
      app: app, userID: user, groupID: user, processID: 1, place: PeerPlace(), session: .process(launches, start: 1),
      isAdmin: isAdmin)
  }

  private func groups(of peer: Peer) -> Set<Text> {
    guard let manifest = manifests[peer.app] else { return "\(peer.app)".contains(":") ? [peer.app] : [] }
    return Set([peer.app] + manifest.accessGroups)
  }

  // MARK: External actions

  /// Applies an action: new manifests, a later clock, a new launch of the apps, or a restart on this
  /// machine or another.
  mutating func happen(_ what: [UInt8]) throws(Finding) {
    switch what.first {
    case UInt8(ascii: "m"): try survey(what.dropFirst())
    case UInt8(ascii: "t"): now += Int64(what.dropFirst().first ?? 1) * 86_400_000
    case UInt8(ascii: "l"): launches += 1
    case UInt8(ascii: "o"): try reportSystem(what.dropFirst())
    case UInt8(ascii: "r"): try restart()
    case UInt8(ascii: "h"):
      hardware += 1
      try restart()
    case UInt8(ascii: "n"):
      machine += 1
      try restart()
    default: return
    }
  }

  /// Installs the manifests of the apps whose bits are set in the first byte. The bits of the second byte
  /// set their contents.
  private mutating func survey(_ bytes: ArraySlice<UInt8>) throws(Finding) {
    let (apps, says) = (bytes.first ?? 0, bytes.dropFirst().first ?? 0)
    var found: [Text: Manifest] = [:]
    for (place, app) in (["org.a", "org.b", "org.c"] as [Text]).enumerated() where apps >> UInt8(place) & 1 == 1 {
      var manifest = Manifest(vendor: says & 1 == 0 || place == 2 ? "org.v" : "org.w")
      manifest.deviceBinding = Manifest.DeviceBinding.allCases[(Int(says >> 1) + place) % 3]
      manifest.accessGroups = says & 8 == 0 ? ["org.shared"] : ["org.shared", "org.media"]
      manifest.versionOrder = says & 16 == 0 ? .numeric : .linux
      found[app] = manifest
    }
    guard !registry.isSealed else { return }
    manifests = found
    let survey = ManifestSurvey.found(found.mapValues { .init(file: "\($0.vendor)", manifest: $0) }, faults: [])
    let changes = registry.reconciliation(
      with: survey, registry.manifests(after: survey), refused: [], at: Timestamp(milliseconds: now))
    try take(changes.flatMap(\.self))
    let inForce = registry.apps.filter { $0.value.suspended == nil }
    let installed = inForce.compactMap { app in app.value.manifest.map { (app.key, $0) } }
    try require(
      Dictionary(uniqueKeysWithValues: installed) == found, "the apps are not those that have a manifest")
  }

  private mutating func reportSystem(_ version: ArraySlice<UInt8>) throws(Finding) {
    guard let text = Text(validating: Array(version)), !text.isEmpty, text.bytes.count < 100, !registry.isSealed else {
      return
    }
    do throws(Refusal) {
      let boot = numbers.next()
      let changes = try registry.systemReport(Release(version: text), boot: boot, context(nil))
      try taken(changes)
    } catch {
      try refuse(error)
    }
  }

  /// Restarts the daemon with the data that it reads back.
  private mutating func restart() throws(Finding) {
    try checkReadBack()
    if registry.isSealed { self = World() }
    do throws(Refusal) {
      let changes = try registry.changesAtStart(
        on: fingerprint, isSealedHere: false, onMachineChange: .renew,
        onHardwareChange: hardware % 2 == 0 ? .keep : .renew, context(nil))
      try taken(changes)
    } catch {
      try refuse(error)
    }
  }

  private var fingerprint: MachineFingerprint {
    MachineFingerprint(machine: Text("m\(machine)"), hardware: Text("h\(hardware)"))
  }

  // MARK: Requests

  /// Carries out a request as the writer does, and checks the answer.
  mutating func carryOut(_ command: RegistryCommand, by peer: Peer) throws(Finding) {
    now += 1
    let early = Result { () throws(Refusal) in try registry.answer(command, for: peer, in: surroundings) }
    do throws(Refusal) {
      let decision = try registry.decide(command, context(peer))
      // The loop answers requests without a change, and its answer must equal the writer's.
      if case .success(let reply?) = early, reply != decision.reply || !decision.changes.isEmpty {
        throw .broken("the loop answers \(reply), and the writer \(decision)")
      }
      _ = try decision.reply.allParts()
      if command.isTrial, !decision.changes.isEmpty { throw .broken("a trial changes \(decision.changes)") }
      try expect(command, decision, by: peer)
      try taken(decision.changes)
      var length = 0
      for item in decision.reply.secrets { length += try secret(of: item).bytes.count }
      do throws(Finding) {
        try requireRights(try WireCheck.reply(decision.reply, secret: Array("\(length)".utf8)), of: peer)
      } catch {
        throw .broken(error.description)
      }
    } catch {
      if case .failure(let refusal) = early, refusal != error {
        throw Finding("the loop refuses with \(refusal), and the writer with \(error)")
      }
      try refuse(error)
      try expectRefused(command, error, by: peer)
    }
  }

  /// Checks the effect of an item request against the model.
  private mutating func expect(_ command: RegistryCommand, _ decision: Decision, by peer: Peer) throws(Refusal) {
    func key(_ name: ItemName) throws(Refusal) -> ItemKey {
      let group = name.group ?? peer.app
      guard peer.isAdmin || groups(of: peer).contains(group) else { throw .broken("\(peer.app) uses \(group)") }
      return ItemKey(group: group, service: name.service, account: name.account)
    }
    switch command.rule {
    case let rule as StoreItemRule:
      guard try items.updateValue(rule.secret.bytes, forKey: key(rule.name)) == nil || rule.replaces else {
        throw .broken("an item was added that was there")
      }
    case let rule as UpdateItemRule:
      let key = try key(rule.name)
      guard let before = items[key] else { throw .broken("an item was updated that was not there") }
      items[key] = rule.update.secret?.bytes ?? before
    case let rule as ReadItemRule:
      guard let item = decision.reply.secrets.first, try items[key(rule.name)] == secret(of: item).bytes else {
        throw .broken("the secret is not what was stored")
      }
    case is DeleteItemsRule:
      for case .itemDeleted(let item) in decision.changes where items.removeValue(forKey: item.key) == nil {
        throw .broken("an item was deleted that was not there")
      }
    default: break
    }
  }

  private func expectRefused(_ command: RegistryCommand, _ refusal: Refusal, by peer: Peer) throws(Finding) {
    guard let name = (command.rule as? ReadItemRule)?.name, case .notFound = refusal else { return }
    let group = name.group ?? peer.app
    guard peer.isAdmin || groups(of: peer).contains(group) else { return }
    let isThere = items[ItemKey(group: group, service: name.service, account: name.account)] != nil
    try require(!isThere, "an item is not found that is there")
  }

  /// Checks that no answer tells an app of an item in a group that it may not use.
  func requireRights(_ lines: [ReplyLine], of peer: Peer) throws(Finding) {
    guard !peer.isAdmin else { return }
    let groups = groups(of: peer)
    for line in lines {
      let content: ReplyLine.Content
      switch line {
      case .row(let row): content = row
      case .ok(let final): content = final
      case .error, .event: continue
      }
      for attribute in content.attributes where attribute.name == "group" {
        try require(groups.contains(attribute.value), "\(peer.app) is told of an item of \(attribute.value)")
      }
    }
  }

  /// Checks that a refusal is one of the rules'. `broken` is a fault of the daemon.
  private func refuse(_ refusal: Refusal) throws(Finding) {
    if case .broken(let what) = refusal { throw Finding(what) }
    try WireCheck.refusal(refusal, to: [])
  }

  // MARK: Changes

  private mutating func taken(_ changes: [Change]) throws(Refusal) {
    do throws(Finding) { try take(changes) } catch { throw .broken(error.description) }
  }

  private mutating func take(_ changes: [Change]) throws(Finding) {
    for change in changes {
      let recorded = registry.record(change, at: Timestamp(milliseconds: now))
      registry.apply(recorded)
      if let event = recorded.event {
        try WireCheck.event(event)
        try follower.take(event)
      }
      switch change {
      case .itemStored(let item, let secret, _): secrets[item.edition] = secret
      case .itemDeleted(let item): items[item.key] = nil
      case .sealed: follower.seal()
      default: break
      }
    }
    guard !changes.isEmpty else { return }
    try follower.check(registry)
    try require(Set(registry.items.all.map(\.key)) == Set(items.keys), "the items are not those that were stored")
    for scope in registry.scopes { try requireResolved(scope) }
  }

  private func requireResolved(_ scope: Scope) throws(Finding) {
    let value = registry[scope]?.value ?? .zero
    let found = registry.identifiers(valued: value).contains { $0.scope == scope && $0.end == nil }
    try require(found && registry.count(of: scope) > 0, "\(scope) has \(value), which the history does not know")
  }

  /// Checks that the registry reads back row by row as it was.
  func checkReadBack() throws(Finding) {
    var read = Registry()
    read.restore(registry.apps.map { InstalledApp(key: $0.key, app: $0.value) })
    read.restore(registry.history.numbered)
    for device in registry.devices { read.apply(.deviceListed(device)) }
    read.restore(registry.items.all.map(HeldItem.init))
    let histories = Array(registry.versions.all)
    for history in histories {
      for release in history.releases { read.apply(.version(.installed(history.subject, release))) }
      for report in history.reports { read.apply(.version(.reported(history.subject, report))) }
      for claim in history.claims { read.apply(.version(.claimed(history.subject, claim))) }
    }
    for token in registry.tokens.all { read.apply(.tokenStored(token, .confirmed)) }
    if let account = registry.account { read.apply(.accountSet(account)) }
    if let machine = registry.machine { read.apply(.machineRecorded(machine)) }
    for former in registry.formerMachines { read.apply(.machineLeft(former)) }
    for left in registry.leftDevices { read.apply(.deviceLeft(left)) }
    for key in registry.proofKeys { read.apply(.proofKeyStored(key)) }
    if let fleet = registry.fleet { read.apply(.fleetAdvanced(fleet)) }
    for record in registry.records.all { read.apply(.fleetRecorded(record)) }
    if let backup = registry.lastBackup { read.apply(.backupTaken(backup)) }
    if registry.isSealed { read.apply(.sealed) }
    read.resume(after: registry.lastEvent)
    // Deleted rows are not read back, and their numbers may be used again. All else must be equal.
    try require(
      read.apps == registry.apps && read.history == registry.history, "apps or identifiers are read otherwise")
    try require(read.scopes == registry.scopes, "what is in force is read otherwise")
    try require(
      read.devices == registry.devices && read.account == registry.account && read.fleet == registry.fleet
        && read.records == registry.records,
      "devices are read otherwise")
    try require(read.items.total == registry.items.total, "items are counted otherwise")
    try require(
      Array(read.versions.all) == Array(histories) && Array(read.tokens.all) == Array(registry.tokens.all),
      "versions are read otherwise")
    for history in histories {
      try require(history.releases.map(\.number).isAscending, "releases are out of order")
      try require(history.reports.map(\.number).isAscending, "reports are out of order")
      try require(history.claims.map(\.number).isAscending, "claims are out of order")
    }
  }

  // MARK: Surroundings

  private func secret(of item: Item) throws(Refusal) -> SealedSecret {
    guard let secret = secrets[item.edition] else { throw .broken("no secret has this edition") }
    return secret
  }

  private var surroundings: Surroundings { .fixed(at: now) }

  private func context(_ peer: Peer?) -> Context {
    let (numbers, machine, secrets) = (numbers, machine, secrets)
    var limits = Limits()
    limits.items.perApp.items = 4
    limits.items.perApp.bytes = 1_024
    limits.items.perUser.items = 4
    limits.items.perUser.bytes = 1_024
    return Context(
      peer: peer, in: surroundings, limits: limits,
      random: { () throws(Refusal) in numbers.next() },
      machine: { (scope) throws(Refusal) in
        let name = [scope.level.rawValue, "\(scope.app ?? "")", "\(scope.vendor ?? "")"].joined(separator: " ")
        let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return UUID(high: machine << 32 | 0x4000, low: hash).stamped(version: 4)
      },
      digest: { $0 }, fingerprint: { Text("#\($0.bytes.count)") },
      secret: { (item) throws(Refusal) in
        guard let secret = secrets[item.edition] else { throw .broken("no secret has this edition") }
        return secret
      },
      identifier: { (secret) throws(Refusal) in
        guard let value = Text(validating: secret.bytes).flatMap({ UUID($0) }) else { throw .invalidUUID("the secret") }
        return value
      })
  }
}

extension RegistryCommand {
  /// Whether the command is a trial of a change. A ``QueryRule`` cannot change anything.
  fileprivate var isTrial: Bool {
    switch rule {
    case let rule as RenewRule: rule.dryRun
    case let rule as MigrateRule: !rule.commits
    case let rule as MigrateFromItemRule: !rule.commits
    default: false
    }
  }
}

extension [Int64] {
  fileprivate var isAscending: Bool { zip(self, dropFirst()).allSatisfy { $0 < $1 } }
}
