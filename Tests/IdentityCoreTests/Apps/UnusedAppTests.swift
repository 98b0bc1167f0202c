import IdentityCore
import Testing

/// Apps that are no longer used.
struct UnusedAppTests {
  private static let dayLength: Int64 = 86_400_000

  /// Records a day on which the daemon ran, and the apps that were used on that day.
  private func live(_ life: inout Life, using used: Set<Text> = [], clock days: Int64 = 1) {
    life.now += days * Self.dayLength
    life.take(life.registry.changes(forUsed: used, at: Timestamp(milliseconds: life.now)))
  }

  private func forget(_ unused: Int?, _ pattern: Text? = nil, dryRun: Bool = false) -> RegistryCommand {
    .forgetMatching(AppCondition(unused: unused, pattern: pattern), dryRun: dryRun)
  }

  /// Returns a `Life` with an app for each user, all used on the present day.
  private func life(_ users: [UInt32] = [1_000, 1_001, 1_002]) throws -> Life {
    var life = Life()
    for user in users {
      try life.ask(.get(.installation, app: nil), as: Peer(userID: user, groupID: 1, processID: 1, isAdmin: false))
    }
    live(&life)
    return life
  }

  @Test func `the unused time of an app counts days on which the daemon ran`() throws {
    var life = try life()
    for _ in 0..<3 { live(&life, using: ["user:1000"]) }
    #expect(try life.ask(forget(4, dryRun: true), as: root) == ["OK 0 left=0"])
    let rows = try life.ask(forget(3, dryRun: true), as: root)
    #expect(rows.map { String($0.prefix(11)) } == ["* user:1001", "* user:1002", "OK 2 left=0"])
    #expect(rows[0].contains(" installed=t2 used=t"))
    #expect(life.registry.apps.count == 3)
    #expect(try life.ask(forget(3), as: root).last == "OK 2 left=0")
    #expect(life.registry.apps.keys.sorted() == ["user:1000"])
    #expect(life.registry[.installation("user:1001")] == nil)
  }

  @Test(arguments: [1, 400, -400, 100_000] as [Int64])
  func `time without the daemon, or a jump of the clock, counts as one day`(days: Int64) throws {
    var life = try life()
    live(&life, clock: days)
    #expect(try life.ask(forget(2, dryRun: true), as: root) == ["OK 0 left=0"])
    #expect(try life.ask(forget(1, dryRun: true), as: root).count == 4)
  }

  @Test func `a second use on the same day is no change`() throws {
    var life = try life()
    let now = Timestamp(milliseconds: life.now)
    #expect(life.registry.changes(forUsed: ["user:1000", "nobody"], at: now).isEmpty)
    live(&life, using: ["user:1000"])
    #expect(life.registry.changes(forUsed: ["user:1000"], at: Timestamp(milliseconds: life.now)).isEmpty)
    #expect(life.registry.changes(forUsed: ["user:1001"], at: Timestamp(milliseconds: life.now)).count == 1)
  }

  @Test func `an app without a record of its use counts as used`() throws {
    var life = try life([])
    for _ in 0..<10 { live(&life) }
    try life.ask(.get(.installation, app: nil), as: alice)
    #expect(try life.ask(forget(1, dryRun: true), as: root) == ["OK 0 left=0"])
    live(&life)
    #expect(try life.ask(forget(1, dryRun: true), as: root) == ["OK 0 left=0"])
    live(&life)
    #expect(try life.ask(forget(1, dryRun: true), as: root).last == "OK 1 left=0")
  }

  @Test func `apps with a manifest, with items, or with items in their group are kept`() throws {
    var life = try life()
    life.install(["org.a": Manifest("org.v")])
    try life.ask(.add("s"), as: alice)
    try life.ask(.add("s", in: "user:1001"), as: root)
    for _ in 0..<5 { live(&life) }
    let rows = try life.ask(forget(1, dryRun: true), as: root)
    // The item in the second app's group keeps that app installed, whether the item is charged to that app or to root.
    #expect(rows.map { String($0.prefix(11)) } == ["* user:1002", "OK 1 left=0"])
    try life.ask(.delete("s"), as: alice)
    #expect(try life.ask(forget(1), as: root).last == "OK 2 left=0")
    #expect(life.registry.apps.keys.sorted().contains("user:1001"))
  }

  @Test(
    arguments: [
      ("*", 3), ("user:1000", 1), ("user:100*", 3), ("user:*2", 1), ("*:*0*", 3), ("user:", 0), ("*user", 0), ("", 0),
      ("**user:1001**", 1), ("user:1000*0", 0), ("u*r:*001", 1),
    ] as [(Text, Int)])
  func `a * in a pattern matches any bytes`(pattern: Text, count: Int) throws {
    var life = try life()
    #expect(try life.ask(forget(nil, pattern, dryRun: true), as: root).last == "OK \(count) left=0")
    live(&life)
    #expect(try life.ask(forget(1, pattern, dryRun: true), as: root).last == "OK \(count) left=0")
    #expect(try life.ask(forget(2, pattern), as: root).last == "OK 0 left=0")
  }

  @Test func `a request forgets at most 512 apps, and the next one continues`() throws {
    var life = try life((0..<600).map { 2_000 + $0 })
    #expect(try life.ask(forget(nil, "user:*", dryRun: true), as: root).last == "OK 512 left=88")
    #expect(try life.ask(forget(nil, "user:*"), as: root).last == "OK 512 left=88")
    #expect(try life.ask(forget(nil, "user:*"), as: root).last == "OK 88 left=0")
  }

  @Test func `forgetting unused apps requires an admin`() throws {
    let life = try life()
    #expect(life.refusal(of: forget(nil, "user:1000"), as: alice)?.isDenied == true)
    #expect(life.refusal(of: forget(1, dryRun: true), as: alice)?.isDenied == true)
  }

  @Test func `the daemon itself uninstalls apps that were unused for the configured days`() throws {
    var life = try life()
    for _ in 0..<3 { live(&life, using: ["user:1002"]) }
    var last: Text?
    #expect(life.registry.removalOfUnused(ForgetPolicy(unusedDays: 4), after: &last, life.context(nil)).isEmpty)
    #expect(last == nil)
    life.take(life.registry.removalOfUnused(ForgetPolicy(unusedDays: 3), after: &last, life.context(nil)))
    #expect(life.registry.apps.keys.sorted() == ["user:1002"])
    #expect(last == nil)
  }

  @Test func `the daemon itself uninstalls unused apps in short steps`() throws {
    var life = try life((0..<2_500).map { 2_000 + $0 })
    live(&life, using: Set((0..<2_200).map { Text("user:\(2_000 + $0)") }))
    var (last, steps): (Text?, [Int]) = (nil, [])
    repeat {
      let before = life.registry.apps.count
      life.take(life.registry.removalOfUnused(ForgetPolicy(unusedDays: 1), after: &last, life.context(nil)))
      steps.append(before - life.registry.apps.count)
    } while last != nil
    #expect(steps.allSatisfy { $0 <= Bound.appsPerStep })
    #expect(steps.reduce(0, +) == 300 && life.registry.apps.count == 2_200)
  }

  @Test func `an app that is used after the search for unused apps stays`() throws {
    var life = try life((0..<20).map { 2_000 + $0 })
    live(&life)
    guard var search = try life.registry.search(forget(1), for: root) else {
      Issue.record("there is no search")
      return
    }
    var effort = Int.max
    var rest = search.command(&effort)
    // Between the search and its second step.
    var steps = 0
    var answer: [String] = []
    while let command = rest {
      let decision = try life.registry.decide(command, life.context(root))
      life.take(decision.changes)
      answer = life.lines(decision.reply)
      if steps == 0 {
        life.take(life.registry.changes(forUsed: ["user:2015"], at: Timestamp(milliseconds: life.now)))
        try life.ask(.add("s"), as: Peer(userID: 2_017, groupID: 1, processID: 1, isAdmin: false))
      }
      steps += 1
      rest = decision.nextCommand
    }
    #expect(steps == 3)
    #expect(answer.last == "OK 18 left=0")
    #expect(life.registry.apps.keys.sorted() == ["user:2015", "user:2017"])
  }

  @Test func `an uninstalled app leaves no record of its use`() throws {
    var life = try life()
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(life.registry.use(of: "user:1000") == nil)
    #expect(life.registry.use(of: "user:1001") != nil)
  }
}
