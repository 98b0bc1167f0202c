import IdentityCore

extension Verb {
  /// The verbs about items (identityd-protocol(7), section ITEMS).
  static let items: [Verb] = [
    storing(
      "item add", "Add an item: a secret that is identified by group, service and account.",
      .init("item add service=mail account=alice data=aHVudGVyMg==", "OK"), replaces: false),
    storing(
      "item put", "Add an item, or replace the item of the same group, service and account.",
      .init("item put service=mail account=alice data=aHVudGVyMg== label=\"My mail\" attr.host=mx1", "OK replaced"),
      replaces: true),

    Verb(
      words: "item read", attributes: condition,
      summary: "Show the secret and the attributes of the item that matches every condition, at least one.",
      answer: .object(Line([], [.base64("data")] + shown)),
      loss: .nothing,
      examples: [
        .init("item read service=mail account=alice", "OK data=aHVudGVyMg== service=mail account=alice group=<word> …")
      ]
    ) { (arguments) throws(Refusal) in
      let condition = try arguments.condition(inAnyGroup: false)
      try arguments.requireCondition(condition)
      return .registry(condition.exactName.map { .readItem($0) } ?? .readItem(matching: condition))
    },

    Verb(
      words: "item find",
      attributes: [.init("service", "S"), .init("account", "A"), .init("group", "G|*")] + described
        + [.secretsFlag("data"), .init("limit", "one|all|N")],
      summary: "List the items that match every condition, with their secrets if they are asked for.",
      answer: .either(
        ifGiven: ["data"], .list(Line([], [.base64("data").optional] + shown)), otherwise: .list(Line([], shown))),
      loss: .nothing,
      examples: [
        .init("item find service=mail limit=one", "* service=mail account=alice group=<word> …", "OK 1"),
        .init("item find service=mail data=yes", "* data=aHVudGVyMg== service=mail account=alice …", "OK 1"),
        .init("item find service=news", "ERR not-found …"),
      ]
    ) { (arguments) throws(Refusal) in
      let condition = try arguments.condition(inAnyGroup: true)
      let limit = try arguments.limit()
      return .registry(
        try arguments.flag("data") ? .findSecrets(condition, limit: limit) : .findItems(condition, limit: limit))
    },

    Verb(
      words: "item update",
      attributes: place + [.init("where.label", "L"), .prefixed(conditionPrefix, "NAME", "V")]
        + [.secret("data", isRequired: false)] + described,
      summary:
        "Change properties of the item that matches every condition; an empty label or attribute is removed.",
      answer: .nothing,
      loss: .named, examples: [.init("item update service=mail account=alice label=\"\"", "OK")]
    ) { (arguments) throws(Refusal) in
      let update = ItemUpdate(
        secret: arguments.secret("data"), label: try arguments.label(), attributes: try arguments.named(attributePrefix)
      )
      let condition = try arguments.updateCondition()
      try arguments.requireCondition(condition, of: "service=, account=, group=, where.label= or where.attr.NAME=")
      return .registry(
        condition.exactName.map { .updateItem($0, update) } ?? .updateItem(matching: condition, update))
    },

    Verb(
      words: "item delete",
      attributes: condition + [.init("dry-run", "yes")],
      summary: "Delete the items that match every condition, at least one, or list what matches now.",
      answer: .either(
        ifGiven: ["dry-run"], .list(Line([], shown + [.boolean("own").optional])),
        otherwise: .object(Line([.number("deleted")]))),
      loss: .askIfMore("Every item that matches when the request is carried out is deleted. These match now:"),
      examples: [
        .init("item delete service=mail dry-run=yes", "* service=mail account=alice group=<word> …", "OK 1"),
        .init("item delete service=mail account=alice", "OK 1"),
      ]
    ) { (arguments) throws(Refusal) in
      let condition = try arguments.condition(inAnyGroup: false)
      try arguments.requireCondition(condition)
      return .registry(try arguments.flag("dry-run") ? .previewDeletion(condition) : .deleteItems(condition))
    },
  ]

  /// The properties of an item in an answer.
  private static let shown: [Field] = [
    .word("service"), .word("account"), .word("group"), .word("label").optional,
    .prefixed(attributePrefix, named: "attributes"), .time("created"), .time("modified"),
    .boolean("this-device-only").optional, .word("lifetime").optional, .word("state").optional,
    .word("reason").optional,
  ]

  /// The prefix of the attributes that an item to be changed must have. Without it they are the new values.
  fileprivate static let conditionPrefix = "where.attr."

  /// The group, service and account of an item, each optional.
  private static let place: [Attribute] = [.init("service", "S"), .init("account", "A"), .init("group", "G")]

  /// The conditions for items of one group.
  private static let condition = place + described

  /// The prefix of the names of an item's own attributes.
  fileprivate static let attributePrefix = "attr."

  /// The attributes that name an item.
  private static let itemName: [Attribute] = [
    .required("service", "S"), .required("account", "A"), .init("group", "G"),
  ]

  /// The attributes that describe an item.
  private static let described: [Attribute] = [.init("label", "L"), .prefixed(attributePrefix, "NAME", "V")]

  /// Declares `item add` or `item put`, which take the same words.
  private static func storing(_ words: String, _ summary: String, _ example: Example, replaces: Bool) -> Verb {
    Verb(
      words: words,
      attributes: itemName + [.secret("data")] + described
        + [.init("this-device-only", "yes"), .init("lifetime", "installation")], summary: summary,
      answer: replaces ? .object(Line([.word("result")])) : .nothing, loss: replaces ? .named : .nothing,
      examples: [example]
    ) { (arguments) throws(Refusal) in
      let description = ItemDescription(
        label: try arguments.label(), attributes: try arguments.named(attributePrefix),
        isThisDeviceOnly: try arguments.flag("this-device-only"),
        endsWithInstallation: try arguments.endsWithInstallation())
      return .registry(
        .storeItem(try arguments.itemName(), try arguments.requiredSecret("data"), description, replaces: replaces))
    }
  }
}

extension Arguments {
  /// Returns the name of one item.
  ///
  /// - Parameter account: the name of the attribute with the account.
  func itemName(account: String = "account") throws(Refusal) -> ItemName {
    ItemName(
      service: try name(try required("service"), named: "service"),
      account: try name(try required(account), named: account), group: try group())
  }

  /// Returns the access group, or nil if the request names none.
  private func group() throws(Refusal) -> Text? {
    guard let given = self["group"] else { return nil }
    guard given != "*" else { throw notAllowed("group", given, "the name of one group; only 'item find' takes *") }
    return try name(given, named: "group")
  }

  /// Returns the condition that selects items.
  ///
  /// - Parameter inAnyGroup: whether `group=*` is allowed.
  fileprivate func condition(inAnyGroup: Bool) throws(Refusal) -> ItemCondition {
    let looksEverywhere = inAnyGroup && self["group"] == "*"
    let groups: ItemCondition.Groups =
      looksEverywhere ? .all : try group().map(ItemCondition.Groups.named) ?? .own
    return ItemCondition(
      groups: groups, service: try optionalName("service"), account: try optionalName("account"), label: try label(),
      attributes: try named(Verb.attributePrefix))
  }

  /// Returns the condition that selects the item of an `item update`, whose `label=` and `attr.NAME=` are new values.
  fileprivate func updateCondition() throws(Refusal) -> ItemCondition {
    ItemCondition(
      groups: try group().map(ItemCondition.Groups.named) ?? .own, service: try optionalName("service"),
      account: try optionalName("account"),
      label: try self["where.label"].map { (given) throws(Refusal) in try itemText(given, named: "where.label") },
      attributes: try named(Verb.conditionPrefix))
  }

  /// Checks that there is a condition, so that no item is used by oversight.
  fileprivate func requireCondition(
    _ condition: ItemCondition, of names: String = "service=, account=, group=, label= or attr.NAME="
  ) throws(Refusal) {
    if condition.isEmpty { throw combination("give at least one condition: \(names)") }
  }

  private func optionalName(_ attribute: String) throws(Refusal) -> Text? {
    guard let given = self[attribute] else { return nil }
    return try name(given, named: attribute)
  }

  /// Returns the label, or nil if none is given. An empty label stays an empty label.
  fileprivate func label() throws(Refusal) -> Text? {
    guard let given = self["label"] else { return nil }
    return try itemText(given, named: "label")
  }

  /// Returns the largest number of items to list, or nil for all items.
  fileprivate func limit() throws(Refusal) -> Int? {
    switch self["limit"] {
    case nil, "all"?: return nil
    case "one"?: return 1
    case let text?:
      guard let number = Self.decimal(text), number > 0 else {
        throw notAllowed("limit", text, "one, all, or a number from 1")
      }
      return number
    }
  }

  /// Returns whether `lifetime=installation` is given. No other value is allowed.
  fileprivate func endsWithInstallation() throws(Refusal) -> Bool {
    switch self["lifetime"] {
    case nil: return false
    case "installation"?: return true
    case let text?: throw notAllowed("lifetime", text, "installation")
    }
  }
}
