import IdentityCore
import IdentityWire
import ReferenceModel
import TestSupport
import Testing

/// A peer as the daemon knows it and as the model knows it.
private struct Actor {
  let real: Peer
  let model: ReferenceModel.Peer

  init(_ real: Peer) {
    self.real = real
    model = ReferenceModel.Peer(
      app: "\(real.app)", user: Int(real.userID),
      author: real.place.unit == nil ? "uid:\(real.userID)" : "unit:\(real.unitName)",
      isAdmin: real.isAdmin)
  }

  /// Returns the actor in the session with a number, or without a session for nil.
  func session(_ number: Int?) -> Actor {
    guard let number else { return self }
    return Actor(real: real.session(Int32(number)), model: model, number)
  }

  private init(real: Peer, model: ReferenceModel.Peer, _ session: Int) {
    self.real = real
    self.model = .init(
      app: model.app, user: model.user, author: model.author, isAdmin: model.isAdmin, session: session)
  }
}

extension Peer {
  fileprivate var unitName: String { "\(place.unit ?? "")\(place.owner.map { "@\($0)" } ?? "")" }
}

/// A random session of several peers, run on a registry and on the reference model.
private struct Session {
  private static let cast: [Actor] = [
    root, Peer(userID: 1_003, groupID: 4, processID: 6, isAdmin: true), peer("org.a"), peer("org.b"), peer("org.c"),
    peer("org.d"),
    Peer(userID: 997, groupID: 997, processID: 7, place: PeerPlace(unit: "plain.service"), isAdmin: false), alice, bob,
    service("one", of: 1_000), service("two", of: 1_000), service("one", of: 1_001),
  ].map { Actor($0) }
  private static let groups = ["org.shared", "org.media", "org.none"]

  private var life = Life()
  private var model = ReferenceModel()
  private var bindings = Bindings()
  private var random: SeededGenerator
  private let apps = cast.map(\.model.app) + ["org.none"]
  private(set) var outcomes: [String: Int] = [:]

  init(_ seed: UInt64) throws {
    random = SeededGenerator(seed)
    life.limits.items.perApp.items = 6
    life.limits.items.perApp.bytes = 200
    life.limits.items.perUser.items = 6
    life.limits.items.perUser.bytes = 200
    model.itemQuota = (6, 200)
    try changeManifests()
  }

  mutating func step(isLast: Bool) throws {
    life.now += random.one(of: [0, 0, 0, 1_000, 2_500])
    if random.once(in: 60) { try changeManifests() }
    if random.once(in: 80) { life.restart() }
    if random.once(in: 25) { try compareSnapshots() }
    try ask(isLast ? "seal" : nil)
  }

  private mutating func ask(_ given: String?) throws {
    let number =
      random.once(in: 8)
      ? nil : random.once(in: 4) ? Int.random(in: 1...90, using: &random) : Int.random(in: 1...4, using: &random)
    let actor = given == nil ? random.one(of: Self.cast).session(number) : Self.cast[0]
    // Only here: a daemon lets one connection at a time have the fleet open.
    let digit = "\(Int.random(in: 1...5, using: &random))"
    let opening = random.once(in: 80) ? "fleet open run=\(String(repeating: digit, count: 32))" : nil
    let wanted = given ?? opening ?? model.request(of: apps, groups: Self.groups, tellsTime: true, &random)
    guard let line = bindings.line(wanted) else { throw Difference("\(wanted): it was never told what that is") }
    let last = life.registry.lastEvent
    let expected = model.answer(wanted, by: actor.model, at: life.now + 1)
    let answer = life.answer(line, as: actor.real)
    guard bindings.matches(expected, answer) else {
      throw Difference("\(actor.model.app) asks '\(line)': \(answer) where \(expected) is right")
    }
    try compareEvents(after: last, "\(actor.model.app) asks '\(line)'")
    try checkLoss(of: line, after: last)
    let verb = line.split(separator: " ").prefix(2).joined(separator: " ")
    let outcome = expected[0].hasPrefix("ERR") ? expected[0] : expected[0].hasPrefix("*") ? "*" : "OK"
    outcomes["\(verb): \(outcome)", default: 0] += 1
  }

  /// Events that something was lost.
  private static let losses: Set = [
    "device changed", "device ended", "installation changed", "installation ended", "vendor changed", "vendor ended",
    "app uninstalled", "devices removed", "devices replaced", "account changed", "item replaced", "item updated",
    "item deleted", "token replaced", "token invalidated", "token deleted",
  ]

  /// Checks that a verb loses nothing if its row says so, and that a dry run changes nothing.
  private func checkLoss(of line: String, after last: Int64) throws {
    let events = life.events[Int(last)...].map { "\($0.topic.rawValue) \($0.name)" }
    let words = line.split(separator: " ").map(String.init)
    if words.contains("dry-run=yes"), !events.isEmpty { throw Difference("'\(line)' changes something: \(events)") }
    guard !Self.losses.isDisjoint(with: events) else { return }
    guard let verb = VerbTable.verb(of: words), case .nothing = verb.loss else { return }
    throw Difference("'\(line)' loses something, and its row in the table of verbs says that it does not: \(events)")
  }

  private mutating func changeManifests() throws {
    // The daemon surveys no manifests for a sealed store.
    guard !life.registry.isSealed else { return }
    var found: [String: ReferenceModel.Manifest] = [:]
    for app in ["org.a", "org.b", "org.c", "org.d", "org.e"] where !random.once(in: 5) {
      let hasUnit = random.once(in: 2)
      found[app] = .init(
        vendor: random.one(of: ["org.v", "org.v", "org.w", app]), device: random.one(of: ["shared", "vendor", "app"]),
        order: random.one(of: ["numeric", "semver", "debian", "linux", "auto"]),
        groups: ["org.shared", "org.media", "org.a"].filter { _ in random.once(in: 2) },
        // No peer is this app, so that its right changes the list only.
        rights: app == "org.e" && random.once(in: 2) ? ["fleet"] : [], unit: hasUnit ? "\(app).service" : nil,
        container: hasUnit ? nil : "in-\(app)")
    }
    let last = life.registry.lastEvent
    model.install(found, at: life.now + 1)
    life.install(
      try Dictionary(
        uniqueKeysWithValues: found.map { id, said in
          var manifest = Manifest(
            Text(said.vendor), unit: said.unit.map { Text($0) }, groups: said.groups.map { Text($0) })
          manifest.deviceBinding = try #require(Manifest.DeviceBinding(rawValue: said.device))
          manifest.versionOrder = try #require(VersionOrder(rawValue: said.order))
          manifest.container = said.container.map { Text($0) }
          manifest.rights = Set(said.rights.compactMap(Right.init))
          return (Text(id), manifest)
        }))
    try compareEvents(after: last, "the manifests are \(found)")
  }

  /// Checks the new events, and which peers see them, against the model.
  private mutating func compareEvents(after last: Int64, _ what: String) throws {
    guard Int(life.registry.lastEvent) == model.events.count, life.events.count == model.events.count else {
      throw Difference("\(what): \(life.told(from: last + 1)) where \(model.events[Int(last)...].map(\.text)) is right")
    }
    for (event, expected) in zip(life.events[Int(last)...], model.events[Int(last)...]) {
      let line = Life.line(event)
      guard bindings.matches(expected.text, line) else {
        throw Difference("\(what): '\(line)' where '\(expected.text)' is right")
      }
      outcomes["event \(event.topic.rawValue) \(event.name)", default: 0] += 1
      try compareAudience(event, expected)
    }
    // The present rights apply to earlier events too.
    guard random.once(in: 10), !model.events.isEmpty else { return }
    let place = Int.random(in: 0..<model.events.count, using: &random)
    try compareAudience(life.events[place], model.events[place])
  }

  private func compareAudience(_ event: Event, _ expected: ReferenceModel.Event) throws {
    for actor in Self.cast
    where life.registry.may(actor.real, see: event.audience, of: event.topic) != model.hears(actor.model, expected) {
      throw Difference("\(actor.model.app) hears of '\(expected.text)': \(!model.hears(actor.model, expected))")
    }
  }

  private mutating func compareSnapshots() throws {
    let actor = random.one(of: Self.cast)
    var output: [UInt8] = []
    life.registry.snapshot(of: Set(Topic.allCases), for: actor.real).append(to: &output)
    var rows = String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    for expected in model.snapshot(for: actor.model) {
      guard let place = rows.firstIndex(where: { bindings.matches(expected, $0) }) else {
        throw Difference("the snapshot of \(actor.model.app) has no '\(expected)': \(rows)")
      }
      rows.remove(at: place)
    }
    guard rows.isEmpty else { throw Difference("the snapshot of \(actor.model.app) has \(rows) besides") }
    let total = life.registry.items.total
    guard total.items == model.items.count, total.bytes == model.items.reduce(0, { $0 + $1.size }) else {
      throw Difference("\(total) where \(model.items.count) items are")
    }
  }
}

/// A difference between the registry and the model.
private struct Difference: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

@Suite(.tags(.trial)) struct ReferenceModelTests {
  @Test func `rows 40 and 40d: random requests and kills give the answers and events of the reference model`() throws {
    let sessions = Trial.rounds(50, long: 2_000)
    let steps = 1_000
    var outcomes: [String: Int] = [:]
    var lost = 0
    for seed in 1...UInt64(sessions) {
      do {
        var session = try Session(seed)
        for number in 1...steps {
          do {
            try session.step(isLast: number == steps - 20)
          } catch {
            throw Difference("session \(seed), step \(number): \(error)")
          }
        }
        outcomes.merge(session.outcomes) { $0 + $1 }
      } catch {
        lost += 1
        Issue.record(error)
        if lost == 10 { break }
      }
    }
    // Every outcome must have occurred, otherwise the test proves little.
    for outcome in Self.wanted {
      let count = outcomes.filter { $0.key.hasPrefix(outcome) }.reduce(0) { $0 + $1.value }
      #expect(count >= 3 || Trial.isShort, "\(outcome): \(count)")
    }
    try Trial("requests of random sessions against the reference model").report(tried: sessions * steps, lost: lost)
  }

  private static let wanted =
    [
      "get device: OK", "get device: ERR denied", "get device: ERR not-found", "get installation: OK", "get vendor: OK",
      "history device: *", "resolve", "migrate device: OK", "migrate device: ERR conflict",
      "migrate device: ERR invalid-uuid", "migrate device: ERR denied", "migrate device: ERR not-found",
      "migrate installation: OK", "app list: *", "app forget: OK", "app forget: ERR denied", "app forget: ERR conflict",
      "app forget: ERR not-found", "account: OK", "account: ERR denied", "account set: OK", "account clear: ERR denied",
      "devices: *", "devices name: OK", "devices put: OK", "devices put: ERR denied", "devices remove: ERR not-found",
      "devices forget: ERR conflict", "renew device: OK", "renew device: *", "renew vendor: ERR not-found",
      "item add: OK", "item add: ERR exists", "item add: ERR denied", "item add: ERR limit", "item put: OK",
      "item put: ERR limit", "item read: OK", "item read: ERR denied", "item read: ERR not-found",
      "item read: ERR conflict", "item find: *",
      "item find: ERR denied", "item update: OK", "item update: ERR limit", "item update: ERR conflict",
      "item delete: OK",
      "item delete: ERR denied", "item delete: *", "token delete: *",
      "version report: OK", "version report: ERR unavailable", "version state: OK", "version history: *",
      "version claim: OK", "token put: OK", "token get: OK", "token list: *", "token list: ERR denied",
      "token invalidate: OK", "token delete: OK", "item put: ERR unavailable", "seal: OK",
    ] + events

  private static let events = [
    "device created", "device changed", "installation created", "installation changed", "installation ended",
    "vendor created", "vendor ended", "app installed", "app suspended", "app uninstalled", "devices added",
    "devices changed", "devices removed", "devices replaced", "account changed", "item added", "item replaced",
    "item updated", "item deleted",
    "version installed", "version updated", "version upgraded", "version downgraded", "token created",
    "token replaced", "token invalidated", "token deleted", "token rehomed", "device ended",
  ].map { "event \($0)" }
}
