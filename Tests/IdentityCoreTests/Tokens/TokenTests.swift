import IdentityCore
import Testing

struct TokenTests {
  @Test func `token put creates, replaces or confirms a token`() throws {
    var life = Life()
    #expect(try life.ask(.token("fcm", "one"), as: alice) == ["OK created device=m.device"])
    #expect(try life.ask(.token("fcm", "one"), as: alice) == ["OK unchanged device=m.device"])
    #expect(try life.ask(.token("fcm", "two"), as: alice) == ["OK replaced device=m.device previous=one"])
    #expect(try life.ask(.token("fcm", "one"), as: alice) == ["OK replaced device=m.device previous=two"])
    // Tokens and providers are compared by their bytes.
    #expect(try life.ask(.token("fcm", "One"), as: alice) == ["OK replaced device=m.device previous=one"])
    #expect(try life.ask(.token("FCM", "One"), as: alice) == ["OK created device=m.device"])
    #expect(
      life.told() == [
        "1 app installed app=user:1000 vendor=user:1000 > vendor user:1000",
        "2 device created value=m.device cause=first-use > sharing", "3 devices added value=m.device > sharing",
        "4 token created app=user:1000 provider=fcm device=m.device fingerprint=#one > app user:1000",
        "5 token replaced app=user:1000 provider=fcm device=m.device fingerprint=#two > app user:1000",
        "6 token replaced app=user:1000 provider=fcm device=m.device fingerprint=#one > app user:1000",
        "7 token replaced app=user:1000 provider=fcm device=m.device fingerprint=#One > app user:1000",
        "8 token created app=user:1000 provider=FCM device=m.device fingerprint=#One > app user:1000",
      ])
  }

  @Test func `a token has the times of its creation, its change and its confirmation`() throws {
    var life = Life()
    let get = RegistryCommand.token(of: "p")
    try life.ask(.token("p", "one"), as: alice)
    let rest = "provider=p app=user:1000 device=m.device"
    #expect(try life.ask(get, as: alice) == ["OK one \(rest) state=valid created=t1 changed=t1 confirmed=t1"])
    try life.ask(.token("p", "one"), as: alice)
    #expect(try life.ask(get, as: alice) == ["OK one \(rest) state=valid created=t1 changed=t1 confirmed=t3"])
    try life.ask(.token("p", "two", environment: "e", topic: "t"), as: alice)
    let more = "\(rest) environment=e topic=t"
    #expect(try life.ask(get, as: alice) == ["OK two \(more) state=valid created=t1 changed=t5 confirmed=t5"])
    try life.ask(.invalidate("p", "two"), as: alice)
    #expect(try life.ask(get, as: alice) == ["OK two \(more) state=invalid created=t1 changed=t7 confirmed=t5"])
    try life.ask(.deleteToken("p"), as: alice)
    try life.ask(.token("p", "two"), as: alice)
    #expect(try life.ask(get, as: alice) == ["OK two \(rest) state=valid created=t10 changed=t10 confirmed=t10"])
  }

  @Test func `a dry run shows the token that a deletion would delete and whose it is, and deletes nothing`() throws {
    var life = Life()
    try life.ask(.token("fcm", "t"), as: alice)
    let times = "state=valid created=t1 changed=t1 confirmed=t1"
    let row = "* t provider=fcm app=user:1000 device=m.device \(times)"
    #expect(try life.ask(.deleteToken(provider: "fcm", app: nil, dryRun: true), as: alice) == [row, "OK 1"])
    #expect(
      try life.ask(.deleteToken(provider: "fcm", app: "user:1000", dryRun: true), as: root)
        == ["\(row) own=no", "OK 1"])
    #expect(life.refusal(of: .deleteToken(provider: "x", app: nil, dryRun: true), as: alice)?.isNotFound == true)
    #expect(life.registry.tokens.count == 1)
  }

  @Test(
    arguments: [
      ("e", nil), (nil, "t"), ("E", "t"), ("e", "T"), (nil, nil),
    ] as [(Text?, Text?)])
  func `another environment or topic replaces the token without a previous value`(
    environment: Text?, topic: Text?
  ) throws {
    var life = Life()
    try life.ask(.token("p", "one", environment: "e", topic: "t"), as: alice)
    #expect(
      try life.ask(.token("p", "one", environment: "e", topic: "t"), as: alice) == ["OK unchanged device=m.device"])
    #expect(
      try life.ask(.token("p", "one", environment: environment, topic: topic), as: alice)
        == ["OK replaced device=m.device"])
    let token = life.registry.tokens["user:1000", "p"]
    #expect(token?.environment == environment && token?.topic == topic)
    #expect(token?.changed == Timestamp(milliseconds: 3))
    #expect(
      life.told(of: .token).last == "replaced app=user:1000 provider=p device=m.device fingerprint=#one")
  }

  @Test func `a confirmation changes the time and causes no event`() throws {
    var life = Life()
    try life.ask(.token("p", "one", environment: "e"), as: alice)
    let last = life.registry.lastEvent
    var token = try #require(life.registry.tokens["user:1000", "p"])
    try life.ask(.token("p", "one", environment: "e"), as: alice)
    token = token.with(confirmed: Timestamp(milliseconds: 2))
    #expect(Array(life.registry.tokens.all) == [token])
    #expect(life.registry.lastEvent == last)
  }

  // MARK: Feedback

  @Test func `only the current token can be marked invalid`() throws {
    var life = Life()
    #expect(try life.ask(.invalidate("p", "one"), as: alice) == ["OK unchanged"])
    #expect(life.registry == Registry())
    try life.ask(.token("p", "one"), as: alice)
    try life.ask(.token("p", "two"), as: alice)
    let before = life.registry
    for (provider, value) in [("p", "one"), ("q", "two"), ("p", "TWO"), ("p", "two ")] as [(Text, Text)] {
      #expect(try life.ask(.invalidate(provider, value), as: alice) == ["OK unchanged"])
    }
    #expect(life.registry == before)
    #expect(try life.ask(.invalidate("p", "two"), as: alice) == ["OK invalidated"])
    #expect(
      life.told(of: .token).last == "invalidated app=user:1000 provider=p device=m.device fingerprint=#two")
    #expect(life.registry.tokens["user:1000", "p"]?.isValid == false)
    // A second mark gets the same answer and changes nothing.
    let after = life.registry
    #expect(try life.ask(.invalidate("p", "two"), as: alice) == ["OK invalidated"])
    #expect(life.registry == after)
  }

  @Test func `an invalid token is valid again once its app puts it again`() throws {
    var life = Life()
    try life.ask(.token("p", "one"), as: alice)
    try life.ask(.invalidate("p", "one"), as: alice)
    #expect(try life.ask(.token("p", "one"), as: alice) == ["OK replaced device=m.device"])
    #expect(life.registry.tokens["user:1000", "p"]?.isValid == true)
    #expect(life.registry.tokens["user:1000", "p"]?.changed == Timestamp(milliseconds: 3))
    #expect(life.told(of: .token).map { $0.prefix(8) } == ["created ", "invalida", "replaced"])
    #expect(try life.ask(.token("p", "one"), as: alice) == ["OK unchanged device=m.device"])
    try life.ask(.invalidate("p", "one"), as: alice)
    #expect(try life.ask(.token("p", "two"), as: alice) == ["OK replaced device=m.device previous=one"])
  }

  // MARK: Lists

  @Test func `token list is in the order of creation, and stale= lists unconfirmed tokens`() throws {
    var life = Life()
    #expect(try life.ask(.tokens(), as: alice) == ["OK 0"])
    for (now, provider) in [(0, "z"), (1_000, "a"), (2_000, "m")] as [(Int64, Text)] {
      life.now = now
      try life.ask(.token(provider, "t"), as: alice)
    }
    func listed(_ stale: Int64?, at now: Int64) throws -> [String] {
      life.now = now - 1
      return try life.ask(.tokens(stale: stale), as: alice).map { line in
        line.split(separator: " ").dropFirst(2).first.map { "\($0.dropFirst("provider=".count))" } ?? line
      }
    }
    #expect(try listed(nil, at: 2_001) == ["z", "a", "m", "OK 3"])
    #expect(try listed(0, at: 2_001) == ["z", "a", "m", "OK 3"])
    #expect(try listed(1, at: 2_000) == ["z", "OK 1"])
    #expect(try listed(1, at: 2_001) == ["z", "a", "OK 2"])
    #expect(try listed(2, at: 2_001) == ["z", "OK 1"])
    #expect(try listed(3, at: 3_000) == ["OK 0"])
    #expect(try listed(3, at: 3_001) == ["z", "OK 1"])
    #expect(try listed(3_155_760_000, at: 5_000) == ["OK 0"])
    // A replaced token keeps its place. A confirmed token is no longer stale.
    life.now = 5_000
    try life.ask(.token("a", "u"), as: alice)
    #expect(try listed(nil, at: 5_002) == ["z", "a", "m", "OK 3"])
    #expect(try listed(3, at: 5_002) == ["z", "m", "OK 2"])
    // A token that was deleted and put again comes last.
    try life.ask(.deleteToken("z"), as: alice)
    try life.ask(.token("z", "t"), as: alice)
    #expect(try listed(nil, at: 5_005) == ["a", "m", "z", "OK 3"])
  }

  @Test func `a deleted token is not found`() throws {
    var life = Life()
    let missing = Refusal.notFound("user:1000 has no token of this provider")
    for command in [.deleteToken("p"), .token(of: "p")] as [RegistryCommand] {
      #expect(life.refusal(of: command, as: alice) == missing)
    }
    try life.ask(.token("p", "one"), as: alice)
    try life.ask(.token("q", "one"), as: alice)
    #expect(try life.ask(.deleteToken("p"), as: alice) == ["OK"])
    #expect(life.told(of: .token).last == "deleted app=user:1000 provider=p device=m.device fingerprint=#one")
    for command in [.deleteToken("p"), .token(of: "p")] as [RegistryCommand] {
      #expect(life.refusal(of: command, as: alice) == missing)
    }
    #expect(life.registry.tokens.all.map(\.provider) == ["q"])
    #expect(life.registry.tokens.count == 1)
    #expect(try life.ask(.token("p", "one"), as: alice) == ["OK created device=m.device"])
  }

  // MARK: Bounds

  @Test func `the number of providers is limited per app, and for a user's services together`() throws {
    var life = Life()
    let (one, two) = (service("one", of: 1_000), service("two", of: 1_000))
    for number in 1...Bound.tokensPerApp {
      try life.ask(.token(Text("p\(number)"), "t"), as: number < 10 ? two : one)
      try life.ask(.token(Text("p\(number)"), "t"), as: bob)
    }
    for (peer, holder) in [(one, "uid 1000"), (two, "uid 1000"), (bob, "uid 1001")] {
      #expect(
        life.refusal(of: .token("x", "t"), as: peer)
          == .limit("\(holder) has 256 tokens, which is the limit; delete a token first"))
    }
    #expect(life.refusal(of: .token("x", "t"), as: service("three", of: 1_000)).map(\.isLimit) == true)
    // A present token may be replaced, and a deleted one makes room.
    #expect(try life.ask(.token("p256", "u"), as: bob) == ["OK replaced device=m.device previous=t"])
    try life.ask(.deleteToken("p1"), as: two)
    #expect(try life.ask(.token("x", "t"), as: one) == ["OK created device=m.device"])
    try life.ask(.deleteToken("x"), as: one)
    #expect(life.refusal(of: .token("x", "t"), as: alice) == nil)
  }

  @Test func `the number of tokens of all apps is limited`() throws {
    var life = Life()
    try life.ask(.token("p", "t"), as: alice)
    let device = try #require(life.registry[.device]?.value)
    for number in 2...Int64(Bound.tokens) {
      let token = Token(
        number: number, app: Text("org.\(number / 200)"), provider: Text("\(number)"), value: "t", environment: nil,
        topic: nil, device: device, isValid: true, created: Timestamp(milliseconds: 0),
        changed: Timestamp(milliseconds: 0), confirmed: Timestamp(milliseconds: 0), fingerprint: "f")
      life.registry.apply(.tokenStored(token, .created))
    }
    #expect(life.registry.tokens.count == Bound.tokens)
    #expect(
      life.refusal(of: .token("q", "t"), as: alice)
        == .limit("all apps together have reached the limit of tokens; delete tokens first"))
    #expect(life.refusal(of: .token("p", "u"), as: alice) == nil)
  }

  @Test func `a refused put changes nothing`() throws {
    var life = Life()
    life.machine = nil
    let context = Context(
      peer: alice, in: life.surroundings, random: { () throws(Refusal) in throw .broken("no bytes") },
      machine: { (_) throws(Refusal) in nil }, digest: { $0 }, fingerprint: { $0 })
    #expect(throws: Refusal.broken("no bytes")) { try life.registry.decide(.token("p", "t"), context) }
    #expect(try life.ask(.token("p", "t"), as: alice) == ["OK created device=r1"])
  }
}
