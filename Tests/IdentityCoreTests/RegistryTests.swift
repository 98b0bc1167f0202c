import IdentityCore
import Testing

private let root = Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true)
private let alice = Peer(userID: 1_000, groupID: 1_000, processID: 2, isAdmin: false)
private let player = Peer(userID: 998, groupID: 998, processID: 3, unit: "player.service", isAdmin: false)
private let machine = UUID(high: 0x1111_1111_1111_4111, low: 0x8111_1111_1111_1111)
private let random = UUID(high: 0x2222_2222_2222_4222, low: 0x8222_2222_2222_2222)

private func context(_ peer: Peer, machine: UUID? = machine, at milliseconds: Int64 = 0) -> Context {
  Context(peer: peer, now: Timestamp(milliseconds: milliseconds), random: random, machine: machine)
}

extension Registry {
  /// Decides, applies, and returns the value that the answer carries.
  fileprivate mutating func carryOut(_ command: RegistryCommand, _ context: Context) throws -> (changes: Int, UUID?) {
    let decision = try decide(command, context)
    for change in decision.changes { apply(change) }
    return (decision.changes.count, decision.reply.firstUUID)
  }
}

extension Reply {
  fileprivate var firstUUID: UUID? {
    for case .word(.uuid(let uuid)) in parts { return uuid }
    return nil
  }

  fileprivate subscript(_ name: String) -> Value? {
    for case .attribute(name, let value) in parts { return value }
    return nil
  }
}

@Suite struct RegistryTests {
  @Test func `the first question for the device makes it, from the machine-id`() throws {
    var registry = Registry()
    #expect(try registry.answer(.device, for: alice) == nil)
    #expect(try registry.carryOut(.device, context(alice, at: 5)) == (1, machine))
    #expect(registry.device == Identifier(value: machine, created: Timestamp(milliseconds: 5), origin: .machine))
    #expect(try registry.answer(.device, for: alice)?["origin"] == .string("machine"))
  }

  @Test func `without a machine-id the device is random and stays so when the machine-id comes`() throws {
    var registry = Registry()
    #expect(try registry.carryOut(.device, context(alice, machine: nil)) == (1, random))
    #expect(registry.device?.origin == .random)
    #expect(try registry.carryOut(.device, context(alice, machine: machine)) == (0, random))
  }

  @Test func `everybody gets the same device and nobody changes it`() throws {
    var registry = Registry()
    _ = try registry.carryOut(.device, context(alice))
    let before = registry
    for peer in [root, alice, player] {
      #expect(try registry.carryOut(.device, context(peer, machine: random)) == (0, machine))
    }
    #expect(registry == before)
  }

  @Test func `the first question for an installation installs the app`() throws {
    var registry = Registry()
    #expect(try registry.carryOut(.installation(app: nil), context(player)) == (2, random))
    #expect(registry.apps.keys.sorted() == ["unit:player.service"])
    #expect(registry.apps["unit:player.service"]?.vendor == "unit:player.service")
    #expect(try registry.carryOut(.installation(app: nil), context(player)) == (0, random))
  }

  @Test func `an installation belongs to its app alone`() throws {
    var registry = Registry()
    _ = try registry.carryOut(.installation(app: nil), context(player))
    let other = UUID(high: 3, low: 3)
    let decision = try registry.decide(
      .installation(app: nil), Context(peer: alice, now: Timestamp(milliseconds: 0), random: other, machine: nil))
    #expect(decision.reply.firstUUID == other)
    #expect(decision.reply["app"] == .text("user:1000"))
  }

  @Test func `naming one's own app needs no rights`() throws {
    var registry = Registry()
    #expect(try registry.carryOut(.installation(app: "user:1000"), context(alice)) == (2, random))
  }

  @Test func `naming another app is for admins, and says what is missing`() {
    let registry = Registry()
    #expect(throws: Refusal.denied(app: "user:1000", userID: 1_000, grant: "admin rights, to name another app")) {
      try registry.decide(.installation(app: "unit:player.service"), context(alice))
    }
  }

  @Test func `the refusal is the same whether the other app is there or not`() throws {
    var registry = Registry()
    _ = try registry.carryOut(.installation(app: nil), context(player))
    for app in ["unit:player.service", "unit:nobody.service"] as [Text] {
      #expect(throws: Refusal.denied(app: "user:1000", userID: 1_000, grant: "admin rights, to name another app")) {
        try registry.answer(.installation(app: app), for: alice)
      }
    }
  }

  @Test func `an admin who asks for an app that is not there installs nothing`() throws {
    let registry = Registry()
    #expect(throws: Refusal.notFound("no such app is installed")) {
      try registry.decide(.installation(app: "unit:player.service"), context(root))
    }
  }

  @Test func `an admin sees another app's installation and changes nothing`() throws {
    var registry = Registry()
    _ = try registry.carryOut(.installation(app: nil), context(player))
    #expect(try registry.carryOut(.installation(app: "unit:player.service"), context(root)) == (0, random))
  }
}

@Suite struct PeerTests {
  @Test func `a service of the system, a user's service and a user are three kinds of app`() {
    #expect(player.app == "unit:player.service")
    let web = Peer(userID: 1_000, groupID: 1_000, processID: 2, unit: "web.service", unitOwner: 1_000, isAdmin: false)
    #expect(web.app == "unit:web.service@1000")
    #expect(alice.app == "user:1000")
    #expect(player.vendor == player.app)
  }

  @Test func `a user id above 2^31 stays the number it is`() {
    #expect(Peer(userID: 4_294_967_294, groupID: 0, processID: 2, isAdmin: false).app == "user:4294967294")
  }

  @Test func `a user's service cannot pass for a service of the system`() {
    let forged = Peer(
      userID: 1_000, groupID: 1_000, processID: 2, unit: "player.service", unitOwner: 1_000, isAdmin: false)
    #expect(forged.app != player.app)
  }
}
