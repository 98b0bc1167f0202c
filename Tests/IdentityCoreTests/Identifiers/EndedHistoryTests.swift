import IdentityCore
import Testing

/// The number of ended identifiers that the history keeps of one level and owner.
struct EndedHistoryTests {
  private static let most = Bound.endedIdentifiers

  /// Returns the values of a history, oldest first.
  private func values(_ life: Life, _ level: Level, _ app: Text? = nil) throws -> [String] {
    try life.history(level, app).dropLast().map { String($0.split(separator: " ")[1]) }
  }

  @Test func `renewals keep the newest ended identifiers, and drop the oldest in the same transaction`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.get(.installation, app: nil), as: bob)
    var issued: [UUID] = []
    for round in 1...Self.most + 50 {
      issued.append(try #require(life.registry[.installation("user:1000")]?.value))
      let renewal = try life.registry.decide(
        .renew(.installation, app: "user:1000", dryRun: false), life.context(root))
      #expect(renewal.changes.count == (round > Self.most ? 2 : 1), "round \(round)")
      try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root)
    }
    #expect(try values(life, .installation, "user:1000").count == Self.most + 1)
    #expect(life.refusal(of: .resolve(issued[49]), as: root)?.isNotFound == true)
    #expect(try life.ask(.resolve(issued[50]), as: root)[0].hasPrefix("OK installation current=no now="))
    // The history of another owner is its own.
    #expect(try values(life, .installation, "user:1001").count == 1)
    let before = life.registry.history
    life.restart()
    #expect(life.registry.history == before)
  }

  @Test func `a value from the machine-id stays in the history, so that it is never derived again`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let derived = try #require(life.registry[.device]?.value)
    for _ in 1...Self.most + 10 { try life.ask(.renew(.device, app: nil, dryRun: false), as: root) }
    let values = try values(life, .device)
    #expect(values.count == Self.most + 1)
    #expect(values.first == "m.device")
    #expect(try life.ask(.resolve(derived), as: root)[0].hasPrefix("OK device current=no"))
  }

  @Test func `a value that came into force repeatedly is resolved and dropped like any other`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    for round in 0..<Self.most + 20 {
      try life.ask(
        .migrate(.installation, given(UInt64(1 + round % 2)), app: "user:1000", commits: true, forces: true), as: root)
    }
    #expect(try values(life, .installation, "user:1000").count == Self.most + 1)
    #expect(try life.ask(.resolve(given(2)), as: root)[0].hasPrefix("OK installation current=yes"))
    #expect(try life.ask(.resolve(given(1)), as: root)[0].hasPrefix("OK installation current=no"))
    for _ in 0..<Self.most { try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root) }
    #expect(try life.ask(.resolve(given(2)), as: root)[0].hasPrefix("OK installation current=no"))
    for _ in 0..<2 { try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root) }
    for number: UInt64 in 1...2 { #expect(life.refusal(of: .resolve(given(number)), as: root)?.isNotFound == true) }
    let before = life.registry.history
    life.restart()
    #expect(life.registry.history == before)
  }

  /// Adds ended identifiers to a history that has no bound, as a release before the bound did.
  private func crowd(_ life: inout Life, _ count: Int) {
    life.take(
      (1...count).map { number in
        .identifierMade(
          Identifier(
            scope: .installation("user:1000"), value: given(UInt64(number)),
            created: Timestamp(milliseconds: Int64(number)),
            origin: .random, cause: .renewed, author: nil))
      })
  }

  @Test func `a longer history of an earlier release is trimmed in bounded pieces`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    crowd(&life, Self.most + 1_000)
    let renewal = try life.registry.decide(.renew(.installation, app: "user:1000", dryRun: false), life.context(root))
    #expect(renewal.changes.count == 1 + Bound.endedTogether)
    var pieces = 0
    while !life.registry.surplusRemoval.isEmpty {
      #expect(life.registry.surplusRemoval.count <= Bound.endedTogether)
      life.take(life.registry.surplusRemoval)
      pieces += 1
    }
    #expect(pieces == (1_000 + Bound.endedTogether - 1) / Bound.endedTogether)
    let values = try values(life, .installation, "user:1000")
    #expect(values.count == Self.most + 1)
    #expect(life.registry[.installation("user:1000")]?.value == given(UInt64(Self.most + 1_000)))
  }

  @Test func `a restored backup adds the newest of its identifiers, within the bound`() throws {
    var source = Life()
    try source.ask(.get(.installation, app: nil), as: alice)
    crowd(&source, Self.most + 1_000)
    let backup = source.backup()
    var life = Life()
    let changes = try life.restoration(backup).changes
    #expect(changes.count < Self.most + 10)
    try life.restore(backup)
    let values = life.registry.history.map(\.value)
    #expect(life.registry.count(of: .installation("user:1000")) <= Self.most + 1)
    #expect(life.registry[.installation("user:1000")]?.value == given(UInt64(Self.most + 1_000)))
    #expect(values.contains(given(1_050)) && !values.contains(given(900)))
    #expect(try life.restoration(backup).changes == [], "a second restore changes nothing")
    try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root)
    #expect(life.registry.count(of: .installation("user:1000")) == Self.most + 1)
  }
}
