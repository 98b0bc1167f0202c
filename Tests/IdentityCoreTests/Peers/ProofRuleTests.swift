import IdentityCore
import Testing

/// Proofs and their keys, without cryptography: a key pair is a name.
struct ProofRuleTests {
  private static func pair(_ name: Text) -> ProofKeyPair { ProofKeyPair(identifier: name, x: "x", y: "y", sealed: [1]) }

  private static func request(_ app: Text? = nil) -> RegistryCommand {
    .prove(ProofRequest(audience: "vault", lifetime: 300, nonce: nil, app: app))
  }

  /// Asks for a proof, with a key pair in case one is needed, and returns the statement.
  private static func statement(
    _ life: inout Life, _ peer: Peer, of app: Text? = nil, made name: Text = "unused"
  ) throws(Refusal) -> ProofStatement? {
    life.now += 1
    let command = request(app)
    let made = life.registry.needsProofKey(command, at: life.surroundings.now()) ? command.with(pair(name)) : command
    let decision = try life.registry.decide(made ?? command, life.context(peer))
    life.take(decision.changes)
    return decision.reply.proof
  }

  private static func rotate(_ life: inout Life, _ name: Text, revokes: Bool = false) throws(Refusal) {
    life.now += 1
    let command = RegistryCommand.rotateProofKey(revokes: revokes)
    let decision = try life.registry.decide(command.with(pair(name)) ?? command, life.context(root))
    life.take(decision.changes)
  }

  /// The names of the published keys.
  private static func published(_ life: Life) -> [String] {
    life.registry.publishedProofKeys(at: life.surroundings.now()).map { "\($0.pair.identifier)" }
  }

  private static func events(_ life: Life) -> [String] {
    life.events.filter { $0.topic == .proof }.map { "\($0.name) \($0.attributes.first?.value ?? "")" }
  }

  @Test func `the first proof makes the identifiers and the key, and the second one nothing`() throws {
    var life = Life()
    try life.start("m", "h")
    #expect(try life.registry.answer(Self.request(), for: alice, in: life.surroundings) == nil)
    let first = try #require(try Self.statement(&life, alice, made: "a"))
    #expect(first.key.pair.identifier == "a" && first.asker == nil && first.suspicion == nil)
    #expect(first.deviceIdentifier.value == life.registry[.device]?.value)
    #expect(first.installationIdentifier == life.registry[.installation(alice.app)]?.value)
    let last = life.registry.lastEvent
    let again = try #require(try life.registry.answer(Self.request(), for: alice, in: life.surroundings)?.proof)
    #expect(again.key == first.key && life.registry.lastEvent == last)
    let other = try #require(try Self.statement(&life, bob))
    #expect(other.key == first.key && other.installationIdentifier != first.installationIdentifier)
    #expect(Self.events(life) == ["key-created a"])
  }

  @Test func `a rotated key signs until the overlap is over, and stays until its last proof expires`() throws {
    var life = Life()
    try life.start("m", "h")
    _ = try Self.statement(&life, alice, made: "a")
    try Self.rotate(&life, "b")
    #expect(Self.published(life) == ["a", "b"])
    #expect(throws: Refusal.self) { try Self.rotate(&life, "c") }
    let start = life.now
    for (seconds, signer, keys) in [
      (3_598, "a", ["a", "b"]), (3_600, "b", ["a", "b"]), (7_199, "b", ["a", "b"]), (7_200, "b", ["b"]),
      // The clock was set back.
      (-100_000, "a", ["a", "b"]),
    ] as [(Int64, Text, [String])] {
      life.now = start + seconds * 1_000
      #expect(try Self.statement(&life, alice)?.key.pair.identifier == signer, "\(seconds)")
      #expect(Self.published(life) == keys, "\(seconds)")
    }
    life.now = start + 8_000_000
    try Self.rotate(&life, "c")
    #expect(life.registry.proofKeys.map(\.pair.identifier) == ["b", "c"], "the first key has ended")
    #expect(Self.events(life) == ["key-created a", "key-rotated b", "key-rotated c"])
  }

  @Test func `a revoked key leaves the set at once`() throws {
    var life = Life()
    try life.start("m", "h")
    _ = try Self.statement(&life, alice, made: "a")
    try Self.rotate(&life, "b")
    try Self.rotate(&life, "c", revokes: true)
    #expect(Self.published(life) == ["c"])
    #expect(try Self.statement(&life, alice)?.key.pair.identifier == "c")
  }

  @Test func `the key of another machine is locked until that machine is back`() throws {
    var life = Life()
    try life.start("m", "h")
    _ = try Self.statement(&life, alice, made: "a")
    try life.start("n", "h")
    #expect(Self.published(life) == [])
    let copy = try #require(try Self.statement(&life, alice, made: "b"))
    #expect(copy.key.pair.identifier == "b")
    try life.start("m", "h")
    #expect(try Self.statement(&life, alice)?.key.pair.identifier == "a")
    try life.start("n", "h")
    #expect(try Self.statement(&life, alice)?.key.pair.identifier == "b")
    try life.ask(.acknowledgeMachine(dryRun: false), as: root)
    #expect(life.registry.proofKeys.map(\.pair.identifier) == ["b"])
    let events = ["key-created a", "key-locked a", "key-created b", "key-locked b", "key-locked a", "key-lost a"]
    #expect(Self.events(life) == events)
  }

  @Test func `a renewal and the seal end the key`() throws {
    for end in [RegistryCommand.renew(.device, app: nil, dryRun: false), .seal(dryRun: false)] {
      var life = Life()
      try life.start("m", "h")
      _ = try Self.statement(&life, alice, made: "a")
      try Self.rotate(&life, "b")
      try life.ask(end, as: root)
      #expect(life.registry.proofKeys == [])
      #expect(Self.events(life).suffix(2) == ["key-lost a", "key-lost b"])
    }
  }

  @Test func `an app with a device identifier of its own needs the consent of its manifest`() throws {
    for (binding, consent, isProven) in [
      (Manifest.DeviceBinding.shared, Manifest.ProofConsent.unlinkable, true), (.app, .unlinkable, false),
      (.vendor, .unlinkable, false), (.app, .linkable, true), (.vendor, .linkable, true),
    ] {
      var life = Life()
      try life.start("m", "h")
      var manifest = Manifest(vendor: "com.example")
      manifest.unit = "notes.service"
      (manifest.deviceBinding, manifest.proofConsent) = (binding, consent)
      life.install([Text("com.example.notes"): manifest])
      let peer = Peer(
        app: "com.example.notes", userID: 0, groupID: 0, processID: 7, place: PeerPlace(unit: "notes.service"),
        session: nil, isAdmin: false)
      _ = try Self.statement(&life, alice, made: "a")
      let statement = try? Self.statement(&life, peer)
      #expect((statement != nil) == isProven, "\(binding) \(consent)")
      #expect(statement.map { $0.deviceIdentifier.scope == .device } ?? true)
      #expect((life.refusal(of: .proofKeys, as: peer) == nil) == isProven, "\(binding) \(consent)")
      // Another party must not link the app to the others in any case.
      #expect((life.refusal(of: Self.request("com.example.notes"), as: root) == nil) == (binding == .shared))
    }
  }

  @Test func `only an admin or an app with the right may ask for others, and is named`() throws {
    var life = Life()
    try life.start("m", "h")
    var manifest = Manifest(vendor: "com.example")
    manifest.unit = "proxy.service"
    manifest.rights = [.prove]
    life.install([Text("com.example.proxy"): manifest])
    let proxy = Peer(
      app: "com.example.proxy", userID: 0, groupID: 0, processID: 7, place: PeerPlace(unit: "proxy.service"),
      session: nil, isAdmin: false)
    _ = try Self.statement(&life, alice, made: "a")
    #expect(try Self.statement(&life, proxy, of: alice.app)?.asker == "com.example.proxy")
    #expect(try Self.statement(&life, root, of: alice.app)?.asker == "uid:0")
    #expect(try Self.statement(&life, root, of: alice.app)?.app == alice.app)
    guard case .denied? = life.refusal(of: Self.request(alice.app), as: bob) else {
      Issue.record("bob has no right")
      return
    }
    guard case .notFound? = life.refusal(of: Self.request("user:77"), as: root) else {
      Issue.record("no such app is installed")
      return
    }
  }

  @Test func `no more keys are kept than can count again`() throws {
    var life = Life()
    try life.start("m", "h")
    for number in 0..<Bound.proofKeys + 2 {
      try life.start(Text("m\(number)"), "h")
      _ = try Self.statement(&life, alice, made: Text("\(number)"))
    }
    #expect(life.registry.proofKeys.count == Bound.proofKeys)
  }

  @Test func `the issuer has the device identifier in place of the specifier`() throws {
    var settings = ProofSettings()
    let device = try #require(UUID("5f0f1e5a-4f5c-4b8e-9a56-0c1d2e3f4a5b"))
    #expect(settings.issuer(of: device) == "urn:uuid:\(device)")
    settings.issuer = "https://id.example.org/%d/%%d%"
    #expect(settings.issuer(of: device) == "https://id.example.org/\(device)/%\(device)%")
    settings.owner = 1_000
    #expect(settings.issuer(of: device) == "urn:uuid:\(device):user:1000")
  }
}
