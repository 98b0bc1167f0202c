import IdentityCore
import IdentityStore
import IdentityWire
import Testing

/// Every change is found as it was stored: at the next start, after a kill, and after a rewrite.
struct RoundTripTests {
  private static let batches = [[deviceMade]] + life

  @Test func `every kind of change and its events survive, one transaction after another`() throws {
    let workspace = try Workspace(inMemory: true)
    var registry = Registry()
    var events: [EventLine] = []
    for batch in Self.batches + [[]] {
      try workspace.withStore { store, content in
        #expect(content.registry == registry)
        #expect(content.events == events)
        #expect(content.condition == .writable)
        let recorded = registry.recorded(batch)
        try store.mustCommit(recorded)
        events += recorded.events
        let healed = store.heal()
        #expect(healed == registry)
      }
    }
    #expect(events.count == Int(registry.lastEvent))
    #expect(events.count > 20)
    #expect(Set(events.map(\.topic)).count == 9)
  }

  @Test func `changes in one transaction have the same result as in separate ones`() throws {
    let workspace = try Workspace()
    let committed = try workspace.commit([Array(Self.batches.joined())], withEvents: true)
    let content = try workspace.found()
    #expect(content.registry == committed)
    #expect(content.registry.devices.map(\.value) == [uuid(3), uuid(32), uuid(33), uuid(34)])
    #expect(content.registry.apps["user:7"] == App(installed: later(15)))
    #expect(content.registry.machine == fullMachine)
    #expect(content.events.count == Int(committed.lastEvent))
    let history = content.registry.versions[.app(versionedApp)]
    #expect(history.releases == [release(2, firstRelease, last: 60)])
    #expect(history.reports.map(\.number) == [3, 4])
    #expect(history.current == report(4, firstRelease, .downgraded, after: secondRelease))
    #expect(history.claims == [VersionClaim(number: 2, version: "2.0", name: "é")])
    #expect(content.registry.versions[.system].current == report(5, ubuntu, .upgraded, after: debian))
    #expect(
      Array(content.registry.tokens.all) == [
        token(2, edition: 1, device: uuid(23)), token(3, of: "user:7", isValid: false),
      ])
  }

  @Test func `a manifest is read back completely`() throws {
    let workspace = try Workspace()
    try workspace.commit([[.appInstalled("com.example.full", fullApp)]])
    let apps = try workspace.found().registry.apps
    #expect(apps.count == 1 && apps["com.example.full"] == fullApp)
  }

  @Test func `events are read back with every audience, topic and attribute`() throws {
    let workspace = try Workspace()
    let audiences: [Audience] = [
      .sharing, .vendor("sharing"), .vendor("app:x"), .app(""), .app("vendor:é"), .vendor(""),
    ]
    let attributes: [[Event.Attribute]] = [
      [], [.init("", "")], [.init("a", "")], [.init("", "b"), .init("", "")],
      [.init("value", "two words\nand a line"), .init("previous", "=\"\\")],
    ]
    var events: [Event] = []
    for topic in Topic.allCases {
      for audience in audiences {
        for attributes in attributes {
          events.append(
            Event(
              sequence: Int64(events.count + 1), time: later(Int64(events.count)), topic: topic, name: "é",
              attributes: attributes, audience: audience))
        }
      }
    }
    try workspace.withStore { store, _ in
      try store.mustCommit(events.map { RecordedChange(.deviceSuspected(.device, .machineChanged), event: $0) })
    }
    let content = try workspace.found()
    #expect(content.events == events.map { EventLine($0) })
    #expect(content.events.map(\.time) == events.map(\.time))
    #expect(content.registry.lastEvent == Int64(events.count))
  }

  @Test func `two devices with one value are distinguished by their place, as in the registry`() throws {
    let workspace = try Workspace()
    func device(_ name: Text) -> ListedDevice { ListedDevice(value: uuid(5), name: name, added: start) }
    var registry = Registry()
    for batch in [
      [.deviceListed(device("one")), .deviceListed(device("two"))], [.deviceDescribed(device("three"))],
      [.deviceUnlisted(uuid(5))], [.deviceListed(device("four"))],
    ] as [[Change]] {
      try workspace.commit([batch])
      for change in batch { registry.apply(change) }
      #expect(try workspace.found().registry == registry)
    }
  }

  @Test func `sqlite3 shows the stored data in readable form`() throws {
    let workspace = try Workspace()
    try workspace.commit(Self.batches, withEvents: true)
    #expect(
      try workspace.sql(
        "SELECT n, level, value, ended, end_cause FROM identifier WHERE level = 'device' AND app IS NULL")
          == """
          1|device|\(uuid(1))|2023-11-14T22:13:30.000Z|renewed
          4|device|\(uuid(23))||
          6|device|\(uuid(2))|2023-11-14T22:13:31.000Z|renewed
          7|device|\(uuid(3))||

          """)
    let batch = try workspace.sql(
      "SELECT first, last, CAST(substr(lines, instr(lines, x'00') + 1) AS TEXT) FROM event_batch LIMIT 1")
    #expect(batch == "1|1|EVENT 1 device created value=\(uuid(1)) cause=first-use time=\(start)\n\n")
  }
}

/// Changes that do not match the stored rows are refused.
struct RefusedChangeTests {
  static let impossible: [(String, [RecordedChange])] =
    [
      ("a missing app updated", [.appUpdated("nobody", App(installed: start))]),
      ("a missing app uninstalled", [.appUninstalled("nobody")]),
      (
        "a missing app replaced",
        [.appReplaced(Replacement(previous: "nobody", id: "somebody", app: App(installed: start)))]
      ),
      (
        "a missing identifier moved",
        [
          .appReplaced(
            Replacement(
              previous: "user:7", id: "somebody", app: App(installed: start),
              identifiers: [.init(number: 99, identifier: missing)]))
        ]
      ),
      ("an app installed twice", [.appInstalled("user:7", App(installed: start))]),
      (
        "an end of a missing identifier", [.identifierEnded(.vendor("nobody"), .init(time: start, cause: .uninstalled))]
      ),
      ("an unlisted device described", [.deviceDescribed(ListedDevice(value: uuid(99), added: start))]),
      (
        "an unlisted device replaced",
        [.deviceReplaced(previous: uuid(99), ListedDevice(value: uuid(98), added: start))]
      ),
      ("an unlisted device removed", [.deviceUnlisted(uuid(99))]),
      ("a missing record of the fleet forgotten", [.fleetForgotten(uuid(99))]),
      (
        "a missing release reinstalled",
        [.version(.reinstalled(.app(versionedApp), release(99, firstRelease)))]
      ),
      ("a release twice", [.version(.installed(.app(versionedApp), release(2, firstRelease)))]),
      ("another app's release forgotten", [.version(.releaseForgotten(.app("user:7"), release(2, firstRelease)))]),
      ("the system's report forgotten for an app", [.version(.reportForgotten(.app(""), report(5, ubuntu)))]),
      ("an app's report forgotten for the system", [.version(.reportForgotten(.system, report(4, firstRelease)))]),
      (
        "another app's claim forgotten",
        [.version(.claimForgotten(.app(versionedApp), VersionClaim(number: 3, version: "1", name: "é")))]
      ),
      ("a missing proof key removed", [.proofKeyForgotten(proofKey(1), .rotated)]),
      ("a missing token replaced", [.tokenStored(token(1), .replaced)]),
      ("a token of the same provider", [.tokenStored(token(4), .created)]),
      ("another app's token deleted", [.tokenDeleted(token(3))]),
      ("another provider's token in its place", [.tokenStored(otherProvider, .replaced)]),
    ].map { ($0.0, $0.1.map { RecordedChange($0, event: nil) }) } + [
      ("an event with a number too high", [event(57)]), ("an event with a repeated number", [event(55)]),
    ]

  private static let missing = Identifier(
    scope: .installation("somebody"), value: uuid(9), created: start, origin: .random, cause: .firstUse, author: nil)

  /// The second token with the provider of the third one.
  private static let otherProvider = Token(
    number: 2, app: versionedApp, provider: "provider 1", value: "x", environment: nil, topic: nil, device: uuid(3),
    isValid: true, created: start, changed: start, confirmed: start, fingerprint: "x")

  private static func event(_ sequence: Int64) -> RecordedChange {
    RecordedChange(
      .deviceSuspected(.device, .machineChanged),
      event: Event(sequence: sequence, time: start, topic: .device, name: "suspect", attributes: [], audience: .sharing)
    )
  }

  @Test(arguments: impossible.map(\.0))
  func `a batch with an impossible change leaves everything as it was and can be healed`(what: String) throws {
    let workspace = try Workspace()
    let batch = try #require(Self.impossible.first { $0.0 == what }?.1)
    var registry = try workspace.commit(sample(apps: 4) + life, withEvents: true)
    try #require(registry.lastEvent == 55)
    try workspace.withStore { store, content in
      // Valid edits of several tables come before the impossible change.
      var ahead = registry
      let good = ahead.recorded([
        made(.device, uuid(50), .random, .renewed), .deviceUnlisted(uuid(32)), .accountSet("else"),
        .appUpdated("user:7", App(installed: start, manifest: Manifest(vendor: "v"))),
      ]).map { RecordedChange($0.change, event: nil) }
      let condition = store.commit(good + batch)
      guard case .unwritable = condition else {
        Issue.record("\(String(describing: condition))")
        return
      }
      #expect(store.commit(good) == condition)
      let healed = store.heal()
      #expect(healed == registry)
      try store.mustCommit(registry.recorded([made(.device, uuid(51), .random, .renewed), .accountSet("new")]))
    }
    let content = try workspace.found()
    #expect(content.condition == .writable)
    #expect(content.registry == registry)
    #expect(content.events.count == 57)
  }

  @Test func `a row that changed on the disk fails the commit that would replace it`() throws {
    let workspace = try Workspace(inMemory: true)
    // Twice as much as SQLite keeps in memory (sqlite.org/pragma.html, "cache_size").
    let author = Text(trusted: [UInt8](repeating: UInt8(ascii: "a"), count: 2_000))
    var registry = try workspace.commit([
      (1...2_000).map { made(.installation(Text("app-\($0)")), uuid(1_000 + $0), .random, by: author) }
    ])
    try workspace.withStore { store, _ in
      // SQLite evicted the first rows from its memory while it read the others.
      let value = Array("\(uuid(1_006))".utf8)
      let good = try workspace.read("identityd.db")
      let place = try #require((0..<(good.count - 36)).first { good[$0..<($0 + 36)].elementsEqual(value) })
      func set(_ byte: UInt8) throws {
        try overwrite(workspace.path("identityd.db"), at: place, with: byte)
      }
      try set(good[place] ^ 1)
      let scope = Scope.installation("app-6")
      let change = Change.identifierEnded(scope, .init(time: start, cause: .uninstalled))
      guard case .unwritable(let reason) = store.commit([change]) else {
        Issue.record("not noticed")
        return
      }
      #expect(reason.contains("find row 6 of identifier as it was written"))
      let inVain = store.heal()
      #expect(inVain == nil, "it is not in a copy either")
      try set(good[place])
      let healed = store.heal()
      #expect(healed == registry)
      try store.mustCommit([change])
      registry.apply(change)
    }
    #expect(try workspace.found().registry == registry)
  }
}
