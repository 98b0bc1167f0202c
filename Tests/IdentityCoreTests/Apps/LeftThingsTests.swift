import IdentityCore
import Testing

/// Push tokens and items for one device only, after a renewal on what may be a copy of it.
struct LeftThingsTests {
  /// Returns a device on which two apps have a token, after a renewal that may be that of a copy.
  private func copyWithTokens() throws -> Life {
    var life = Life()
    try life.start("m", "h")
    #expect(life.answer("token put fcm one", as: alice)[0].hasPrefix("OK created "))
    #expect(life.answer("token put fcm two", as: bob)[0].hasPrefix("OK created "))
    #expect(life.answer("token invalidate fcm two", as: bob) == ["OK invalidated"])
    try life.start("n", "h")
    return life
  }

  @Test func `a copy does not use the tokens of the original, and says so once for each`() throws {
    var life = try copyWithTokens()
    let told = life.told().filter { $0.contains(" token ") }
    let left = told.filter { $0.contains(" token invalidated ") && $0.contains(" device=m.device ") }
    #expect(left.count == 3, "one of them is that of bob's sender: \(told)")
    #expect(told.suffix(2).allSatisfy { $0.contains(" reason=copied ") }, "\(told)")
    let token = life.answer("token get fcm", as: alice)[0]
    let original = try #require(life.registry.leftDevices.first?.device)
    #expect(token.contains(" device=\(original) ") && token.contains(" state=invalid reason=copied "), "\(token)")
    // Apps put the token that they have kept at each launch. It is not theirs.
    let last = life.registry.lastEvent
    let again = life.answer("token put fcm one environment=e", as: alice)
    #expect(again.count == 1 && again[0].hasPrefix("OK unchanged "), "\(again)")
    #expect(again[0].hasSuffix(" state=invalid reason=copied"), "\(again)")
    #expect(life.answer("token get fcm", as: alice)[0].contains(" state=invalid reason=copied "))
    // The copy tells no sender about the value, which would end that of the original.
    #expect(life.answer("token invalidate fcm one", as: alice) == ["OK invalidated"])
    #expect(life.registry.lastEvent == last)
  }

  @Test(arguments: ["token put fcm one renewed=yes", "token put fcm other"])
  func `a token that the provider has issued anew is the copy's`(request: String) throws {
    var life = try copyWithTokens()
    #expect(life.answer(request, as: alice)[0].hasPrefix("OK replaced "))
    #expect(life.answer("token get fcm", as: alice)[0].contains(" state=valid created="))
    #expect(try life.ask(.acknowledgeMachine(dryRun: true), as: root).count == 2)
  }

  @Test func `the tokens come back with the machine, as they were`() throws {
    var life = try copyWithTokens()
    try life.start("m", "h")
    #expect(life.answer("token get fcm", as: alice)[0].contains(" device=\(derived(life)) state=valid "))
    #expect(life.answer("token get fcm", as: bob)[0].contains(" state=invalid created="))
    #expect(life.told().last { $0.contains(" token ") }?.contains(" token rehomed ") == true)
  }

  @Test func `a second time on the other machine leaves the tokens to the original, too`() throws {
    var life = try copyWithTokens()
    #expect(life.answer("token put apns own", as: alice)[0].hasPrefix("OK created "))
    for (machine, fcm, apns) in [("m", " state=valid ", " state=valid "), ("n", " reason=copied ", " reason=copied ")] {
      try life.start(Text(machine), "h")
      #expect(life.answer("token get fcm", as: alice)[0].contains(fcm), "\(machine)")
      #expect(life.answer("token get apns", as: alice)[0].contains(apns), "\(machine)")
    }
  }

  private func derived(_ life: Life) -> String { life.registry[.device].map { "\($0.value)" } ?? "none" }

  @Test func `an acknowledgement deletes the tokens of the original, and a dry run lists them`() throws {
    var life = try copyWithTokens()
    #expect(
      try life.ask(.acknowledgeMachine(dryRun: true), as: root) == [
        "* token app=user:1000 provider=fcm own=no", "* token app=user:1001 provider=fcm own=no", "OK 2",
      ])
    #expect(life.registry.tokens.count == 2 && life.registry.unacknowledged != nil)
    #expect(try life.ask(.acknowledgeMachine(), as: root) == ["OK"])
    #expect(life.registry.tokens.count == 0 && life.registry.unacknowledged == nil)
    #expect(try life.ask(.acknowledgeMachine(dryRun: true), as: root) == ["OK 0"])
  }

  @Test func `after thirty days of the daemon the things of the original are deleted`() throws {
    var life = Life()
    // More than one step deletes.
    let count = Bound.forgottenTogether + 1
    life.limits.items.perUser.items = 2 * count
    for number in 1...count {
      _ = life.answer("item put service=s account=a\(number) data=eA== this-device-only=yes", as: alice)
    }
    _ = life.answer("item put service=s account=kept data=eA==", as: alice)
    life.take(life.registry.changes(forUsed: [], at: Timestamp(milliseconds: 0)))
    try life.start("m", "h")
    for (provider, peer) in [("fcm", alice), ("apns", alice), ("fcm", bob)] {
      _ = life.answer("token put \(provider) one", as: peer)
    }
    try life.start("n", "h")
    _ = life.answer("token put apns one renewed=yes", as: alice)
    _ = life.answer("item put service=s account=new data=eA== this-device-only=yes", as: alice)
    for day in 1...30 as ClosedRange<Int64> {
      #expect(life.registry.surplusRemoval.isEmpty)
      // A clock that jumps adds one day, and days on which the daemon does not run do not count.
      life.take(life.registry.changes(forUsed: [], at: Timestamp(milliseconds: 200 * day * 86_400_000)))
    }
    #expect(life.registry.tokens.count == 3 && life.registry.items.total.items == 2 + count)
    while !life.registry.surplusRemoval.isEmpty { life.take(life.registry.surplusRemoval) }
    #expect(life.registry.tokens.all.map(\.provider) == ["apns"])
    #expect(life.registry.items.all.map(\.key.account) == ["kept", "new"] && life.registry.leftDevices.isEmpty)
  }

  @Test func `a renewal of a device that is no copy takes its tokens along`() throws {
    var life = Life()
    try life.start("m", "h")
    _ = life.answer("token put fcm one", as: alice)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try life.start("m", "i")
    try life.ask(.renew(.device, app: nil, dryRun: false, replaces: true), as: root)
    #expect(life.answer("token get fcm", as: alice)[0].contains(" state=valid "))
    #expect(life.registry.tokens.all.allSatisfy { $0.device == life.registry[.device]?.value })
  }

  // MARK: Items

  private static let only = "data=eA== this-device-only=yes"

  /// Returns a device with an identifier on the first machine.
  private func life(on machine: Text = "m") throws -> Life {
    var life = Life()
    try life.start(machine, "h")
    _ = life.answer("get device", as: alice)
    return life
  }

  /// Puts an item for this device only.
  private func put(_ account: String, in life: inout Life) {
    #expect(life.answer("item put service=s account=\(account) \(Self.only)", as: alice) == ["OK created"])
  }

  private func isLocked(_ account: String, _ life: inout Life) -> Bool {
    let answer = life.answer("item read service=s account=\(account)", as: alice)[0]
    if answer.hasPrefix("OK ") { return false }
    #expect(answer.hasPrefix("ERR unavailable "), "\(answer)")
    return true
  }

  @Test func `an item for one device only is locked on a copy`() throws {
    var life = try life()
    put("only", in: &life)
    _ = life.answer("item put service=s account=other data=eA==", as: alice)
    try life.start("n", "h")
    let last = life.registry.lastEvent
    for request in ["read", "update", "update label=l"] {
      let words = request.split(separator: " ", maxSplits: 1)
      let line = "item \(words[0]) service=s account=only" + (words.count > 1 ? " \(words[1])" : "")
      #expect(life.answer(line, as: alice)[0].hasPrefix("ERR unavailable "), "\(line)")
      #expect(life.answer(line + " group=user:1000", as: root)[0].hasPrefix("ERR unavailable "), "\(line)")
    }
    #expect(life.answer("migrate installation item=only service=s", as: alice)[0].hasPrefix("ERR unavailable "))
    #expect(life.registry.lastEvent == last)
    #expect(life.answer("item read service=s account=other", as: alice)[0].hasPrefix("OK "))
    let secrets = life.answer("item find service=s data=yes", as: alice)
    #expect(secrets.map { $0.contains(" data=") } == [false, true, false], "\(secrets)")
    #expect(secrets[0].hasSuffix(" this-device-only=yes state=locked reason=copied"))
    #expect(life.answer("item read account=only label=\"\"", as: alice)[0].hasPrefix("ERR unavailable "))
    let found = life.answer("item find service=s", as: alice)
    #expect(found.map { $0.hasSuffix(" this-device-only=yes state=locked reason=copied") } == [true, false, false])
    #expect(life.answer("item add service=s account=only \(Self.only)", as: alice)[0].hasPrefix("ERR exists "))
    #expect(life.answer("item delete service=s account=only", as: alice) == ["OK 1"])
  }

  @Test(arguments: [false, true])
  func `an item comes back to a machine that had no identifier`(isSuspected: Bool) throws {
    var life = Life()
    try life.start("m", "h")
    put("a", in: &life)
    if isSuspected {
      _ = life.answer("get installation", as: alice)
      try life.start("m", "i")
      try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    } else {
      try life.start("n", "h")
    }
    #expect(isLocked("a", &life))
    try life.start(isSuspected ? "n" : "m", "h")
    #expect(isLocked("a", &life) == isSuspected)
  }

  @Test func `an item put in the place of a locked one is this device's`() throws {
    var life = try life()
    put("a", in: &life)
    _ = life.answer("item put service=s account=b data=eA==", as: alice)
    try life.start("n", "h")
    for account in ["a", "b"] {
      let answer = life.answer("item put service=s account=\(account) \(Self.only)", as: alice)
      #expect(answer == ["OK replaced"])
      #expect(!isLocked(account, &life))
    }
    #expect(life.told().suffix(4).map { $0.split(separator: " ")[2] } == ["deleted", "added", "deleted", "added"])
    for machine in ["m", "n"] {
      try life.start(Text(machine), "h")
      // Made on n, or kept since then by m.
      #expect(isLocked("a", &life) == (machine == "n"))
    }
  }

  @Test func `a new item does not get the number of a locked one that was deleted`() throws {
    var life = try life()
    put("a", in: &life)
    try life.start("n", "h")
    #expect(life.answer("item delete service=s account=a", as: alice) == ["OK 1"])
    life.restart()
    put("a", in: &life)
    #expect(!isLocked("a", &life))
  }

  @Test func `locked items come back with their machine, whichever machines were in between`() throws {
    var life = try life()
    let machines = ["m", "n", "o"]
    for machine in machines {
      try life.start(Text(machine), "h")
      put(machine, in: &life)
    }
    func locked() -> [String] { machines.filter { isLocked($0, &life) } }
    #expect(locked() == ["m", "n"])
    // On m, the item of o is m's, because the way back leaves nobody. That of n waits for n.
    try life.start("m", "h")
    #expect(locked() == ["n"])
    try life.start("p", "h")
    #expect(locked() == ["m", "n", "o"])
    try life.start("n", "h")
    #expect(locked() == ["m", "o"])
    try life.start("m", "h")
    #expect(locked() == [])
  }

  @Test func `the items of the fleet's service are not locked`() throws {
    var life = try life()
    var manifest = Manifest("org.fleet")
    manifest.rights = [.fleet]
    life.install(["org.fleet": manifest])
    _ = life.answer("item put service=s account=a \(Self.only)", as: peer("org.fleet"))
    try life.start("n", "h")
    #expect(life.answer("item read service=s account=a", as: peer("org.fleet"))[0].hasPrefix("OK "))
    #expect(try life.ask(.acknowledgeMachine(dryRun: true), as: root) == ["OK 0"])
    #expect(try life.ask(.acknowledgeMachine(), as: root) == ["OK"])
    #expect(life.answer("item read service=s account=a", as: peer("org.fleet"))[0].hasPrefix("OK "))
  }

  @Test func `a repaired original gets everything back if an admin says that it is the original`() throws {
    var life = try life()
    put("a", in: &life)
    _ = life.answer("token put fcm one", as: alice)
    try life.start("m", "i", onHardwareChange: .renew)
    #expect(isLocked("a", &life))
    try life.ask(.renew(.device, app: nil, dryRun: false, replaces: true), as: root)
    #expect(!isLocked("a", &life))
    let device = try #require(life.registry[.device]?.value)
    #expect(life.answer("token get fcm", as: alice)[0].contains(" device=\(device) state=valid "))
  }

  @Test func `an acknowledgement deletes locked items in steps, and a dry run lists them`() throws {
    var life = try life()
    let count = 2 * Bound.changesPerStep + 1
    for number in 1...count { put("a\(number)", in: &life) }
    try life.start("n", "h")
    put("new", in: &life)
    let rows = try life.ask(.acknowledgeMachine(dryRun: true), as: root)
    #expect(rows[0] == "* item app=user:1000 group=user:1000 service=s account=a1 own=no")
    #expect(rows.last == "OK \(count)")
    #expect(try life.ask(.acknowledgeMachine(), as: root) == ["OK"])
    #expect(life.registry.items.all.map(\.key.account) == ["new"] && life.registry.leftDevices.isEmpty)
    // There is nothing to come back.
    try life.start("m", "h")
    #expect(!isLocked("new", &life))
  }

  @Test func `a token of an app that sees another identifier now comes back with the machine, too`() throws {
    var life = try life()
    life.install(["org.a": Manifest("org.v")])
    #expect(life.answer("token put fcm one", as: peer("org.a"))[0].hasPrefix("OK created "))
    try life.start("n", "h")
    var manifest = Manifest("org.v")
    manifest.deviceBinding = .app
    life.install(["org.a": manifest])
    _ = life.answer("get device", as: peer("org.a"))
    #expect(life.answer("token put fcm one", as: peer("org.a"))[0].hasSuffix(" state=invalid reason=copied"))
    try life.start("m", "h")
    let answer = life.answer("token get fcm", as: peer("org.a"))[0]
    #expect(answer.contains(" device=\(try #require(life.registry[.deviceOfApp("org.a")]).value) state=valid "))
  }

  @Test func `a device that was left to very many machines forgets the items of the first ones`() throws {
    var life = try life(on: "m0")
    put("a0", in: &life)
    for number in 1...Bound.leftDevices + 1 {
      try life.start(Text("m\(number)"), "h")
      put("a\(number)", in: &life)
    }
    #expect(life.registry.leftDevices.count == Bound.leftDevices)
    #expect(life.registry.items.total.items == Bound.leftDevices + 1)
    #expect(life.answer("item read service=s account=a0", as: alice)[0].hasPrefix("ERR not-found "))
    #expect(isLocked("a1", &life))
  }
}
