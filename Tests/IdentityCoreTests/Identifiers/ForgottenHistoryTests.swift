import IdentityCore
import Testing

/// The history that is kept of forgotten apps.
struct ForgottenHistoryTests {
  private static let subordinates = SubordinateUsers(
    [SubordinateUsers.Range(first: 100_000, count: 65_536, owner: 1_000)].compactMap(\.self))

  /// Expects that the history restored from its numbered identifiers equals the history in force.
  private func expectSameReadBack(_ life: Life) {
    var read = Registry()
    read.restore(life.registry.apps.map { InstalledApp(key: $0.key, app: $0.value) })
    read.restore(life.registry.history.numbered)
    read.use(life.registry.subordinates)
    #expect(read.history == life.registry.history)
  }

  @Test(arguments: [Level.installation, .vendor])
  func `an app that forgets itself repeatedly keeps only its latest identifiers`(level: Level) throws {
    var life = Life()
    life.limits.historyPerUser = 16
    var first: UUID?
    for round in 0..<100 {
      try life.ask(.get(level, app: nil), as: alice)
      first = first ?? Array(life.registry.history).first?.value
      try life.ask(.forget(app: "user:1000"), as: alice)
      #expect(life.registry.history.count <= 16, "round \(round)")
      #expect(life.registry.history.count >= min(round + 1, 13), "round \(round)")
      expectSameReadBack(life)
    }
    let gone = try #require(first)
    #expect(Array(life.registry.identifiers(valued: gone)).isEmpty)
    #expect(life.refusal(of: .resolve(gone), as: root)?.isNotFound == true)
  }

  @Test func `row 30: services and subordinate users share the history limit of their principal`() throws {
    var life = Life()
    life.registry.use(Self.subordinates)
    life.limits.historyPerUser = 16
    for round in 0..<100 {
      let peers = [
        service("s\(round)", of: 1_000),
        Peer(
          userID: 100_000 + UInt32(round), groupID: 1, processID: 7, isAdmin: false, subordinates: Self.subordinates),
      ]
      for peer in peers {
        try life.ask(.get(.installation, app: nil), as: peer)
        try life.ask(.forget(app: peer.app), as: peer)
      }
    }
    #expect(life.registry.history.count <= 16)
    try life.ask(.get(.installation, app: nil), as: bob)
    try life.ask(.forget(app: bob.app), as: bob)
    #expect(life.registry.history.count <= 17)
  }

  @Test func `all principals together have a history limit too`() throws {
    var life = Life()
    life.limits.history = 64
    for round in 0..<200 {
      let peer = Peer(userID: 2_000 + UInt32(round), groupID: 1, processID: 7, isAdmin: false)
      try life.ask(.get(.installation, app: nil), as: peer)
      try life.ask(.forget(app: peer.app), as: peer)
      #expect(life.registry.history.count <= 64)
    }
  }

  @Test func `changes by admins, of the device and of apps with manifests are never dropped`() throws {
    var life = Life()
    life.limits.historyPerUser = 8
    life.limits.history = 64
    life.install(["org.a": Manifest("org.v")])
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    for _ in 0..<50 {
      for level in Level.allCases { try life.ask(.renew(level, app: "org.a", dryRun: false), as: root) }
    }
    try life.ask(.get(.installation, app: nil), as: alice)
    for _ in 0..<50 { try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root) }
    life.install([:])
    let kept = life.registry.history.count
    #expect(kept == 3 * 51 + 51)
    for _ in 0..<50 {
      try life.ask(.forget(app: "user:1000"), as: alice)
      try life.ask(.get(.installation, app: nil), as: alice)
    }
    #expect((kept...kept + 9).contains(life.registry.history.count))
  }

  @Test func `an identifier that two apps had is still known as the other app's`() throws {
    var life = Life()
    life.limits.historyPerUser = 8
    try life.ask(.get(.installation, app: nil), as: alice)
    let value = try #require(life.registry[.installation("user:1000")]?.value)
    try life.ask(.migrate(.installation, value, app: nil, commits: true, forces: false), as: bob)
    try life.ask(.forget(app: "user:1000"), as: alice)
    for _ in 0..<20 {
      try life.ask(.get(.installation, app: nil), as: alice)
      try life.ask(.forget(app: "user:1000"), as: alice)
    }
    #expect(Array(life.registry.identifiers(valued: value)).map(\.scope) == [.installation(bob.app)])
    expectSameReadBack(life)
  }
}
