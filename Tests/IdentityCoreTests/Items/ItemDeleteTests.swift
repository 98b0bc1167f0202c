import IdentityCore
import Testing

struct ItemDeleteTests {
  /// Returns a `Life` with item `s`/`a` in four groups, and more items in the first app's own group.
  private func life() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    for (app, group) in [(orgA, nil), (orgA, "org.shared"), (orgB, nil), (orgB, "org.media")] as [(Peer, Text?)] {
      try life.ask(.add("s", "a", in: group, label: "l", attributes: ["k": "v"]), as: app)
    }
    try life.ask(.add("s", "b", label: "l"), as: orgA)
    try life.ask(.add("t", "a", attributes: ["k": "v"]), as: orgA)
    return life
  }

  @Test(
    arguments: [
      // The command, and the items left in the app's own group.
      (.delete("s"), ["org.a/t/a"]), (.delete("s", "a"), ["org.a/s/b", "org.a/t/a"]),
      (.delete(nil, "a"), ["org.a/s/b"]), (.delete(label: "l"), ["org.a/t/a"]),
      (.delete(label: ""), ["org.a/s/a", "org.a/s/b"]), (.delete(attributes: ["k": "v"]), ["org.a/s/b"]),
      (.delete(attributes: ["k": ""]), ["org.a/s/a", "org.a/t/a"]), (.delete(in: .named("org.a")), []),
      (.delete("s", in: .named("org.a"), label: "l"), ["org.a/t/a"]),
    ] as [(RegistryCommand, [String])])
  func `delete removes all matching items, and none of other groups`(command: RegistryCommand, left: [String]) throws {
    var life = try life()
    let others = ["org.shared/s/a", "org.b/s/a", "org.media/s/a"]
    let before = life.itemKeys
    #expect(try life.ask(command, as: orgA) == ["OK \(before.count - others.count - left.count)"])
    #expect(Set(life.itemKeys) == Set(others + left))
  }

  @Test func `a dry run lists what a deletion would delete and whose it is, and deletes nothing`() throws {
    var life = try life()
    let before = life.itemKeys
    func preview(_ service: Text, in groups: ItemCondition.Groups = .own) -> RegistryCommand {
      .previewDeletion(ItemCondition(groups: groups, service: service))
    }
    for (group, peer, count, isOwn) in [
      (.own, orgA, 2, true), (.named("org.shared"), orgA, 1, true), (.named("org.shared"), orgB, 1, false),
      (.named("org.a"), root, 2, false),
    ] as [(ItemCondition.Groups, Peer, Int, Bool)] {
      let lines = try life.ask(preview("s", in: group), as: peer)
      #expect(lines.count == count + 1 && lines.last == "OK \(count)", "\(lines)")
      #expect(lines.dropLast().allSatisfy { $0.hasPrefix("* service=s account=") }, "\(lines)")
      #expect(lines.dropLast().allSatisfy { $0.hasSuffix(" own=no") != isOwn }, "\(lines)")
    }
    #expect(life.refusal(of: preview("u"), as: orgA) == .notFound("no item matches the conditions"))
    #expect(life.itemKeys == before)
  }

  @Test func `delete with a group removes items of that group only`() throws {
    var life = try life()
    #expect(try life.ask(.delete("s", "a", in: .named("org.shared")), as: orgB) == ["OK 1"])
    #expect(try life.ask(.delete(in: .named("org.media")), as: orgC) == ["OK 1"])
    #expect(life.itemKeys == ["org.a/s/a", "org.b/s/a", "org.a/s/b", "org.a/t/a"])
    #expect(try life.ask(.delete("s", in: .named("org.a")), as: root) == ["OK 2"])
    #expect(life.itemKeys == ["org.b/s/a", "org.a/t/a"])
  }

  @Test(arguments: [root, alice])
  func `delete without a group removes only the peer's own items, even for an admin`(peer: Peer) throws {
    var life = try life()
    try life.ask(.add("s"), as: peer)
    let before = life.itemKeys
    #expect(try life.ask(.delete("s"), as: peer) == ["OK 1"])
    #expect(life.itemKeys == before.dropLast())
  }

  @Test(
    arguments: [.delete("u"), .delete("s", "c"), .delete("t", in: .named("org.shared")), .delete(label: "none")]
      as [RegistryCommand])
  func `delete without a match is not found`(command: RegistryCommand) throws {
    #expect(try life().refusal(of: command, as: orgA) == .notFound("no item matches the conditions"))
  }

  @Test func `many items are deleted in steps, and each is looked at again`() throws {
    var life = Life()
    for number in 0..<100 { try life.ask(.add("s", Text("\(number)"), label: "old"), as: alice) }
    var search = try #require(try life.registry.search(.delete(label: "old"), for: alice))
    var effort = Int.max
    var rest = search.command(&effort)
    var steps: [Int] = []
    var answer: [String] = []
    while let command = rest {
      let before = life.registry.items.total.items
      let decision = try life.registry.decide(command, life.context(alice))
      life.take(decision.changes)
      steps.append(before - life.registry.items.total.items)
      answer = life.lines(decision.reply)
      if steps.count == 1 {
        // The last key of all, which is found and no longer meets the condition, and a new item that is not found.
        try life.ask(.update("s", "99", label: "new"), as: alice)
        try life.ask(.add("s", "later", label: "old"), as: alice)
      }
      rest = decision.nextCommand
    }
    #expect(steps.allSatisfy { $0 <= Bound.changesPerStep } && steps.count == 4)
    #expect(answer == ["OK 99"])
    #expect(life.registry.items.all.map(\.key.account) == ["99", "later"])
  }

  @Test func `an item that is added after a deletion is a new item`() throws {
    var life = try life()
    let before = try #require(life.item("s", in: "org.a"))
    try life.ask(.delete("s", "a"), as: orgA)
    #expect(life.refusal(of: .read("s"), as: orgA)?.isNotFound == true)
    try life.ask(.add("s", "a", "y"), as: orgA)
    let after = try #require(life.item("s", in: "org.a"))
    #expect(after.created > before.created)
    #expect(after.number > before.number)
    #expect(after.edition != before.edition)
    #expect(after.label == nil && after.attributes.isEmpty)
  }

  @Test func `an app that deletes all its items stays installed`() throws {
    var life = Life()
    try life.ask(.add("s", whileInstalled: true), as: alice)
    try life.ask(.delete("s"), as: alice)
    #expect(Array(life.registry.apps.keys) == ["user:1000"])
    #expect(life.registry.items.total.items == 0 && life.registry.items.total.bytes == 0)
  }
}
