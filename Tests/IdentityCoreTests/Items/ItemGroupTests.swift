import IdentityCore
import Testing

private func lacking(_ group: Text, _ peer: Peer) -> Refusal {
  .denied(
    app: peer.app, userID: peer.userID, grant: "access group \(group); AccessGroups= of its manifest can grant it")
}

struct ItemGroupTests {
  @Test(
    arguments: [
      // The peer, and the groups that it may use.
      (orgA, ["org.a", "org.shared"]), (orgB, ["org.b", "org.shared", "org.media"]), (orgC, ["org.c", "org.media"]),
      (alice, ["user:1000"]), (bob, []), (service("s", of: 1_000), ["unit:s.service@1000"]), (peer("org.v"), []),
      (
        root,
        ["org.a", "org.b", "org.c", "org.shared", "org.media", "user:1000", "unit:s.service@1000", "org.gone"]
      ),
    ] as [(Peer, [Text])])
  func `an app may use its own group and those of its manifest, and an admin any group`(peer: Peer, groups: [Text])
    throws
  {
    var life = Life.withThreeApps()
    let all: [Text] = [
      "org.a", "org.b", "org.c", "org.shared", "org.media", "user:1000", "unit:s.service@1000", "org.gone",
    ]
    for group in all {
      try life.ask(.add("s", "a", "55555555555545558555000000000001", in: group), as: root)
      try life.ask(.add("s", "b", in: group), as: root)
    }
    for group in all {
      let expected = groups.contains(group) ? nil : lacking(group, peer)
      #expect(life.registry.may(peer, see: .group(group)) == (expected == nil))
      for command in RegistryCommand.everyItemVerb(in: group) {
        let refusal = life.refusal(of: command, as: peer)
        if case .exists? = refusal, expected == nil { continue }
        // Several items of the group match some of the requests.
        if case .conflict? = refusal, expected == nil { continue }
        #expect(refusal == expected, "\(peer.app) in \(group): \(command)")
      }
    }
  }

  @Test(arguments: ["ORG.A", "org.a ", "org", "org.shared.x", "", "*", "user:1000"] as [Text])
  func `group names are compared byte by byte`(group: Text) {
    let life = Life.withThreeApps()
    for command in RegistryCommand.everyItemVerb(in: group) {
      #expect(life.refusal(of: command, as: orgA) == lacking(group, orgA))
    }
  }

  @Test(arguments: ["org.b", "org.media", "user:1000", "org.nobody"] as [Text])
  func `a refusal does not depend on the content or the owner of the group`(group: Text) throws {
    let empty = Life.withThreeApps()
    var full = empty
    for account in ["a", "b"] as [Text] { try full.ask(.add("s", account, in: group), as: root) }
    var without = Life()
    without.install(["org.a": Manifest("org.v", groups: ["org.shared"])])
    for command in RegistryCommand.everyItemVerb(in: group) {
      for life in [empty, full, without] { #expect(life.refusal(of: command, as: orgA) == lacking(group, orgA)) }
      #expect(throws: lacking(group, orgA)) { try full.registry.answer(command, for: orgA) }
    }
  }

  @Test func `a refusal names the group, the peer and the grant`() {
    let refusal = Life.withThreeApps().refusal(of: .read("s", in: "org.media"), as: orgA)
    #expect(
      refusal
        == .denied(
          app: "org.a", userID: 998, grant: "access group org.media; AccessGroups= of its manifest can grant it"))
  }

  @Test func `the default group is the app's own`() throws {
    var life = Life.withThreeApps()
    for peer in [orgA, alice, service("s", of: 1_000), root] {
      try life.ask(.add("s"), as: peer)
      #expect(life.item("s", in: peer.app) != nil)
      #expect(
        life.refusal(of: .add("s", in: peer.app), as: peer)
          == .exists("group \(peer.app) already has this item; use 'item put' to replace it"))
    }
  }

  @Test func `apps that share a group read and change the same item`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", "a", "one", in: "org.shared"), as: orgA)
    #expect(try life.ask(.read("s", in: "org.shared"), as: orgB)[0].hasPrefix("OK data=one "))
    try life.ask(.put("s", "a", "two", in: "org.shared"), as: orgB)
    #expect(try life.ask(.read("s", in: "org.shared"), as: orgA)[0].hasPrefix("OK data=two "))
    #expect(life.refusal(of: .add("s", in: "org.shared"), as: orgB) != nil)
    try life.ask(.delete("s", in: .named("org.shared")), as: orgA)
    #expect(life.refusal(of: .read("s", in: "org.shared"), as: orgB)?.isNotFound == true)
  }

  @Test func `a manifest that lists another app's own group opens it`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", groups: ["org.b", "user:1000"]), "org.b": Manifest("org.v")])
    try life.ask(.add("s", "a", "of b"), as: orgB)
    try life.ask(.add("s", "a", "of alice"), as: alice)
    #expect(try life.ask(.read("s", in: "org.b"), as: orgA)[0].hasPrefix("OK data=of b "))
    #expect(try life.ask(.read("s", in: "user:1000"), as: orgA)[0].hasPrefix("OK data=of alice "))
    #expect(life.refusal(of: .read("s", in: "org.a"), as: orgB) == lacking("org.a", orgB))
    #expect(try life.ask(.find(in: .all), as: orgA).last == "OK 2")
  }

  @Test func `the current manifest decides about rights, and items outlast a loss of rights`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.shared"), as: orgA)
    var apps: [Text: Manifest] = ["org.a": Manifest("org.v"), "org.b": Manifest("org.v", groups: ["org.shared"])]
    life.install(apps)
    for command in RegistryCommand.everyItemVerb(in: "org.shared") {
      #expect(life.refusal(of: command, as: orgA) == lacking("org.shared", orgA))
    }
    #expect(life.refusal(of: .find(in: .all), as: orgA)?.isNotFound == true)
    #expect(life.refusal(of: .read("s", in: "org.shared"), as: orgB) == nil)
    apps["org.a"]?.accessGroups = ["org.shared"]
    life.install(apps)
    #expect(life.refusal(of: .update("s", label: "l"), as: orgA)?.isNotFound == true)
    #expect(try life.ask(.find(in: .all), as: orgA).last == "OK 1")
  }

  @Test func `a vendor is no group, and apps of one vendor do not share their own groups`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s"), as: orgB)
    #expect(life.refusal(of: .read("s", in: "org.b"), as: orgA) == lacking("org.b", orgA))
    #expect(life.refusal(of: .read("s", in: "org.v"), as: orgA) == lacking("org.v", orgA))
  }

  @Test func `a peer that the kernel did not attest is refused`() {
    for command in RegistryCommand.everyItemVerb(in: nil) {
      #expect(throws: Refusal.unattested) { try Registry().decide(command, Life().context(nil)) }
    }
  }
}

struct UninstalledPeerTests {
  private func life() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    for group in [nil, "org.shared"] as [Text?] {
      try life.ask(.add("s", "a", "55555555555545558555000000000001", in: group), as: orgA)
    }
    life.install(["org.b": Manifest("org.v", groups: ["org.shared"])])
    return life
  }

  @Test func `an app that was uninstalled while connected has no access any more`() throws {
    let life = try life()
    for command in RegistryCommand.everyItemVerb(in: nil) + [.find(in: .all)] {
      #expect(life.refusal(of: command, as: orgA) == .notFound("org.a is no longer installed"))
    }
    for group in ["org.a", "org.shared", "org.b"] as [Text] {
      #expect(!life.registry.may(orgA, see: .group(group)))
      for command in RegistryCommand.everyItemVerb(in: group) {
        #expect(life.refusal(of: command, as: orgA) != nil)
      }
    }
    #expect(life.itemKeys == ["org.a/s/a", "org.shared/s/a"])
  }

  @Test func `the items of an uninstalled app wait for its next installation`() throws {
    var life = try life()
    life.install(["org.a": Manifest("org.v", groups: ["org.shared"])])
    #expect(try life.ask(.find(in: .all), as: orgA).last == "OK 2")
    #expect(try life.ask(.read("s"), as: orgA)[0].contains(" service=s account=a group=org.a "))
  }

  @Test func `a forgotten app without a manifest is installed again by its next request`() throws {
    var life = Life()
    try life.ask(.add("s"), as: alice)
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(life.registry.apps.count == 0)
    #expect(try life.ask(.read("s"), as: alice).count == 1)
    #expect(try life.ask(.put("s"), as: alice) == ["OK replaced"])
    #expect(Array(life.registry.apps.keys) == ["user:1000"])
  }

  @Test func `an admin whose own app was uninstalled cannot add, but can read, update and delete`() throws {
    var life = try life()
    let admin = Peer(
      app: "org.a", userID: 0, groupID: 0, processID: 9, place: PeerPlace(), session: nil, isAdmin: true)
    for group in [nil, "org.a", "org.shared", "org.new"] as [Text?] {
      #expect(life.refusal(of: .add("t", in: group), as: admin)?.isNotFound == true)
    }
    #expect(life.refusal(of: .read("s", in: "org.shared"), as: admin) == nil)
    try life.ask(.update("s", in: "org.shared", label: "l"), as: admin)
    #expect(try life.ask(.delete(in: .named("org.a")), as: admin) == ["OK 1"])
    #expect(!life.registry.apps.keys.contains("org.a"))
  }
}
