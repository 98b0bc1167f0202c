import IdentityCore
import TestSupport
import Testing

/// One step, applied both to the registry and to the model.
private enum Step {
  case ask(RegistryCommand, Peer)
  case manifests(of: [Text])
}

@Suite struct ItemModelTests {
  private static let manifests: [Text: [Text]] = [
    "org.a": ["org.shared"], "org.b": ["org.shared", "org.media", "org.b"], "org.c": ["org.media"],
  ]
  private static let peers = [
    root, orgA, orgB, orgC, alice, service("one", of: 1_000), service("two", of: 1_000),
  ]
  private static let groups: [Text] =
    peers.map(\.app) + ["org.shared", "org.shared", "org.shared", "org.media", "org.media", "org.none"]

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `random item requests give the answers and the content of the plain model`(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    var life = Life()
    life.limits.itemsPerApp = 5
    life.limits.itemBytesPerApp = 150
    life.limits.itemsPerUser = 5
    life.limits.itemBytesPerUser = 150
    var model = ItemModel(limits: life.limits)
    var outcomes: [String: Int] = [:]
    for number in 0...2_000 {
      let step = number == 0 ? .manifests(of: Self.manifests.keys.sorted()) : Self.step(&random)
      let last = life.registry.lastEvent
      let (expected, answer) = try carryOut(step, &life, &model)
      try #require(answer == expected, "seed \(seed), step \(number): \(step)")
      if number.isMultiple(of: 10) {
        try #require(entries(life) == model.entries, "seed \(seed), step \(number): \(step)")
      }
      try #require(Set(life.registry.apps.keys) == model.apps, "seed \(seed), step \(number): \(step)")
      let told = life.told(from: last + 1).filter { $0.contains(" item ") }
        .map { $0.split(separator: " ").dropFirst().prefix { $0 != ">" }.joined(separator: " ") }
      try #require(told == model.told, "seed \(seed), step \(number): \(step)")
      try #require(life.registry.items.total.items == model.entries.count)
      try #require(life.registry.items.total.bytes == model.entries.reduce(0) { $0 + $1.size })
      // An item that ends with an installation always has an installed owner.
      try #require(model.entries.allSatisfy { !$0.whileInstalled || model.apps.contains($0.owner) })
      model.told = []
      outcomes[expected.map { "\($0.first?.prefix(3) ?? "")" }.mapFailure { "\($0)" }, default: 0] += 1
    }
    // Every outcome must have occurred, otherwise the test proves little.
    for outcome in ["OK", "OK ", "* s", "denied", "notFound", "exists", "limit"] {
      #expect(outcomes[outcome, default: 0] > 15, "\(outcome): \(outcomes)")
    }
  }

  private func carryOut(_ step: Step, _ life: inout Life, _ model: inout ItemModel) throws
    -> (expected: Result<[String], ItemModel.Fault>, answer: Result<[String], ItemModel.Fault>)
  {
    switch step {
    case .manifests(let apps):
      let manifests = Self.manifests.filter { apps.contains($0.key) }
      life.install(manifests.mapValues { Manifest("org.v", groups: $0) })
      model.install(manifests)
      return (.success([]), .success([]))
    case .ask(let command, let peer):
      let expected = Result { () throws(ItemModel.Fault) in try predict(command, peer, at: life.now + 1, &model) }
      let answer = Result { () throws(Refusal) in try life.ask(command, as: peer) }
      return (expected, answer.mapError { ItemModel.Fault($0) })
    }
  }

  private func predict(_ command: RegistryCommand, _ peer: Peer, at now: Int64, _ model: inout ItemModel)
    throws(ItemModel.Fault) -> [String]
  {
    switch command {
    case .item(let command): return try model.answer(command, by: peer, at: now)
    case .forget(let app):
      try model.forget(app)
      return ["OK"]
    default: throw .other
    }
  }

  /// Returns the items of the registry as entries of the model.
  private func entries(_ life: Life) -> [ItemModel.Entry] {
    life.registry.items.all.sorted { $0.number < $1.number }.map { item in
      ItemModel.Entry(
        group: item.key.group, service: item.key.service, account: item.key.account, owner: item.owner,
        label: item.label,
        attributes: Dictionary(item.attributes.map { ($0.name, $0.value) }) { first, _ in first },
        onlyHere: item.isThisDeviceOnly, whileInstalled: item.endsWithInstallation, secret: life.secret(of: item),
        created: item.created.milliseconds, modified: item.modified.milliseconds)
    }
  }

  // MARK: Random steps

  private static func step(_ random: inout SeededGenerator) -> Step {
    if random.once(in: 40) {
      return .manifests(of: manifests.keys.sorted().filter { _ in !random.once(in: 4) })
    }
    let peer = random.one(of: peers)
    if random.once(in: 40) {
      return .ask(.forget(app: random.one(of: peers.map(\.app).filter { "\($0)".contains(":") })), root)
    }
    return .ask(command(&random, by: peer), peer)
  }

  private static func command(_ random: inout SeededGenerator, by peer: Peer) -> RegistryCommand {
    let name = ItemName(
      service: random.one(of: ["s", "t"]), account: random.one(of: ["a", "b"]), group: group(&random, by: peer))
    switch Int.random(in: 0..<16, using: &random) {
    case 0..<7:
      let description = ItemDescription(
        label: label(&random), attributes: attributes(&random), isThisDeviceOnly: random.once(in: 4),
        endsWithInstallation: random.once(in: 3))
      return .item(.store(name, secret(&random), description, replaces: !random.once(in: 3)))
    case 7..<9: return .item(.read(name))
    case 9..<12:
      return .item(.find(condition(&random, by: peer, all: true), limit: random.one(of: [nil, nil, 1, 2, 9])))
    case 12..<14:
      let update = ItemUpdate(
        secret: random.once(in: 2) ? secret(&random) : nil, label: label(&random), attributes: attributes(&random))
      return .item(.update(name, update))
    default:
      var condition = condition(&random, by: peer, all: false)
      if condition.isEmpty { condition.service = "t" }
      return .item(.delete(condition))
    }
  }

  private static func group(_ random: inout SeededGenerator, by peer: Peer) -> Text? {
    let group = random.once(in: 2) ? nil : random.one(of: groups)
    // Never names the own group of an app with a manifest: other tests cover an uninstalled app's
    // access to its own group.
    return group == peer.app && manifests[peer.app] != nil ? nil : group
  }

  private static func label(_ random: inout SeededGenerator) -> Text? {
    random.one(of: [nil, nil, "", "label", "another"])
  }

  private static func attributes(_ random: inout SeededGenerator) -> [Item.Attribute] {
    ["b", "a", "c"].filter { _ in random.once(in: 4) }
      .map { Item.Attribute(name: $0, value: random.one(of: ["", "v", "w"])) }
  }

  private static func secret(_ random: inout SeededGenerator) -> SealedSecret {
    SealedSecret(String(repeating: "x", count: random.one(of: [0, 1, 5, 20, 60])))
  }

  private static func condition(_ random: inout SeededGenerator, by peer: Peer, all: Bool) -> ItemCondition {
    var groups = group(&random, by: peer).map(ItemCondition.Groups.named) ?? .own
    if all, random.once(in: 3) { groups = .all }
    return ItemCondition(
      groups: groups, service: random.one(of: [nil, "s", "t"]), account: random.one(of: [nil, "a", "b"]),
      label: random.once(in: 4) ? label(&random) : nil,
      attributes: random.once(in: 4) ? attributes(&random) : [])
  }
}

extension ItemModel.Fault {
  /// Converts a refusal to a fault of the model.
  fileprivate init(_ refusal: Refusal) {
    self =
      switch refusal {
      case .denied: .denied
      case .notFound: .notFound
      case .exists: .exists
      case .limit: .limit
      default: .other
      }
  }
}

extension Result where Success == String {
  /// Returns the answer, or a name for the failure.
  fileprivate func mapFailure(_ name: (Failure) -> String) -> String {
    switch self {
    case .success(let answer): answer
    case .failure(let failure): name(failure)
    }
  }
}
