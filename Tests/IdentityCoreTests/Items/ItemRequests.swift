import IdentityCore

// Short forms of the requests about items. A secret is its own plain text and is not sealed.
extension RegistryCommand {
  /// Returns an `item add` request.
  static func add(
    _ service: Text, _ account: Text = "a", _ secret: String = "x", in group: Text? = nil, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:], onlyHere: Bool = false, whileInstalled: Bool = false
  ) -> RegistryCommand {
    let description = ItemDescription(
      label: label, attributes: Item.attributes(attributes), isThisDeviceOnly: onlyHere,
      endsWithInstallation: whileInstalled)
    return .storeItem(
      ItemName(service: service, account: account, group: group), SealedSecret(secret), description, replaces: false)
  }

  /// Returns an `item put` request.
  static func put(
    _ service: Text, _ account: Text = "a", _ secret: String = "x", in group: Text? = nil, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:], onlyHere: Bool = false, whileInstalled: Bool = false
  ) -> RegistryCommand {
    let description = ItemDescription(
      label: label, attributes: Item.attributes(attributes), isThisDeviceOnly: onlyHere,
      endsWithInstallation: whileInstalled)
    return .storeItem(
      ItemName(service: service, account: account, group: group), SealedSecret(secret), description, replaces: true)
  }

  /// Returns an `item read` request.
  static func read(_ service: Text, _ account: Text = "a", in group: Text? = nil) -> RegistryCommand {
    .readItem(ItemName(service: service, account: account, group: group))
  }

  /// Returns an `item find` request.
  static func find(
    _ service: Text? = nil, _ account: Text? = nil, in groups: ItemCondition.Groups = .own, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:], limit: Int? = nil
  ) -> RegistryCommand {
    .findItems(
      ItemCondition(
        groups: groups, service: service, account: account, label: label, attributes: Item.attributes(attributes)),
      limit: limit)
  }

  /// Returns an `item update` request.
  static func update(
    _ service: Text, _ account: Text = "a", _ secret: String? = nil, in group: Text? = nil, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:]
  ) -> RegistryCommand {
    .updateItem(
      ItemName(service: service, account: account, group: group),
      ItemUpdate(secret: secret.map { SealedSecret($0) }, label: label, attributes: Item.attributes(attributes)))
  }

  /// Returns an `item find data=yes` request.
  static func findSecrets(
    _ service: Text? = nil, _ account: Text? = nil, in groups: ItemCondition.Groups = .own, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:], limit: Int? = nil
  ) -> RegistryCommand {
    .findSecrets(
      ItemCondition(
        groups: groups, service: service, account: account, label: label, attributes: Item.attributes(attributes)),
      limit: limit)
  }

  /// Returns an `item read` request with conditions.
  static func readMatching(
    _ service: Text? = nil, _ account: Text? = nil, in groups: ItemCondition.Groups = .own, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:]
  ) -> RegistryCommand {
    .readItem(
      matching: ItemCondition(
        groups: groups, service: service, account: account, label: label, attributes: Item.attributes(attributes)))
  }

  /// Returns an `item update` request with conditions, which gives the item a new label or secret.
  static func updateMatching(
    _ service: Text? = nil, _ account: Text? = nil, in groups: ItemCondition.Groups = .own, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:], to new: Text? = nil, secret: String? = nil
  ) -> RegistryCommand {
    .updateItem(
      matching: ItemCondition(
        groups: groups, service: service, account: account, label: label, attributes: Item.attributes(attributes)),
      ItemUpdate(secret: secret.map { SealedSecret($0) }, label: new, attributes: []))
  }

  /// Returns an `item delete` request.
  static func delete(
    _ service: Text? = nil, _ account: Text? = nil, in groups: ItemCondition.Groups = .own, label: Text? = nil,
    attributes: KeyValuePairs<Text, Text> = [:]
  ) -> RegistryCommand {
    .deleteItems(
      ItemCondition(
        groups: groups, service: service, account: account, label: label, attributes: Item.attributes(attributes)))
  }

  /// Returns requests with every verb about items, on one group.
  static func everyItemVerb(in group: Text?) -> [RegistryCommand] {
    let groups = group.map(ItemCondition.Groups.named) ?? .own
    return [
      .add("s", in: group), .put("s", in: group), .read("s", in: group), .find(in: groups),
      .find("s", "a", in: groups), .find("s", in: groups, limit: 1), .update("s", in: group),
      .update("s", "a", "y", in: group), .readMatching(in: groups, label: ""),
      .updateMatching(in: groups, label: "", to: "l"), .updateMatching(in: groups, label: "", secret: "y"),
      .delete("s", in: groups), .delete("s", "a", in: groups),
      .migrateFromItem(
        .device, ItemName(service: "s", account: "a", group: group), app: nil, commits: true, forces: false),
      .migrateFromItem(
        .device, ItemName(service: "s", account: "a", group: group), app: nil, commits: false, forces: false),
    ]
  }
}

extension SealedSecret {
  init(_ text: String) { self.init(bytes: Array(text.utf8), length: text.utf8.count) }
}

extension Item {
  /// Returns the attributes in the given order.
  static func attributes(_ pairs: KeyValuePairs<Text, Text>) -> [Attribute] {
    pairs.map { Attribute(name: $0.key, value: $0.value) }
  }

  /// Returns attributes `a0`, `a1`, … with a value of one letter.
  static func attributes(count: Int) -> [Attribute] {
    (0..<count).map { Attribute(name: Text("a\($0)"), value: "v") }
  }
}

extension Life {
  /// Returns a `Life` with three apps. The first two share one group, the last two another. No app may use
  /// another app's own group.
  static func withThreeApps() -> Life {
    var life = Life()
    life.install([
      "org.a": Manifest("org.v", groups: ["org.shared"]),
      "org.b": Manifest("org.v", groups: ["org.shared", "org.media"]),
      "org.c": Manifest("org.w", groups: ["org.media"]),
    ])
    return life
  }

  /// Returns the item with this key, if it exists.
  func item(_ service: Text, _ account: Text = "a", in group: Text) -> Item? {
    registry.items[ItemKey(group: group, service: service, account: account)]
  }

  /// The keys of all items in the order of addition, as `group/service/account`.
  var itemKeys: [String] {
    registry.items.all.sorted { $0.number < $1.number }.map { "\($0.key.group)/\($0.key.service)/\($0.key.account)" }
  }
}

let orgA = peer("org.a")
let orgB = peer("org.b")
let orgC = peer("org.c")
