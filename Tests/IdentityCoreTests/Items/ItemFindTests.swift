import IdentityCore
import Testing

/// Returns a `Life` with items in the own groups of two apps, and in groups that they share with other apps.
private func collection() throws(Refusal) -> Life {
  var life = Life.withThreeApps()
  try life.ask(.add("mail", "alice", label: "home", attributes: ["color": "red", "size": "1"]), as: orgA)
  try life.ask(.add("mail", "bob", label: "work", attributes: ["color": "blue"]), as: orgA)
  try life.ask(.add("web", "alice", attributes: ["color": "red"]), as: orgA)
  try life.ask(.add("web", "carol", label: "home"), as: orgA)
  try life.ask(.add("mail", "alice", in: "org.shared", label: "home"), as: orgB)
  try life.ask(.add("mail", "alice", in: "org.media"), as: orgB)
  try life.ask(.add("mail", "alice"), as: orgB)
  return life
}

/// Returns the items found, as `group/service/account`.
private func keys(_ rows: [String]) -> [String] {
  rows.filter { $0.hasPrefix("*") }.map { row in
    let words = row.split(separator: " ").filter { $0.contains("=") }.map { $0.split(separator: "=")[1] }
    return "\(words[2])/\(words[0])/\(words[1])"
  }
}

struct ItemFindTests {
  @Test(
    arguments: [
      // The query, and the items found in the app's own group.
      (.find(), ["mail/alice", "mail/bob", "web/alice", "web/carol"]),
      (.find("mail"), ["mail/alice", "mail/bob"]), (.find(nil, "alice"), ["mail/alice", "web/alice"]),
      (.find("web", "alice"), ["web/alice"]), (.find(label: "home"), ["mail/alice", "web/carol"]),
      (.find(label: ""), ["web/alice"]), (.find("mail", label: "home"), ["mail/alice"]),
      (.find("mail", "alice", label: "home"), ["mail/alice"]),
      (.find(attributes: ["color": "red"]), ["mail/alice", "web/alice"]),
      (.find(attributes: ["color": "red", "size": "1"]), ["mail/alice"]),
      (.find(attributes: ["color": "red", "size": ""]), ["web/alice"]),
      (.find(attributes: ["color": ""]), ["web/carol"]),
      (.find(attributes: ["shape": ""]), ["mail/alice", "mail/bob", "web/alice", "web/carol"]),
      (.find("web", "carol", attributes: ["color": ""]), ["web/carol"]),
      (.find(in: .named("org.a"), label: "work"), ["mail/bob"]),
    ] as [(RegistryCommand, [String])])
  func `find returns the items that meet all conditions`(command: RegistryCommand, expected: [String]) throws {
    var life = try collection()
    let rows = try life.ask(command, as: orgA)
    #expect(keys(rows) == expected.map { "org.a/\($0)" })
    #expect(rows.last == "OK \(expected.count)")
  }

  @Test(
    arguments: [
      .find("Mail"), .find("mail", "carol"), .find("mail", "alice", label: "work"),
      .find("mail", "alice", label: ""), .find("mail", "alice", attributes: ["color": ""]),
      .find(attributes: ["color": "green"]), .find(attributes: ["color": "re"]), .find(label: "ho"),
      .find("mail", "bob", in: .named("org.shared")), .find("nothing", in: .all),
    ] as [RegistryCommand])
  func `find without a match is not found`(command: RegistryCommand) throws {
    #expect(try collection().refusal(of: command, as: orgA) == .notFound("no item matches the conditions"))
  }

  @Test func `a row of find has everything but the secret`() throws {
    var life = try collection()
    #expect(
      try life.ask(.find("mail", "alice"), as: orgA) == [
        "* service=mail account=alice group=org.a label=home attr.color=red attr.size=1 created=t2 modified=t2", "OK 1",
      ])
    #expect(try life.registry.answer(.find("mail"), for: orgA)?.secrets.isEmpty == true)
  }

  @Test(arguments: [(1, 1), (2, 2), (4, 4), (5, 4), (.max, 4), (nil, 4)] as [(Int?, Int)])
  func `limit= returns only the first items`(limit: Int?, count: Int) throws {
    var life = try collection()
    let rows = try life.ask(.find(limit: limit), as: orgA)
    let all = ["org.a/mail/alice", "org.a/mail/bob", "org.a/web/alice", "org.a/web/carol"]
    #expect(keys(rows) == Array(all.prefix(count)))
    #expect(rows.last == "OK \(count)")
  }

  @Test func `find searches the app's own group by default, and with * all groups it may use`() throws {
    var life = try collection()
    #expect(keys(try life.ask(.find("mail", "alice"), as: orgB)) == ["org.b/mail/alice"])
    #expect(keys(try life.ask(.find(in: .named("org.media")), as: orgB)) == ["org.media/mail/alice"])
    let all = ["org.b/mail/alice", "org.media/mail/alice", "org.shared/mail/alice"]
    #expect(keys(try life.ask(.find(in: .all), as: orgB)) == all)
    #expect(keys(try life.ask(.find("mail", "alice", in: .all), as: orgB)) == all)
    #expect(keys(try life.ask(.find(in: .all, limit: 2), as: orgB)) == Array(all.prefix(2)))
    #expect(keys(try life.ask(.find(in: .all), as: orgC)) == ["org.media/mail/alice"])
    #expect(life.refusal(of: .find(in: .all), as: alice)?.isNotFound == true)
  }

  @Test func `an admin finds all items with *, and only its own without`() throws {
    var life = try collection()
    #expect(keys(try life.ask(.find(in: .all), as: root)) == life.itemKeys.sorted())
    #expect(keys(try life.ask(.find("mail", "alice", in: .all), as: root)).count == 4)
    #expect(keys(try life.ask(.find("mail", in: .all, label: "home"), as: root)).count == 2)
    #expect(life.refusal(of: .find(), as: root)?.isNotFound == true)
  }

  @Test func `a group that a manifest lists twice shows no item twice`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", groups: ["org.a", "org.g", "org.g"])])
    try life.ask(.add("s"), as: orgA)
    try life.ask(.add("s", in: "org.g"), as: orgA)
    #expect(keys(try life.ask(.find(in: .all), as: orgA)) == ["org.a/s/a", "org.g/s/a"])
    #expect(keys(try life.ask(.find("s", "a", in: .all), as: orgA)) == ["org.a/s/a", "org.g/s/a"])
  }

  @Test func `items are listed in the order of their groups, services and accounts`() throws {
    var life = Life.withThreeApps()
    let places: [(Text, Text?)] = [
      ("z", nil), ("m", "org.shared"), ("a", "org.media"), ("b", nil), ("c", "org.shared"),
    ]
    for (service, group) in places { try life.ask(.add(service, in: group), as: orgB) }
    try life.ask(.put("m", in: "org.shared"), as: orgA)
    try life.ask(.update("z", label: "l"), as: orgB)
    let all = ["org.b/b/a", "org.b/z/a", "org.media/a/a", "org.shared/c/a", "org.shared/m/a"]
    #expect(keys(try life.ask(.find(in: .all), as: orgB)) == all)
    try life.ask(.delete("z"), as: orgB)
    try life.ask(.add("z"), as: orgB)
    #expect(keys(try life.ask(.find(in: .all), as: root)) == all)
  }
}

struct ItemReadTests {
  @Test func `a missing item is not found`() throws {
    var life = Life()
    try life.ask(.add("s"), as: alice)
    for command in [.read("t"), .read("s", "b"), .read("S")] as [RegistryCommand] {
      #expect(life.refusal(of: command, as: alice) == .notFound("no such item is in group user:1000"))
    }
  }

  @Test func `the secret belongs to the edition in the answer`() throws {
    var life = Life()
    for command in [.add("s", "a", "1"), .put("s", "a", "2"), .update("s", "a", "3"), .update("s", label: "l")]
      as [RegistryCommand]
    {
      try life.ask(command, as: alice)
      let reply = try life.registry.answer(.read("s"), for: alice)
      #expect(reply?.secrets == [try #require(life.item("s", in: "user:1000"))])
    }
    #expect(try life.ask(.read("s"), as: alice)[0].hasPrefix("OK data=3 "))
  }

  @Test func `an empty secret is a secret`() throws {
    var life = Life()
    try life.ask(.add("s", "a", ""), as: alice)
    #expect(life.item("s", in: "user:1000")?.secretLength == 0)
    #expect(try life.ask(.read("s"), as: alice)[0].hasPrefix("OK data= service=s "))
  }

  @Test(arguments: [.read("s"), .find()] as [RegistryCommand])
  func `a query changes nothing`(command: RegistryCommand) throws {
    var life = Life()
    try life.ask(.add("s", in: "user:1000"), as: root)
    #expect(try life.registry.decide(command, life.context(alice)).changes == [])
    #expect(try life.registry.answer(command, for: alice) != nil)
  }
}
