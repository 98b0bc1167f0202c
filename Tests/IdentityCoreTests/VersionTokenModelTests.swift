import IdentityCore
import TestSupport
import Testing

/// One step, applied both to the registry and to the model.
private enum Step {
  case ask(RegistryCommand, Peer)
  case manifests([Text: VersionTokenModel.Said])
}

@Suite struct VersionTokenModelTests {
  private static let peers = [
    root, orgA, orgB, orgC, alice, service("one", of: 1_000), service("two", of: 1_000),
  ]

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `random version and token requests give the answers and content of plain arrays`(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var life = Life()
    var model = VersionTokenModel()
    var outcomes: [String: Int] = [:]
    for number in 0...1_500 {
      let step = number == 0 ? .manifests(Self.manifests(&random)) : Self.step(&random)
      let last = life.registry.lastEvent
      life.now += random.one(of: [0, 0, 1_000, 2_500])
      let (expected, answer) = carryOut(step, &life, &model)
      try #require(answer == expected, "seed \(seed), step \(number): \(step)")
      try #require(
        life.told(of: .version, from: last + 1) == model.told.versions, "seed \(seed), step \(number): \(step)")
      try #require(life.told(of: .token, from: last + 1) == model.told.tokens, "seed \(seed), step \(number): \(step)")
      try #require(Set(life.registry.apps.keys) == model.apps, "seed \(seed), step \(number): \(step)")
      if number.isMultiple(of: 10) { try compare(life, model, "seed \(seed), step \(number): \(step)") }
      outcomes[name(of: expected), default: 0] += 1
      for told in model.told.versions + model.told.tokens {
        outcomes["event \(told.prefix { $0 != " " })", default: 0] += 1
      }
      model.told = ([], [])
    }
    // Every outcome must have occurred, otherwise the test proves little.
    for outcome in [
      "OK installed", "OK unchanged", "OK updated", "OK upgraded", "OK downgraded", "OK first", "OK again",
      "OK created",
      "OK replaced", "OK invalidated", "denied", "notFound", "unavailable", "event installed", "event updated",
      "event upgraded", "event downgraded", "event created", "event replaced", "event invalidated", "event deleted",
      "event rehomed",
    ] {
      #expect(outcomes[outcome, default: 0] > 5, "\(outcome): \(outcomes)")
    }
  }

  private func carryOut(_ step: Step, _ life: inout Life, _ model: inout VersionTokenModel) -> (
    expected: Result<[String], VersionTokenModel.Fault>, answer: Result<[String], VersionTokenModel.Fault>
  ) {
    switch step {
    case .manifests(let said):
      life.install(
        said.mapValues {
          var manifest = Manifest($0.vendor, device: $0.binding)
          manifest.versionOrder = $0.order
          return manifest
        })
      model.install(said)
      return (.success([]), .success([]))
    case .ask(let command, let peer):
      let expected = Result { () throws(VersionTokenModel.Fault) in
        try predict(command, peer, at: life.now + 1, &model)
      }
      let answer = Result { () throws(Refusal) in try life.ask(command, as: peer) }
      // The model only predicts the value of a device identifier.
      let isGet = if case .get = command { true } else { false }
      return (
        expected,
        answer.map { isGet ? ["\($0[0].split(separator: " ")[1])"] : $0 }.mapError { VersionTokenModel.Fault($0) }
      )
    }
  }

  private func predict(_ command: RegistryCommand, _ peer: Peer, at now: Int64, _ model: inout VersionTokenModel)
    throws(VersionTokenModel.Fault) -> [String]
  {
    switch command {
    case .version(let command): return try model.answer(command, peer, at: now)
    case .token(let command): return try model.answer(command, peer, at: now)
    case .get(_, let named): return [model.device(of: try model.app(named, peer))]
    case .renew(_, let named, _): return [model.renew(try model.app(named, peer))]
    case .forget(let app):
      guard model.apps.contains(app) else { throw .notFound }
      model.uninstall(app)
      return ["OK"]
    default: throw .other
    }
  }

  /// Compares the registry with the model.
  private func compare(_ life: Life, _ model: VersionTokenModel, _ place: String) throws {
    for history in life.registry.versions.all {
      let app = try #require(history.subject.app)
      let rows = history.releases.map {
        VersionTokenModel.Row(
          app: app, ran: .init(version: $0.release.version, build: $0.release.build),
          installed: $0.installed.milliseconds, last: $0.last.milliseconds)
      }
      try #require(rows == model.rows.filter { $0.app == app }, "\(place)")
      try #require(
        history.claims.map { VersionTokenModel.Claim(app: app, version: $0.version, name: $0.name) }
          == model.claims.filter { $0.app == app }, "\(place)")
      try #require(
        history.reports.map(\.release.version) == model.reports.filter { $0.app == app }.map(\.ran.version), "\(place)")
      try #require(history.reports.map(\.number) == history.reports.map(\.number).sorted())
    }
    try #require(Set(life.registry.versions.all.map(\.subject.app)) == Set(model.rows.map(\.app)), "\(place)")
    let tokens = life.registry.tokens.all
    try #require(tokens.map(\.value) == model.tokens.map(\.value), "\(place)")
    try #require(tokens.map(\.app) == model.tokens.map(\.app), "\(place)")
    try #require(life.registry.tokens.count == model.tokens.count, "\(place)")
  }

  private func name(of result: Result<[String], VersionTokenModel.Fault>) -> String {
    switch result {
    case .success(let lines): (lines.first ?? "").split(separator: " ").prefix(2).joined(separator: " ")
    case .failure(let fault): "\(fault)"
    }
  }

  // MARK: Random steps

  private static func step(_ random: inout SeededGenerator) -> Step {
    if random.once(in: 40) { return .manifests(manifests(&random)) }
    if random.once(in: 50) {
      return .ask(.forget(app: random.one(of: peers.map(\.app).filter { "\($0)".contains(":") })), root)
    }
    if random.once(in: 50) { return .ask(.renew(.device, app: app(&random), dryRun: false), root) }
    let peer = random.one(of: peers)
    let session =
      random.once(in: 4) ? Int32.random(in: 1...90, using: &random) : Int32.random(in: 1...4, using: &random)
    let isNobody = random.once(in: 8)
    return .ask(command(&random), isNobody ? peer : peer.session(session))
  }

  private static func manifests(_ random: inout SeededGenerator) -> [Text: VersionTokenModel.Said] {
    var said: [Text: VersionTokenModel.Said] = [:]
    for app in ["org.a", "org.b", "org.c"] as [Text] where !random.once(in: 6) {
      said[app] = .init(
        vendor: random.one(of: ["org.v", "org.v", "org.w"]), binding: random.one(of: [.shared, .vendor, .app]),
        order: random.one(of: VersionOrder.allCases))
    }
    return said
  }

  private static func app(_ random: inout SeededGenerator) -> Text? {
    random.once(in: 3) ? random.one(of: peers.map(\.app) + ["org.none"]) : nil
  }

  private static func command(_ random: inout SeededGenerator) -> RegistryCommand {
    let app = app(&random)
    let provider = random.one(of: ["p", "q", "r"] as [Text])
    let value = random.one(of: ["one", "two"] as [Text])
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6:
      let version = random.one(of: VersionTokenModel.ranks.map(\.version))
      return .report(version, random.one(of: [nil, nil, "b", "c"]), of: app)
    case 6: return .state(of: app)
    case 7: return .versions(of: app)
    case 8..<10: return .claim(random.one(of: ["n", "m"]), of: app)
    case 10..<14:
      return .token(
        provider, value, environment: random.once(in: 6) ? "e" : nil, topic: random.once(in: 8) ? "t" : nil, of: app)
    case 14: return .token(of: provider, of: app)
    case 15:
      return .tokens(of: random.once(in: 3) ? .all : .app(named: app), stale: random.one(of: [nil, 0, 10, 1_000]))
    case 16, 17: return .invalidate(provider, value, of: app)
    case 18: return .deleteToken(provider, of: app)
    default: return .get(.device, app: app)
    }
  }
}

extension VersionTokenModel.Fault {
  /// Converts a refusal to a fault of the model.
  fileprivate init(_ refusal: Refusal) {
    self =
      switch refusal {
      case .denied: .denied
      case .notFound: .notFound
      case .unavailable: .unavailable
      default: .other
      }
  }
}
