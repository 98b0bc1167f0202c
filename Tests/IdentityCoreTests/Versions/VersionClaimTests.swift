import IdentityCore
import Testing

struct VersionClaimTests {
  @Test func `for each version exactly one claim is the first`() throws {
    var life = Life()
    #expect(life.refusal(of: .claim("n"), as: alice.session(1)) == .notFound("user:1000 has not reported a version"))
    try life.ask(.report("1"), as: alice.session(1))
    #expect(try life.ask(.claim("n"), as: alice.session(1)) == ["OK first"])
    let before = life.registry
    for session in [1, 2, 1] as [Int32] {
      #expect(try life.ask(.claim("n"), as: alice.session(session)) == ["OK again"])
    }
    #expect(life.registry == before)
    // Another name is another claim.
    #expect(try life.ask(.claim("N"), as: alice.session(2)) == ["OK first"])
    #expect(try life.ask(.claim("n "), as: alice) == ["OK first"])
  }

  @Test func `builds and spellings do not make another version`() throws {
    var life = Life()
    try life.ask(.report("1.0", "1"), as: alice.session(1))
    #expect(try life.ask(.claim("n"), as: alice.session(1)) == ["OK first"])
    for (number, (version, build)) in ([("1.0", "2"), ("1.0", nil), ("1", nil), ("1.00.0", "x")] as [(Text, Text?)])
      .enumerated()
    {
      let peer = alice.session(Int32(number + 2))
      try life.ask(.report(version, build), as: peer)
      #expect(try life.ask(.claim("n"), as: peer) == ["OK again"])
    }
    try life.ask(.report("1.0.1"), as: alice.session(9))
    #expect(try life.ask(.claim("n"), as: alice.session(9)) == ["OK first"])
  }

  @Test func `the version order of the app decides whether versions are equal`() throws {
    var life = Life()
    life.install(["org.n": Manifest("org.v", order: .numeric), "org.l": Manifest("org.v", order: .linux)])
    for (app, answer) in [("org.n", "OK again"), ("org.l", "OK first")] as [(Text, String)] {
      try life.ask(.report("1.2"), as: peer(app).session(1))
      try life.ask(.claim("n"), as: peer(app).session(1))
      try life.ask(.report("1.2.0"), as: peer(app).session(2))
      #expect(try life.ask(.claim("n"), as: peer(app).session(2)) == [answer])
    }
  }

  @Test func `a claim survives a downgrade and a later upgrade`() throws {
    var life = Life()
    for (number, (version, answer))
      in ([("1", "first"), ("2", "first"), ("1", "again"), ("2", "again")] as [(Text, String)])
      .enumerated()
    {
      try life.ask(.report(version), as: alice.session(Int32(number)))
      #expect(try life.ask(.claim("n"), as: alice.session(Int32(number))) == ["OK \(answer)"])
    }
  }

  @Test func `a session claims for the version it reported, or else for the last reported one`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.report("2"), as: alice.session(2))
    #expect(try life.ask(.claim("n"), as: alice.session(3)) == ["OK first"])
    #expect(try life.ask(.claim("n"), as: alice.session(2)) == ["OK again"])
    #expect(try life.ask(.claim("n"), as: alice.session(1)) == ["OK first"])
    #expect(life.registry.versions[.app("user:1000")].claims.map(\.version) == ["2", "1"])
  }

  @Test func `each app has its own claims, and an admin can claim for a named app`() throws {
    var life = Life.withThreeApps()
    for peer in [orgA, orgB] {
      try life.ask(.report("1"), as: peer.session(1))
      #expect(try life.ask(.claim("n"), as: peer.session(1)) == ["OK first"])
    }
    #expect(try life.ask(.claim("n", of: "org.a"), as: root.session(9)) == ["OK again"])
    #expect(try life.ask(.claim("m", of: "org.a"), as: root.session(9)) == ["OK first"])
    #expect(try life.ask(.claim("m"), as: orgA.session(1)) == ["OK again"])
  }

  @Test func `a claim causes no event`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    let last = life.registry.lastEvent
    try life.ask(.claim("n"), as: alice.session(1))
    #expect(life.registry.lastEvent == last)
  }

  // MARK: Bounds

  /// Returns a `Life` in which the app of the peer has claimed the names `1`, `2`, … for its version 1,
  /// and is at version 2.
  private func life(of peer: Peer, claims: Int) throws(Refusal) -> Life {
    var life = Life()
    try life.ask(.report("1"), as: peer.session(1))
    for number in 1...Int64(claims) {
      life.take([
        .version(.claimed(.app(peer.app), VersionClaim(number: number, version: "1", name: Text("\(number)"))))
      ])
    }
    try life.ask(.report("2"), as: peer.session(2))
    return life
  }

  @Test func `beyond the limit the oldest claim of another version is dropped`() throws {
    var life = try life(of: alice, claims: Bound.claimsPerApp)
    #expect(life.refusal(of: .claim("x"), as: alice.session(1)).map(\.isLimit) == true)
    #expect(try life.ask(.claim("x"), as: alice.session(2)) == ["OK first"])
    #expect(try life.ask(.claim("x"), as: alice.session(2)) == ["OK again"])
    let claims = life.registry.versions[.app("user:1000")].claims
    #expect(claims.count == Bound.claimsPerApp)
    #expect(claims.first?.name == "2")
    #expect(claims.last?.name == "x")
    // A name that is claimed already is still answered.
    #expect(try life.ask(.claim("2"), as: alice.session(1)) == ["OK again"])
    #expect(try life.ask(.claim("1"), as: alice.session(1)) == ["OK first"])
  }

  @Test func `an uninstalled app leaves no claims behind`() throws {
    var life = try life(of: alice, claims: Bound.claimsPerApp)
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(Array(life.registry.versions.all) == [])
  }

  @Test func `the services of a user share one limit of claims`() throws {
    let (one, two) = (service("one", of: 1_000), service("two", of: 1_000))
    var life = try life(of: one, claims: Bound.claimsPerApp)
    try life.ask(.report("1"), as: two.session(3))
    #expect(
      life.refusal(of: .claim("x"), as: two.session(3))
        == .limit("the limit of version claims is reached for unit:two.service@1000"))
    try life.ask(.report("1"), as: bob.session(3))
    #expect(try life.ask(.claim("x"), as: bob.session(3)) == ["OK first"])
  }
}
