import IdentityCore
import Testing

extension Life {
  /// Returns a backup of the present state.
  func backup(fromHere: Bool = true) -> Backup {
    var backup = Backup(created: Timestamp(milliseconds: now), isFromHere: fromHere)
    backup.account = registry.account
    backup.apps = Dictionary(uniqueKeysWithValues: registry.apps.map { ($0.key, $0.value) })
    backup.identifiers = Array(registry.history)
    backup.devices = Array(registry.devices)
    backup.fleet = registry.fleet.map { FleetStanding(counter: $0.counter, generation: $0.generation) }
    backup.records = Array(registry.records.all)
    backup.items = registry.items.all.sorted { $0.number < $1.number }.filter { !$0.isThisDeviceOnly }
      .map { Backup.StoredItem($0, secret($0.key.account)) }
    backup.versions = registry.versions
    backup.tokens = Array(registry.tokens.all)
    return backup
  }

  /// Returns the answer and the changes of a restore.
  func restoration(_ backup: Backup, adopts: Bool = false) throws(Refusal) -> (
    lines: [String], changes: [Change]
  ) {
    let decision = try registry.restoration(of: backup, adoptsDevice: adopts, context(root))
    return (lines(decision.reply), decision.changes)
  }

  /// Restores a backup.
  ///
  /// - Returns: the answer, one string per line.
  @discardableResult
  mutating func restore(_ backup: Backup, adopts: Bool = false) throws(Refusal) -> [String] {
    now += 1
    let (lines, changes) = try restoration(backup, adopts: adopts)
    take(changes)
    return lines
  }

  /// Stores an item whose secret is the name of its account.
  mutating func put(
    _ account: Text, _ description: ItemDescription = ItemDescription(), group: Text? = nil, as peer: Peer = alice
  ) throws(Refusal) {
    let name = ItemName(service: "s", account: account, group: group)
    try ask(.storeItem(name, secret(account), description, replaces: true), as: peer)
  }

  /// Returns the items of a group, one line per item.
  func found(_ group: Text) throws(Refusal) -> [String] {
    let condition = ItemCondition(groups: .named(group))
    return try registry.answer(.findItems(condition, limit: nil), for: root).map { lines($0) } ?? []
  }

  /// Returns the history of a level of an app, one line per identifier.
  func history(_ level: Level, _ app: Text? = nil) throws(Refusal) -> [String] {
    try registry.answer(.history(level, app: app), for: app == nil ? alice : root).map { lines($0) } ?? []
  }

  private func secret(_ account: Text) -> SealedSecret { SealedSecret(bytes: account.bytes, length: 1) }
}

/// The restore of a backup: its rows, events and changes.
struct RestoringTests {
  /// Returns two copies of one `Life`, which draw different UUIDs: one with a past up to time 9, and a new one.
  private func lives() throws -> (old: Life, new: Life) {
    let new = Life()
    var old = new
    try old.ask(.get(.device, app: nil), as: alice)
    try old.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try old.ask(.get(.installation, app: nil), as: alice)
    try old.ask(.get(.vendor, app: nil), as: alice)
    try old.ask(.setAccount("alice"), as: root)
    try old.ask(.putDevice(given(1), name: "phone", seen: nil), as: root)
    try old.put(
      "a", ItemDescription(label: "L", attributes: [.init(name: "k", value: "v")]))
    try old.put("here", ItemDescription(isThisDeviceOnly: true))
    try old.put("i", ItemDescription(endsWithInstallation: true))
    return (old, new)
  }

  // MARK: Rows

  @Test func `an up-to-date backup changes nothing in its own daemon`() throws {
    var (life, _) = try lives()
    let before = life.registry
    let backup = life.backup()
    #expect(try life.restore(backup) == ["* device kept value=r1 backup=r1", "OK 1"])
    #expect(try life.restore(backup, adopts: true) == ["* device kept value=r1 backup=r1", "OK 1"])
    #expect(life.registry == before)
  }

  @Test func `after a loss of the state everything is restored, with a row and an event each`() throws {
    var (old, life) = try lives()
    let backup = old.backup()
    life.now = 20
    #expect(
      try life.restore(backup) == [
        "* device restored value=r1 backup=r1", "* app installed app=user:1000",
        "* installation restored value=r2 app=user:1000", "* vendor restored value=r3 vendor=user:1000",
        "* account changed value=alice", "* devices added value=g1",
        "* item added group=user:1000 service=s account=a", "* item added group=user:1000 service=s account=i", "OK 8",
      ])
    #expect(
      life.told() == [
        "1 app installed app=user:1000 vendor=user:1000 > vendor user:1000",
        "2 device created value=r1 cause=restored > sharing", "3 devices added value=r1 > sharing",
        "4 installation created value=r2 cause=restored app=user:1000 vendor=user:1000 > app user:1000",
        "5 vendor created value=r3 cause=restored vendor=user:1000 > vendor user:1000",
        "6 account changed value=alice > sharing", "7 devices added value=g1 > sharing",
        "8 item added group=user:1000 service=s account=a > group user:1000",
        "9 item added group=user:1000 service=s account=i > group user:1000",
      ])
    #expect(
      try life.history(.device) == [
        "* m.device from=t1 until=t2 cause=first-use ended=renewed origin=machine by=uid:1000",
        "* r1 from=t2 until=t9 cause=renewed ended=restored origin=random by=uid:0",
        "* r1 from=t21 cause=restored origin=restored by=uid:0", "OK 3",
      ])
    #expect(
      try life.history(.vendor) == [
        "* r3 from=t4 until=t9 cause=first-use ended=restored origin=random by=uid:1000",
        "* r3 from=t21 cause=restored origin=restored by=uid:0", "OK 2",
      ])
    #expect(
      try life.found("user:1000") == [
        "* service=s account=a group=user:1000 label=L attr.k=v created=t7 modified=t7",
        "* service=s account=i group=user:1000 created=t9 modified=t9 lifetime=installation", "OK 2",
      ])
    #expect(life.registry.apps["user:1000"]?.installed == Timestamp(milliseconds: 3))
    // Restoring the same backup again changes nothing.
    let after = life.registry
    #expect(try life.restore(backup) == ["* device kept value=r1 backup=r1", "OK 1"])
    #expect(life.registry == after)
    // A backup of the restored state brings nothing new either.
    #expect(try life.restore(life.backup()) == ["* device kept value=r1 backup=r1", "OK 1"])
    #expect(life.registry == after)
    old.now = 30
    #expect(try old.restore(life.backup()) == ["* device kept value=r1 backup=r1", "OK 1"])
  }

  @Test func `a backup from other hardware restores items but not identifiers`() throws {
    var (old, life) = try lives()
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try life.ask(.get(.installation, app: nil), as: alice)
    let own = [life.spoken(.device), life.spoken(.installation("user:1000"))]
    let last = life.registry.lastEvent
    let history = life.registry.history
    let backup = old.backup(fromHere: false)
    #expect(
      try life.restore(backup) == [
        "* device clone value=\(own[0] ?? "") backup=r1", "* account changed value=alice",
        "* devices added value=r1", "* devices added value=g1", "* item added group=user:1000 service=s account=a",
        "* item added group=user:1000 service=s account=i", "OK 6",
      ])
    #expect(life.registry.history == history)
    #expect(
      life.told(from: last + 1).map { $0.split(separator: " ")[1] } == [
        "account", "devices", "devices", "item", "item",
      ])
    // In the other direction only the device is new.
    #expect(
      try old.restore(life.backup(fromHere: false)) == [
        "* device clone value=r1 backup=\(own[0] ?? "")", "* devices added value=\(own[0] ?? "")", "OK 2",
      ])
  }

  @Test func `a backup from other hardware gives no identifier to a machine without one`() throws {
    var (old, life) = try lives()
    let lines = try life.restore(old.backup(fromHere: false))
    #expect(lines.first == "* device clone backup=r1")
    #expect(lines.contains("* app installed app=user:1000"))
    #expect(life.registry.history.count == 0)
    old.now += 1
  }

  @Test func `adopt-device=yes restores the identifiers from other hardware`() throws {
    var (old, life) = try lives()
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.ask(.get(.installation, app: nil), as: alice)
    let installation = life.spoken(.installation("user:1000")) ?? ""
    let last = life.registry.lastEvent
    #expect(
      try life.restore(old.backup(fromHere: false), adopts: true).prefix(4) == [
        "* device adopted value=r1 previous=m.device backup=r1",
        "* installation restored value=r2 previous=\(installation) app=user:1000",
        "* vendor restored value=r3 vendor=user:1000", "* account changed value=alice",
      ])
    #expect(
      life.told(from: last + 1).prefix(3) == [
        "\(last + 1) device changed value=r1 previous=m.device cause=restored > sharing",
        "\(last + 2) devices replaced value=r1 previous=m.device > sharing",
        "\(last + 3) installation changed value=r2 previous=\(installation) cause=restored app=user:1000 vendor=user:1000 > app user:1000",
      ])
    #expect(life.spoken(.device) == "r1")
    #expect(
      try life.restore(old.backup(fromHere: false), adopts: true) == ["* device kept value=r1 backup=r1", "OK 1"])
    old.now += 1
  }

  @Test(arguments: [true, false])
  func `a backup without a device identifier changes none`(fromHere: Bool) throws {
    let empty = Life()
    var life = empty
    let backup = empty.backup(fromHere: fromHere)
    #expect(try life.restore(backup) == ["* device unknown", "OK 1"])
    #expect(life.registry == Registry())
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.restore(backup) == ["* device unknown value=m.device", "OK 1"])
    #expect(try life.restore(backup, adopts: true) == ["* device unknown value=m.device", "OK 1"])
    #expect(life.spoken(.device) == "m.device")
  }

  @Test func `the same identifier on other hardware counts as a clone and is reported`() throws {
    var (life, _) = try lives()
    #expect(try life.restore(life.backup(fromHere: false)).first == "* device clone value=r1 backup=r1")
  }

  // MARK: Identifiers

  @Test func `a renewed identifier is restored, and the history records it`() throws {
    var (life, _) = try lives()
    let backup = life.backup()
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    let since = life.spoken(.device) ?? ""
    #expect(
      try life.restore(backup) == ["* device restored value=r1 previous=\(since) backup=r1", "OK 1"])
    #expect(
      try life.history(.device).suffix(4) == [
        "* r1 from=t2 until=t10 cause=renewed ended=renewed origin=random by=uid:0",
        "* \(since) from=t10 until=t11 cause=renewed ended=restored origin=random by=uid:0",
        "* r1 from=t11 cause=restored origin=restored by=uid:0", "OK 4",
      ])
    #expect(try life.registry.answer(.devices, for: alice).map { life.lines($0) }?.first == "* r1 self=yes added=t1")
  }

  @Test func `an identifier that the machine derived again gets its earlier history back`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.get(.device, app: nil), as: alice)
    life.now = 20
    try life.ask(.get(.device, app: nil), as: alice)
    old.now = 5
    #expect(try life.restore(old.backup()) == ["* device kept value=m.device backup=m.device", "OK 1"])
    #expect(
      try life.history(.device) == [
        "* m.device from=t21 cause=first-use origin=machine by=uid:1000",
        "* m.device from=t1 until=t5 cause=first-use ended=restored origin=machine by=uid:1000", "OK 2",
      ])
  }

  @Test func `an identifier that has ended since is not recorded twice`() throws {
    var (life, _) = try lives()
    let backup = life.backup()
    try life.ask(.forget(app: "user:1000"), as: root)
    let places = life.registry.history.count
    let lines = try life.restore(backup)
    #expect(
      lines == [
        "* device kept value=r1 backup=r1", "* app installed app=user:1000",
        "* installation restored value=r2 app=user:1000", "* vendor restored value=r3 vendor=user:1000",
        "* item added group=user:1000 service=s account=i", "OK 5",
      ])
    #expect(life.registry.history.count == places + 2)
    #expect(life.registry.apps["user:1000"]?.installed == Timestamp(milliseconds: 3))
  }

  @Test func `device identifiers of apps and vendors are restored even if these are not installed`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.w", device: .vendor)])
    for app in ["org.a", "org.b"] as [Text] {
      for level in [Level.device, .installation, .vendor] { try old.ask(.get(level, app: nil), as: peer(app)) }
    }
    let skipped = [
      "* installation skipped app=org.a reason=not installed", "* vendor skipped vendor=org.v reason=not installed",
      "* installation skipped app=org.b reason=not installed", "* vendor skipped vendor=org.w reason=not installed",
    ]
    let lines = try life.restore(old.backup())
    #expect(
      lines == [
        "* device unknown", "* device restored value=m.device.org.a app=org.a", skipped[0], skipped[1],
        "* device restored value=m.device.org.w vendor=org.w", skipped[2], skipped[3], "OK 7",
      ])
    #expect(life.registry.apps.count == 0)
    #expect(life.spoken(.installation("org.a")) == nil)
    // Of the skipped identifiers, only the history is restored.
    #expect(try life.history(.installation, "org.a").count == 2)
    // Once the apps are installed, their identifiers are restored too.
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.w", device: .vendor)])
    #expect(
      try life.restore(old.backup()) == [
        "* device unknown", "* installation restored value=r1 app=org.a", "* vendor restored value=r2 vendor=org.v",
        "* installation restored value=r3 app=org.b", "* vendor restored value=r4 vendor=org.w", "OK 5",
      ])
  }

  @Test func `a vendor's identifier is restored if any of its apps is installed`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v")])
    try old.ask(.get(.vendor, app: nil), as: peer("org.a"))
    life.install(["org.b": Manifest("org.v")])
    #expect(
      try life.restore(old.backup()) == ["* device unknown", "* vendor restored value=r1 vendor=org.v", "OK 2"])
  }

  @Test func `a restore installs no app with a manifest and changes no installed app`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v")])
    try old.ask(.get(.installation, app: nil), as: alice)
    life.install(["org.c": Manifest("org.v")])
    try life.ask(.get(.vendor, app: nil), as: alice)
    let installed = life.registry.apps["user:1000"]
    #expect(try life.restore(old.backup()).contains { $0.hasPrefix("* app ") } == false)
    #expect(life.registry.apps["user:1000"] == installed)
    #expect(life.registry.apps.keys.sorted() == ["org.c", "user:1000"])
  }

  @Test func `a restored device identifier ends the suspicion`() throws {
    var (life, _) = try lives()
    try life.start("m", "h1")
    let backup = life.backup()
    try life.start("m", "h2")
    try life.restore(backup)
    #expect(life.registry.machine?.suspicion?.cause == .hardwareChanged)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try life.start("m", "h1")
    #expect(life.registry.machine?.suspicion?.cause == .hardwareChanged)
    try life.restore(backup)
    #expect(life.registry.machine?.suspicion == nil)
  }
}
