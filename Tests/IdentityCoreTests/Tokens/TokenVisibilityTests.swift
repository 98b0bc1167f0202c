import IdentityCore
import Testing

struct TokenVisibilityTests {
  /// Returns a `Life` with two apps of one vendor, one of another vendor and one without a manifest, each with a token.
  private func life() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    for peer in [orgA, orgB, orgC, alice] { try life.ask(.token("p", Text("secret-of-\(peer.app)")), as: peer) }
    return life
  }

  @Test(arguments: [orgA, orgB, orgC, alice]) func `an app sees only its own tokens`(peer: Peer) throws {
    var life = try life()
    let answer = try life.ask(.tokens(), as: peer)
    #expect(answer.count == 2)
    #expect(answer[0].hasPrefix("* secret-of-\(peer.app) provider=p app=\(peer.app) device=m.device state=valid "))
    #expect(try life.ask(.tokens(of: .app(named: peer.app)), as: peer) == answer)
    #expect(try life.ask(.token(of: "p"), as: peer)[0].hasPrefix("OK secret-of-\(peer.app) "))
    #expect(
      life.refusal(of: .tokens(of: .all), as: peer)
        == .denied(app: peer.app, userID: peer.userID, grant: "admin rights or Rights=fleet in its manifest"))
  }

  @Test func `an admin sees all tokens or those of a named app, and by default only its own`() throws {
    var life = try life()
    #expect(
      try life.ask(.tokens(of: .all), as: root).map { $0.split(separator: " ")[1] } == [
        "secret-of-org.a", "secret-of-org.b", "secret-of-org.c", "secret-of-user:1000", "4",
      ])
    #expect(try life.ask(.tokens(of: .app(named: "org.b")), as: root).count == 2)
    #expect(try life.ask(.tokens(), as: root) == ["OK 0"])
    life.now = 60_000
    #expect(try life.ask(.tokens(of: .all, stale: 59), as: root).last == "OK 4")
    #expect(try life.ask(.tokens(of: .all, stale: 61), as: root) == ["OK 0"])
  }

  @Test func `a page has as many apps as have a number of tokens, in the order of their IDs`() throws {
    var life = try life()
    var seen: [Substring] = []
    var last: Text?
    while case let rows = try life.ask(.tokens(of: .page(after: last, limit: 2)), as: root).dropLast(), !rows.isEmpty {
      #expect(rows.count == 2)
      seen += rows.map { $0.split(separator: " ")[1] }
      last = Text(String(seen[seen.count - 1].dropFirst("secret-of-".count)))
    }
    #expect(seen == ["secret-of-org.a", "secret-of-org.b", "secret-of-org.c", "secret-of-user:1000"])
    // An app's tokens stay together.
    try life.ask(.token("q", "another"), as: orgA)
    #expect(try life.ask(.tokens(of: .page(after: nil, limit: 1)), as: root).last == "OK 2")
    #expect(
      life.refusal(of: .tokens(of: .page(after: nil, limit: 1)), as: orgA)
        == .denied(app: orgA.app, userID: orgA.userID, grant: "admin rights or Rights=fleet in its manifest"))
  }

  @Test func `an admin can use all token verbs for a named app`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    #expect(
      try life.ask(.token("p", "new", of: "org.a"), as: root)
        == ["OK replaced device=m.device previous=secret-of-org.a"])
    #expect(try life.ask(.token(of: "p", of: "org.a"), as: root)[0].hasPrefix("OK new provider=p app=org.a "))
    #expect(try life.ask(.invalidate("p", "new", of: "org.a"), as: root) == ["OK invalidated"])
    // Without `app=`, the request is about the admin's own app.
    #expect(try life.ask(.invalidate("p", "secret-of-org.b"), as: root) == ["OK unchanged"])
    #expect(try life.ask(.deleteToken("p", of: "org.a"), as: root) == ["OK"])
    #expect(life.events.filter { $0.sequence > last }.map(\.audience) == [.app("org.a"), .app("org.a"), .app("org.a")])
    #expect(life.registry.tokens.all.map(\.app) == ["org.b", "org.c", "user:1000"])
  }

  @Test func `token events go only to the app and to admins`() throws {
    let life = try life()
    for event in life.events where event.topic == .token {
      for (peer, app) in [(orgA, "org.a"), (orgB, "org.b"), (orgC, "org.c"), (alice, "user:1000")] as [(Peer, Text)] {
        #expect(life.registry.may(peer, see: event.audience) == (event.audience == .app(app)))
      }
      #expect(life.registry.may(root, see: event.audience))
    }
    #expect(life.events.filter { $0.topic == .token }.count == 4)
  }

  @Test func `an app with the right fleet hears of the tokens and versions of all apps, and of nothing else`() throws {
    var life = Life()
    var manifest = Manifest("org.fleet")
    manifest.rights = [.fleet]
    life.install(["org.a": Manifest("org.v"), "org.fleet": manifest])
    let fleet = peer("org.fleet")
    try life.ask(.token("p", "secret"), as: orgA)
    try life.ask(.report("1"), as: orgA.session(1))
    try life.ask(.get(.installation, app: nil), as: orgA)
    try life.ask(.put("s", "a"), as: orgA)
    func heard() -> [Topic] {
      life.events.filter { event in
        event.audience != .sharing && life.registry.may(fleet, see: event.audience, of: event.topic)
      }.map(\.topic)
    }
    #expect(heard() == [.app, .token, .version], "the first is its own installation")
    let rows = life.lines(life.registry.snapshot(of: [.token, .version, .item, .installation], for: fleet))
    #expect(
      rows == [
        "* version of=app app=org.a version=1", "* token app=org.a provider=p device=m.device fingerprint=#secret",
      ])
    manifest.rights = []
    life.install(["org.a": Manifest("org.v"), "org.fleet": manifest])
    #expect(heard() == [.app])
  }

  @Test func `no event contains a token`() throws {
    var life = Life()
    let secret = "do-not-tell"
    func ask(_ command: RegistryCommand) throws(Refusal) {
      life.now += 1
      let value = given(UInt64(life.now))
      let context = Context(
        peer: alice, in: life.surroundings, random: { () throws(Refusal) in value },
        machine: { (_) throws(Refusal) in nil }, digest: { $0 }, fingerprint: { _ in "f" })
      life.take(try life.registry.decide(command, context).changes)
    }
    try ask(.token("p", "first"))
    try ask(.token("p", Text(secret), environment: Text("e-\(secret)"), topic: Text("t-\(secret)")))
    try ask(.token("p", Text(secret)))
    try ask(.invalidate("p", Text(secret)))
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(
      life.lines(life.registry.snapshot(of: Set(Topic.allCases), for: root)).contains { $0.contains(secret) } == false)
    try ask(.deleteToken("p"))
    #expect(
      life.told(of: .token).map { $0.split(separator: " ")[0] } == [
        "created", "replaced", "replaced", "invalidated", "rehomed", "deleted",
      ])
    #expect(life.told(of: .token).allSatisfy { $0.hasSuffix(" fingerprint=f") })
    #expect(life.told().contains { $0.contains(secret) || $0.contains("first ") } == false)
  }

  @Test func `a snapshot has a row for each visible token, without the token itself`() throws {
    var life = try life()
    func snapshot(_ peer: Peer, _ topics: Set<Topic> = [.token]) -> [String] {
      life.lines(life.registry.snapshot(of: topics, for: peer))
    }
    func row(_ app: String) -> String {
      "* token app=\(app) provider=p device=m.device fingerprint=#secret-of-\(app)"
    }
    for app in ["org.a", "org.b", "org.c"] { #expect(snapshot(peer(Text(app))) == [row(app)]) }
    #expect(snapshot(alice) == [row("user:1000")])
    #expect(snapshot(bob) == [])
    #expect(snapshot(root) == ["org.a", "org.b", "org.c", "user:1000"].map(row))
    #expect(snapshot(root, [.version, .device]).contains { $0.contains("token") } == false)
    try life.ask(.deleteToken("p"), as: orgA)
    #expect(snapshot(orgA) == [])
    life.install([:])
    #expect(snapshot(root) == [row("user:1000")])
    #expect(snapshot(orgB) == [])
  }
}
