import IdentityCore
import Testing

/// Returns a `Life` with items in the own groups of two apps, and in a group that they share.
private func collection() throws(Refusal) -> Life {
  var life = Life.withThreeApps()
  try life.ask(.add("mail", "alice", "one", label: "home", attributes: ["color": "red", "size": "1"]), as: orgA)
  try life.ask(.add("mail", "bob", "two", label: "work", attributes: ["color": "blue"]), as: orgA)
  try life.ask(.add("web", "alice", "three", attributes: ["color": "red"]), as: orgA)
  try life.ask(.add("mail", "alice", "four", in: "org.shared", label: "home"), as: orgB)
  try life.ask(.add("mail", "alice", "five"), as: orgB)
  return life
}

/// Returns the secrets in an answer.
private func secrets(_ lines: [String]) -> [String] {
  lines.flatMap { $0.split(separator: " ") }.filter { $0.hasPrefix("data=") }.map { String($0.dropFirst(5)) }
}

/// Requests about the one item that meets conditions, and for the secrets of several.
struct ItemMatchTests {
  private static let several = Refusal.conflict(
    "several items match the conditions; add others, such as service= and account=")

  @Test(
    arguments: [
      (.readMatching("web"), "three"), (.readMatching(nil, "bob"), "two"), (.readMatching(label: "home"), "one"),
      (.readMatching(attributes: ["size": "1"]), "one"), (.readMatching(label: ""), "three"),
      (.readMatching("mail", "alice", label: "home"), "one"), (.readMatching(in: .named("org.shared")), "four"),
      (.readMatching(attributes: ["color": "red", "size": ""]), "three"),
    ] as [(RegistryCommand, String)])
  func `read returns the one item that matches`(command: RegistryCommand, secret: String) throws {
    var life = try collection()
    let lines = try life.ask(command, as: orgA)
    #expect(lines.count == 1 && secrets(lines) == [secret])
  }

  @Test(
    arguments: [
      .readMatching("mail"), .readMatching(attributes: ["color": "red"]), .updateMatching("mail", to: "l"),
      .updateMatching(attributes: ["color": "red"], secret: "new"),
    ] as [RegistryCommand])
  func `several items are a conflict, and stay as they are`(command: RegistryCommand) throws {
    let life = try collection()
    let before = life.registry
    #expect(life.refusal(of: command, as: orgA) == Self.several)
    #expect(life.registry == before)
  }

  @Test(
    arguments: [
      .readMatching("chat"), .readMatching("mail", "alice", label: "work"), .readMatching(in: .named("org.media")),
      .updateMatching("chat", to: "l"), .updateMatching(attributes: ["color": "green"], to: "l"),
      .findSecrets("chat"), .findSecrets("chat", in: .all),
    ] as [RegistryCommand])
  func `no item is not found`(command: RegistryCommand) throws {
    let life = try collection()
    #expect(life.refusal(of: command, as: orgB) == .notFound("no item matches the conditions"))
  }

  @Test func `update changes the one item that matches, and names it in the event`() throws {
    var life = try collection()
    let last = life.events.last?.sequence ?? 0
    #expect(try life.ask(.updateMatching(attributes: ["size": "1"], to: "new", secret: "six"), as: orgA) == ["OK"])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) item updated group=org.a service=mail account=alice > group org.a"
      ])
    #expect(secrets(try life.ask(.readMatching(label: "new"), as: orgA)) == ["six"])
  }

  @Test func `an item that no longer matches when the search has ended is not found`() throws {
    var life = try collection()
    let begun = try life.registry.search(.readMatching(label: "home"), for: orgA)
    var search = try #require(begun)
    var effort = Int.max
    let ended = search.command(&effort)
    let found = try #require(ended)
    // `Life.refusal(of:as:)` would begin the search anew.
    func refusal(for peer: Peer) -> Refusal? {
      do throws(Refusal) {
        _ = try life.registry.decide(found, life.context(peer))
        return nil
      } catch {
        return error
      }
    }
    try life.ask(.update("mail", "alice", label: "other"), as: orgA)
    #expect(refusal(for: orgA) == .notFound("no item matches the conditions"))
    try life.ask(.update("mail", "alice", label: "home"), as: orgA)
    #expect(refusal(for: orgA) == nil)
    // The right to the group may have gone, too.
    #expect(refusal(for: orgC)?.isDenied == true)
  }

  @Test(
    arguments: [
      (.findSecrets(), ["one", "two", "three"]), (.findSecrets("mail"), ["one", "two"]),
      (.findSecrets("mail", limit: 1), ["one"]), (.findSecrets(in: .named("org.shared")), ["four"]),
      (.findSecrets(in: .all), ["one", "two", "three", "four"]),
      (.findSecrets(in: .all, label: "home"), ["one", "four"]),
    ] as [(RegistryCommand, [String])])
  func `find returns the secrets of the app's groups`(command: RegistryCommand, expected: [String]) throws {
    var life = try collection()
    let lines = try life.ask(command, as: orgA)
    #expect(secrets(lines) == expected && lines.last == "OK \(expected.count)")
  }

  @Test func `a row with a secret has everything else that a row has`() throws {
    var life = try collection()
    let plain = try life.ask(.find("mail"), as: orgA)
    let secrets = try life.ask(.findSecrets("mail"), as: orgA)
    #expect(plain[0].hasPrefix("* service=mail account=alice group=org.a label=home "))
    #expect(secrets == ["* data=one \(plain[0].dropFirst(2))", "* data=two \(plain[1].dropFirst(2))", "OK 2"])
  }

  @Test func `an admin finds no secrets of other apps`() throws {
    var life = try collection()
    try life.ask(.add("own", "a", "mine"), as: root)
    #expect(secrets(try life.ask(.findSecrets(in: .all), as: root)) == ["mine"])
    #expect(life.refusal(of: .findSecrets(in: .named("org.a")), as: root)?.isDenied == true)
    #expect(life.refusal(of: .findSecrets(in: .named("org.none")), as: root)?.isDenied == true)
    #expect(secrets(try life.ask(.readMatching("web", in: .named("org.a")), as: root)) == ["three"])
  }

  @Test func `an answer has at most 64 secrets`() throws {
    var life = Life.withThreeApps()
    for number in 0..<64 { try life.ask(.add("s", Text("\(number)")), as: orgA) }
    #expect(try life.ask(.findSecrets(), as: orgA).count == 65)
    try life.ask(.add("s", "more"), as: orgA)
    #expect(
      life.refusal(of: .findSecrets(), as: orgA)
        == .limit(
          "more than 64 items match, and an answer has the secrets of at most as many; "
            + "add conditions, or limit= with a smaller number"))
    #expect(life.refusal(of: .findSecrets(limit: 65), as: orgA) != nil)
    #expect(try life.ask(.findSecrets(limit: 64), as: orgA).count == 65)
  }

  @Test func `the items of an answer with secrets have at most 256 KiB`() throws {
    var life = Life.withThreeApps()
    let key = "org.a".utf8.count + 2
    for (account, length) in [("a", 65_536), ("b", 65_536), ("c", 65_536), ("d", 65_536 - 4 * key)] {
      try life.ask(.add("s", Text(account), String(repeating: "x", count: length)), as: orgA)
    }
    #expect(try life.ask(.findSecrets(), as: orgA).count == 5)
    try life.ask(.update("s", "a", label: "l"), as: orgA)
    #expect(
      life.refusal(of: .findSecrets(), as: orgA)
        == .limit(
          "the items that match have more than 262144 bytes together, which is the most for an answer with secrets; "
            + "add conditions, or limit= with a smaller number"))
    #expect(try life.ask(.findSecrets(limit: 3), as: orgA).count == 4)
  }
}
