import IdentityCore
import Testing

/// An action on an app, on its vendor's apps or on the machine.
private enum Happening: CaseIterable {
  case relaunch, update, reinstallation, allOfVendorReinstalled, restart, upgrade, reset, copy
}

struct PersistenceTests {
  @Test(
    arguments: [
      // Whether the identifiers of the device, the vendor and the installation stay the same.
      (.relaunch, true, true, true), (.update, true, true, true), (.reinstallation, true, true, false),
      (.allOfVendorReinstalled, true, false, false), (.restart, true, true, true), (.upgrade, true, true, true),
      (.reset, false, false, false), (.copy, false, false, false),
    ] as [(Happening, Bool, Bool, Bool)], Manifest.DeviceBinding.allCases)
  private func `the identifiers of each level persist over the documented events`(
    row: (Happening, device: Bool, vendor: Bool, installation: Bool), binding: Manifest.DeviceBinding
  ) throws {
    let apps: [Text: Manifest] = ["org.a": Manifest("org.v", device: binding), "org.b": Manifest("org.v")]
    var life = Life()
    try life.start("m", "h")
    life.install(apps)
    let before = try identifiers(&life)
    switch row.0 {
    case .relaunch: break
    case .update:
      var updated = apps
      updated["org.a"]?.accessGroups = ["g"]
      life.install(updated)
    case .reinstallation:
      life.install(["org.b": Manifest("org.v")])
      life.install(apps)
    case .allOfVendorReinstalled:
      life.install([:])
      life.install(apps)
    case .restart: try life.start("m", "h")
    case .upgrade:
      life.survey(.unreadable("the folder is being replaced"))
      try life.start("m", "h", onHardwareChange: .renew)
      life.install(apps)
    case .reset: try life.start("n", "h")
    case .copy: try life.start("m", "i", onHardwareChange: .renew)
    }
    let after = try identifiers(&life)
    #expect((before[.device] == after[.device]) == row.device)
    #expect((before[.vendor] == after[.vendor]) == row.vendor)
    #expect((before[.installation] == after[.installation]) == row.installation)
  }

  private func identifiers(_ life: inout Life) throws -> [Level: Substring] {
    var found: [Level: Substring] = [:]
    for level in Level.allCases {
      found[level] = try life.ask(.get(level, app: nil), as: peer("org.a"))[0].split(separator: " ")[1]
    }
    return found
  }
}

struct ReadBackTests {
  /// Returns a `Life` with apps, identifiers, devices and an account.
  private func life() throws(Refusal) -> Life {
    var life = Life()
    try life.start("m", "h")
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v", device: .vendor)])
    for peer in [alice, peer("org.a"), peer("org.b"), root] {
      for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer) }
    }
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.putDevice(given(1), name: "phone", seen: Timestamp(milliseconds: 7)), as: root)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.ask(.removeDevice(given(1)), as: root)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try life.ask(.openFleet(run: given(3)), as: root)
    try life.ask(.nextCounter(above: 4), as: root)
    for (number, isGone) in [(4, false), (5, true)] as [(UInt64, Bool)] {
      let message = FleetRecord(
        device: given(number), generation: 1, counter: .max, isGone: isGone, isSuspect: !isGone, message: "AAAA")
      try life.ask(isGone ? .putTombstone(message) : .putRecord(message, name: "desk", seen: nil), as: root)
    }
    try life.ask(.forget(app: "user:1000"), as: alice)
    try life.ask(.get(.installation, app: nil), as: alice)
    life.install(["org.b": Manifest("org.w")])
    try life.start("m", "i")
    try life.start("n", "i")
    return life
  }

  @Test(arguments: [false, true])
  func `a registry that is read back row by row equals the original`(seals: Bool) throws {
    var life = try life()
    life.take(life.registry.changes(forBackup: Timestamp(milliseconds: 7)))
    if seals { try life.ask(.seal(dryRun: false), as: root) }
    let written = life.registry
    var read = Registry()
    read.restore(written.apps.map { InstalledApp(key: $0.key, app: $0.value) })
    read.restore(written.history.numbered)
    for device in written.devices { read.apply(.deviceListed(device)) }
    if let account = written.account { read.apply(.accountSet(account)) }
    if let machine = written.machine { read.apply(.machineRecorded(machine)) }
    for former in written.formerMachines { read.apply(.machineLeft(former)) }
    for left in written.leftDevices { read.apply(.deviceLeft(left)) }
    for key in written.proofKeys { read.apply(.proofKeyStored(key)) }
    if let fleet = written.fleet { read.apply(.fleetAdvanced(fleet)) }
    for record in written.records.all { read.apply(.fleetRecorded(record)) }
    if let backup = written.lastBackup { read.apply(.backupTaken(backup)) }
    if written.isSealed { read.apply(.sealed) }
    read.resume(after: written.lastEvent)
    #expect(read == written)
  }

  @Test func `a scope is determined by its level, app and vendor`() throws {
    let scopes: [Scope] = [
      .device, .deviceOfApp("a"), .deviceOfVendor("a"), .vendor("a"), .installation("a"),
    ]
    for scope in scopes { #expect(Scope(scope.level, app: scope.app, vendor: scope.vendor) == scope) }
    for (level, app, vendor) in [
      (.device, "a", "a"), (.vendor, nil, nil), (.vendor, "a", nil), (.vendor, "a", "a"), (.installation, nil, nil),
      (.installation, nil, "a"), (.installation, "a", "a"),
    ] as [(Level, Text?, Text?)] {
      #expect(Scope(level, app: app, vendor: vendor) == nil)
    }
  }

  @Test func `the last sequence number never goes back`() {
    var registry = Registry()
    registry.resume(after: 44)
    registry.resume(after: 7)
    #expect(registry.lastEvent == 44)
    #expect(registry.record(.accountSet("a"), at: Timestamp(milliseconds: 0)).event?.sequence == 45)
  }
}
