import IdentityCore
import IdentityWire
import ReferenceModel
import TestSupport
import Testing

extension AccessScene.Actor {
  fileprivate var peer: Peer {
    Peer(
      app: Text(app), userID: UInt32(user), groupID: 1, processID: 3, place: PeerPlace(),
      session: .process(1, start: 1), isAdmin: isAdmin)
  }
}

/// Returns a `Life` in which every actor has data of every kind, and this device belongs to an account.
private func scene() throws -> Life {
  var life = Life()
  let actors = AccessScene.actors
  life.install(manifests(actors))
  let system = try life.registry.systemReport(Release(version: "13"), boot: given(9), life.context(nil))
  life.take(system)
  var lines = [
    "get device", "get installation", "get vendor", "version report 1", "version claim m", "token put p one",
  ]
  lines.append("item put service=s account=a data=eA== attr.x=y")
  for actor in actors { for line in lines { try life.tell(line, as: actor.peer) } }
  for group in ["org.shared", "org.media"] {
    try life.tell("item put service=s account=a group=\(group) data=eA==", as: root)
  }
  try life.tell("account set alice", as: root)
  // Empties the group of the app that is then uninstalled, because the access rules expect no items in such a group.
  try life.tell("item delete service=s", as: peer("org.gone"))
  life.install(manifests(actors.filter { !$0.isGone }))
  return life
}

private func manifests(_ actors: [AccessScene.Actor]) -> [Text: Manifest] {
  var found: [Text: Manifest] = [:]
  for actor in actors {
    guard let said = actor.manifest else { continue }
    let device = Manifest.DeviceBinding(rawValue: said.device) ?? .shared
    var manifest = Manifest(Text(said.vendor), device: device, groups: said.groups.map { Text($0) })
    manifest.rights = Set(said.rights.compactMap(Right.init(rawValue:)))
    found[Text(actor.app)] = manifest
  }
  return found
}

extension Life {
  /// Sends a request that must succeed.
  mutating func tell(_ line: String, as peer: Peer) throws {
    let answer = answer(line, as: peer)
    try #require(answer.last?.hasPrefix("OK") == true, "\(peer.app): \(line): \(answer)")
  }
}

extension AccessRule {
  /// The table of access, and a rule for each verb that has no line there.
  fileprivate static let all = table + VerbTable.verbs.filter { !$0.hasLine }.map { AccessRule(of: $0) }

  /// Creates the rule that the row of a verb states: the verb is for admins or for the fleet, or a request that names another app is.
  private init(of verb: Verb) {
    let grant: Grant =
      switch verb.access {
      case .admin: .admins
      case .fleet: .fleet
      case .app: verb.attributes.contains { $0.name == "app" } ? .app : .anybody
      }
    self.init(verb.examples.first?.request ?? verb.words, grant, nil)
  }
}

extension Verb {
  /// Whether the verb has a line in the table of access.
  fileprivate var hasLine: Bool {
    AccessRule.table.contains { $0.line == words || $0.line.hasPrefix(words + " ") }
  }
}

@Suite(.tags(.trial)) struct AccessTableTests {
  @Test func `every verb about items has its line in the table of access`() {
    for verb in VerbTable.verbs where verb.attributes.contains(where: { $0.name == "group" }) {
      #expect(verb.hasLine, "\(verb.words)")
    }
  }

  @Test func `row 40: every peer gets for each verb, app and group the answer that the table says`() throws {
    let scene = try scene()
    var tried = 0
    var lost = 0
    for rule in AccessRule.all {
      for actor in AccessScene.actors {
        for target in AccessScene.targets {
          guard let line = rule.line(naming: target) else { continue }
          var life = scene
          let last = life.registry.lastEvent
          let answer = life.answer(line, as: actor.peer)
          let code = Self.code(answer)
          tried += 1
          // Verbs that need a running daemon (`granted` is nil) can only be refused by the parser here.
          let expected = rule.outcome(for: actor, naming: target)
          let isRight =
            expected == nil ? code != "denied" : rule.granted == nil && code == "unavailable" || code == expected
          if !isRight {
            lost += 1
            Issue.record("\(actor.app) asks '\(line)': \(answer) where \(expected ?? "anything but denied") is right")
          }
          // A refused request must change nothing.
          if code != "OK", life.registry.lastEvent != last { Issue.record("\(line): \(life.told(from: last + 1))") }
        }
      }
    }
    #expect(tried > 4_000)
    try Trial("peers, verbs and targets against the table of access").report(tried: tried, lost: lost)
  }

  @Test func `an identifier can be resolved by peers that may read it, and by no others`() throws {
    let scene = try scene()
    for scope in scene.registry.scopes {
      let value = try #require(scene.registry[scope]?.value)
      for actor in AccessScene.actors {
        let vendors = actor.isGone ? [] : [actor.manifest?.vendor ?? actor.app]
        let mayRead =
          switch scope {
          case .installation(let app), .deviceOfApp(let app): "\(app)" == actor.app
          case .vendor(let vendor), .deviceOfVendor(let vendor): vendors.contains("\(vendor)")
          case .device: !actor.isGone && actor.manifest?.device ?? "shared" == "shared"
          }
        var life = scene
        let answer = life.answer("resolve \(value)", as: actor.peer)
        #expect((Self.code(answer) == "OK") == (mayRead || actor.isAdmin), "\(actor.app) resolves \(scope)")
        // The answer must equal, byte for byte, the answer for an identifier that never existed.
        if !mayRead, !actor.isAdmin { #expect(answer == life.answer("resolve \(given(77))", as: actor.peer)) }
      }
    }
  }

  /// Compares two copies of one scene. In the second copy strangers make further requests, then the peer asks both.
  @Test func `rows 40 and 40d: no answer, event or snapshot depends on data that the peer may not see`() throws {
    let scene = try scene()
    let strangers = AccessScene.actors.filter { ["org.c", "user:1002", "unit:plain.service"].contains($0.app) }
    let peers = AccessScene.actors.filter { actor in !actor.isAdmin && !strangers.contains { $0.app == actor.app } }
    let lines = AccessRule.all.flatMap { rule in AccessScene.targets.compactMap { rule.line(naming: $0) } }
      .filter { !$0.hasPrefix("help") }
    var random = SeededGenerator(40)
    var tried = 0
    var lost = 0
    for _ in 1...Trial.rounds(10, long: 200) {
      var (quiet, busy) = (scene, scene)
      var model = ReferenceModel()
      for _ in 1...60 {
        let stranger = random.one(of: strangers)
        let request = model.request(of: [stranger.app], groups: ["org.media"], tellsTime: false, &random)
        _ = model.answer(request, by: .init(app: stranger.app, user: stranger.user, author: ""), at: busy.now)
        if !request.contains("<") { _ = busy.answer(request, as: stranger.peer) }
      }
      #expect(busy.registry.lastEvent > scene.registry.lastEvent)
      for peer in peers {
        // The right fleet is for the tokens and versions of all apps.
        let topics = Set(Topic.allCases).subtracting(peer.hasFleet ? [.token, .version] : [])
        // No event of the strangers may be visible to the peer.
        for event in busy.events[Int(scene.registry.lastEvent)...]
        where topics.contains(event.topic) && busy.registry.may(peer.peer, see: event.audience, of: event.topic) {
          lost += 1
          Issue.record("\(peer.app) hears '\(Life.line(event))'")
        }
        if quiet.registry.snapshot(of: topics, for: peer.peer) != busy.registry.snapshot(of: topics, for: peer.peer) {
          lost += 1
          Issue.record("the snapshot of \(peer.app) tells of strangers")
        }
        for line in Trial.isLong ? lines : lines.filter({ _ in random.once(in: 4) }) {
          if peer.hasFleet, line.hasSuffix("app=*") || line.hasPrefix("token invalidate ") { continue }
          tried += 1
          quiet.now = max(quiet.now, busy.now)
          busy.now = quiet.now
          var (first, second) = (quiet, busy)
          let answers = (first.answer(line, as: peer.peer), second.answer(line, as: peer.peer))
          if Self.masked(answers.0, but: scene) != Self.masked(answers.1, but: scene) {
            lost += 1
            Issue.record("\(peer.app) asks '\(line)' and learns of strangers: \(answers)")
          }
        }
      }
    }
    try Trial("answers that could tell of what the peer may not see").report(tried: tried, lost: lost)
  }

  private static func code(_ answer: [String]) -> String {
    let words = (answer.last ?? "").split(separator: " ")
    return words.first == "ERR" && words.count > 1 ? String(words[1]) : String(words.first ?? "")
  }

  /// Returns an answer with `new` in place of each identifier that the answer created.
  private static func masked(_ answer: [String], but scene: Life) -> [String] {
    answer.map { line in
      line.split(separator: " ", omittingEmptySubsequences: false).map { word in
        let value = word.split(separator: "=").last.flatMap { UUID(Text(String($0))) }
        guard let value, !scene.registry.identifiers(valued: value).contains(where: { _ in true }), value != given(1)
        else { return "\(word)" }
        return "new"
      }.joined(separator: " ")
    }
  }
}
