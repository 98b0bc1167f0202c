import IdentityCore
import Testing

struct GetTests {
  @Test func `the first request makes the device identifier from the machine-id, and later ones find it`() throws {
    var life = Life()
    #expect(try life.registry.answer(.get(.device, app: nil), for: alice) == nil)
    let answer = ["OK m.device level=device created=t1 origin=machine"]
    #expect(try life.ask(.get(.device, app: nil), as: alice) == answer)
    let before = life.registry
    for peer in [root, alice, service("web", of: 1_001)] {
      #expect(try life.ask(.get(.device, app: nil), as: peer) == answer)
    }
    #expect(life.registry == before)
    #expect(try life.registry.answer(.get(.device, app: nil), for: alice).map(life.lines) == answer)
  }

  @Test func `a request for the device identifier installs no app`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(life.registry.apps.count == 0)
  }

  @Test func `without a machine-id the device identifier is random, and stays so afterwards`() throws {
    var life = Life()
    life.machine = nil
    #expect(
      try life.ask(.get(.device, app: nil), as: alice) == ["OK r1 level=device created=t1 origin=random"])
    life.machine = "m"
    #expect(
      try life.ask(.get(.device, app: nil), as: alice) == ["OK r1 level=device created=t1 origin=random"])
  }

  @Test func `a value derived from the machine-id does not return once it has ended`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.device, app: nil), as: peer("org.a"))
    try life.ask(.migrate(.device, given(1), app: "org.a", commits: true, forces: true), as: root)
    try life.ask(.renew(.device, app: "org.a", dryRun: false), as: root)
    #expect(
      Array(life.registry.identifiers(valued: try #require(Array(life.registry.history).first?.value))).count == 1)
    #expect(life.spoken(.deviceOfApp("org.a")) == "r1")
  }

  @Test func `an app that migrates the derived device identifier cannot take it away`() throws {
    var life = Life()
    // Every user can read the machine-id and derive the daemon's identifier from it.
    let derived = try #require(try life.context(alice).machine(.device))
    try life.ask(.migrate(.installation, derived, app: nil, commits: true, forces: false), as: alice)
    #expect(
      try life.ask(.get(.device, app: nil), as: root) == ["OK m.device level=device created=t2 origin=machine"])
  }

  @Test(
    arguments: [
      (.installation, "OK r1 level=installation app=user:1000 vendor=user:1000 created=t1"),
      (.vendor, "OK r1 level=vendor vendor=user:1000 created=t1"),
    ] as [(Level, String)])
  func `the first use installs an app without a manifest`(level: Level, answer: String) throws {
    var life = Life()
    #expect(try life.ask(.get(level, app: nil), as: alice) == [answer])
    #expect(Array(life.registry.apps.keys) == ["user:1000"])
    #expect(life.registry.apps["user:1000"] == App(installed: Timestamp(milliseconds: 1)))
    let before = life.registry
    #expect(try life.ask(.get(level, app: nil), as: alice) == [answer])
    #expect(life.registry == before)
  }

  @Test func `an app with a manifest gets its own installation and its vendor's identifier`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.v")])
    #expect(
      try life.ask(.get(.installation, app: nil), as: peer("org.a"))
        == ["OK r1 level=installation app=org.a vendor=org.v created=t2"])
    #expect(
      try life.ask(.get(.installation, app: nil), as: peer("org.b"))
        == ["OK r2 level=installation app=org.b vendor=org.v created=t3"])
    let vendor = ["OK r3 level=vendor vendor=org.v created=t4"]
    #expect(try life.ask(.get(.vendor, app: nil), as: peer("org.a")) == vendor)
    #expect(try life.ask(.get(.vendor, app: nil), as: peer("org.b")) == vendor)
  }

  @Test(
    arguments: [
      (.app, "OK m.device.org.a level=device app=org.a created=t2 origin=machine"),
      (.vendor, "OK m.device.org.v level=device vendor=org.v created=t2 origin=machine"),
      (.shared, "OK m.device level=device created=t2 origin=machine"),
    ] as [(Manifest.DeviceBinding, String)])
  func `DeviceIdentifier= in the manifest selects the device identifier`(
    binding: Manifest.DeviceBinding, answer: String
  ) throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: binding)])
    #expect(try life.ask(.get(.device, app: nil), as: peer("org.a")) == [answer])
    #expect(life.registry.devices.count == (binding == .shared ? 1 : 0))
  }

  @Test func `apps of one vendor with a vendor binding share a device identifier, other vendors do not`() throws {
    var life = Life()
    life.install([
      "org.a": Manifest("org.v", device: .vendor), "org.b": Manifest("org.v", device: .vendor),
      "org.c": Manifest("org.w", device: .vendor),
    ])
    let words = try ["org.a", "org.b", "org.c"].map { app in
      try life.ask(.get(.device, app: nil), as: peer(Text(app)))[0].split(separator: " ")[1]
    }
    #expect(words == ["m.device.org.v", "m.device.org.v", "m.device.org.w"])
  }

  @Test func `a new binding yields another device identifier, and the former binding the former one`() throws {
    var life = Life()
    for (binding, expected) in [
      (.app, "m.device.org.a"), (.shared, "m.device"), (.vendor, "m.device.org.v"), (.app, "m.device.org.a"),
    ] as [(Manifest.DeviceBinding, String)] {
      life.install(["org.a": Manifest("org.v", device: binding)])
      #expect(try life.ask(.get(.device, app: nil), as: peer("org.a"))[0].hasPrefix("OK \(expected) "))
    }
  }

  @Test func `row 41e: without random bytes no identifier is made up`() {
    let fault = Refusal.broken("no bytes")
    let context = Context(
      peer: alice, in: Life().surroundings, random: { () throws(Refusal) in throw fault },
      machine: { (_) throws(Refusal) in nil }, digest: { $0 }, fingerprint: { $0 })
    for level in Level.allCases {
      #expect(throws: fault) { try Registry().decide(.get(level, app: nil), context) }
    }
  }
}

struct RoomTests {
  private static let subordinates = SubordinateUsers(
    [SubordinateUsers.Range(first: 100_000, count: 65_536, owner: 1_000)].compactMap(\.self))

  /// Returns a `Life` with this limit on the apps of a principal.
  private func life(perUser: Int) -> Life {
    var life = Life()
    life.limits.appsPerUser = perUser
    return life
  }

  private func tooMany(_ count: Int) -> Refusal {
    .limit(
      "uid 1000 has \(count) apps without a manifest and may have no more now ([Limits] Apps=, AppsPerUser=); "
        + "an admin can remove unused apps with 'app forget unused=DAYS'")
  }

  @Test(arguments: [Level.installation, .vendor])
  func `row 30: the number of apps per user is limited, and a forgotten app makes room`(level: Level) throws {
    var life = life(perUser: 8)
    for number in 0..<8 { try life.ask(.get(level, app: nil), as: service("s\(number)", of: 1_000)) }
    let next = service("next", of: 1_000)
    for peer in [next, alice] { #expect(life.refusal(of: .get(level, app: nil), as: peer) == tooMany(8)) }
    #expect(life.refusal(of: .get(level, app: nil), as: service("s0", of: 1_000)) == nil)
    #expect(life.refusal(of: .get(.device, app: nil), as: next) == nil)
    // The limit applies neither to another user nor to a user whose number ends with the same digits.
    for other in [service("next", of: 1_001), service("next", of: 11_000)] {
      #expect(life.refusal(of: .get(level, app: nil), as: other) == nil)
    }
    try life.ask(.forget(app: "unit:s0.service@1000"), as: service("s0", of: 1_000))
    try life.ask(.get(level, app: nil), as: next)
    #expect(life.registry.apps.count == 8)
  }

  @Test func `apps of subordinate users and of a user's containers count as the user's`() throws {
    var life = life(perUser: 3)
    life.registry.use(Self.subordinates)
    let peers = [
      alice, Peer(userID: 100_007, groupID: 1, processID: 1, isAdmin: false),
      Peer(
        userID: 100_008, groupID: 1, processID: 1, place: PeerPlace(unit: nil, owner: 1_000, container: "box"),
        isAdmin: false, subordinates: Self.subordinates),
    ]
    for peer in peers { try life.ask(.get(.installation, app: nil), as: peer) }
    #expect(life.registry.apps.keys.sorted() == ["container:box@1000", "user:1000", "user:100007"])
    for next in [Peer(userID: 100_009, groupID: 1, processID: 1, isAdmin: false), service("s", of: 1_000)] {
      #expect(life.refusal(of: .get(.installation, app: nil), as: next) == tooMany(3))
    }
    // Without the range, each subordinate user is a principal of its own.
    life.registry.use(SubordinateUsers())
    let next = Peer(userID: 100_009, groupID: 1, processID: 1, isAdmin: false)
    #expect(life.refusal(of: .get(.installation, app: nil), as: next) == nil)
    #expect(life.refusal(of: .get(.installation, app: nil), as: service("s", of: 1_000)) == nil)
  }

  @Test func `one principal may have at most half of the apps, and later ones share the rest`() throws {
    var life = Life()
    life.limits.apps = 100
    var counts: [UInt32: Int] = [:]
    for user in 1_000..<1_004 as Range<UInt32> {
      var number = 0
      while life.refusal(of: .get(.installation, app: nil), as: service("s\(number)", of: user)) == nil {
        try life.ask(.get(.installation, app: nil), as: service("s\(number)", of: user))
        number += 1
      }
      counts[user] = number
    }
    // The reserve leaves 90: half of 90, a third of 45, a quarter of 30, a fifth of 23.
    #expect(counts == [1_000: 45, 1_001: 15, 1_002: 7, 1_003: 4])
    // A user without an app gets its first one from the reserve, until the reserve is used up.
    for user in 2_000..<2_029 as Range<UInt32> {
      try life.ask(.get(.installation, app: nil), as: service("s", of: user))
    }
    #expect(life.registry.apps.count == 100)
    #expect(life.refusal(of: .get(.installation, app: nil), as: service("s", of: 3_000))?.isLimit == true)
  }

  @Test func `system services use the reserve and have no limit per user`() throws {
    var life = life(perUser: 2)
    life.limits.apps = 10
    for number in 0..<10 {
      let system = Peer(
        userID: 0, groupID: 0, processID: 1, place: PeerPlace(unit: Text("s@\(number).service")), isAdmin: false)
      try life.ask(.get(.installation, app: nil), as: system)
    }
    #expect(life.registry.apps.count == 10)
  }

  @Test func `a migration without room for the app is refused in a dry run too`() throws {
    var life = life(perUser: 4)
    for number in 0..<4 { try life.ask(.get(.installation, app: nil), as: service("s\(number)", of: 1_000)) }
    let before = life.registry
    for commits in [true, false] {
      let command = RegistryCommand.migrate(.installation, given(1), app: nil, commits: commits, forces: false)
      #expect(life.refusal(of: command, as: service("next", of: 1_000))?.isLimit == true, "commit=\(commits)")
    }
    let dryRun = RegistryCommand.migrate(.installation, given(1), app: nil, commits: false, forces: false)
    #expect(try life.ask(dryRun, as: service("next", of: 1_001)).last?.contains("committed=no") == true)
    #expect(life.registry == before)
  }
}

extension Refusal {
  var isNotFound: Bool {
    if case .notFound = self { return true }
    return false
  }

  var isDenied: Bool {
    if case .denied = self { return true }
    return false
  }

  var isLimit: Bool {
    if case .limit = self { return true }
    return false
  }
}
