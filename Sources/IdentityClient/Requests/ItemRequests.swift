extension RequestLine {
  /// Returns the line with the attributes that name an item.
  fileprivate func item(_ key: ItemKey) -> RequestLine {
    attribute("service", key.service).attribute("account", key.account).attribute("group", key.group)
  }

  /// Returns the line with the attributes and the secret of a new item.
  fileprivate func item(_ key: ItemKey, _ secret: Secret, _ description: ItemDescription) -> RequestLine {
    item(key).attribute("label", description.label).attributes(description.attributes)
      .flag("this-device-only", description.isThisDeviceOnly)
      .attribute("lifetime", description.endsWithInstallation ? "installation" : nil).secret(secret)
  }

  /// Returns the line with the attributes of a condition.
  fileprivate func condition(_ condition: ItemCondition) -> RequestLine {
    let group: String? =
      switch condition.groups {
      case .own: nil
      case .named(let name): name
      case .all: "*"
      }
    return attribute("service", condition.service).attribute("account", condition.account).attribute("group", group)
      .attribute("label", condition.label).attributes(condition.attributes)
  }
}

/// The result of putting an item.
public enum ItemOutcome: String, Hashable, Sendable {
  /// No item with this key existed.
  case created
  /// The item replaced one with the same key.
  case replaced
}

extension IdentityRequest where Answer == Void {
  /// Adds an item.
  ///
  /// Fails with ``IdentityError/Code/exists`` if an item with this key exists, with ``IdentityError/Code/denied`` if
  /// the app may not use the access group, and with ``IdentityError/Code/limit`` if a quota is used up.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - secret: The secret, at most 32 KiB.
  ///   - description: The label, attributes and lifetime of the item.
  public static func addItem(
    _ key: ItemKey, secret: Secret, _ description: ItemDescription = ItemDescription()
  ) -> IdentityRequest {
    IdentityRequest(.change("item add").item(key, secret, description)) { (_) throws(IdentityError) in }
  }

  /// Changes the given parts of an item, and leaves the other parts as they are.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if there is no item with this key.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - secret: The new secret, at most 32 KiB; nil to keep the present one.
  ///   - label: The new label; nil to keep the present one, empty to remove it.
  ///   - attributes: The attributes to change. An attribute with an empty value is removed.
  public static func updateItem(
    _ key: ItemKey, secret: Secret? = nil, label: String? = nil, attributes: [String: String] = [:]
  ) -> IdentityRequest {
    let line = RequestLine.change("item update").item(key).attribute("label", label).attributes(attributes)
      .secret(secret)
    return IdentityRequest(line) { (_) throws(IdentityError) in }
  }
}

extension IdentityRequest where Answer == ItemOutcome {
  /// Adds an item, or replaces the item with the same key.
  ///
  /// A replaced item keeps nothing of its old label, attributes and lifetime. Fails with ``IdentityError/Code/denied``
  /// if the app may not use the access group, and with ``IdentityError/Code/limit`` if a quota is used up.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - secret: The secret, at most 32 KiB.
  ///   - description: The label, attributes and lifetime of the item.
  public static func putItem(
    _ key: ItemKey, secret: Secret, _ description: ItemDescription = ItemDescription()
  ) -> IdentityRequest {
    IdentityRequest(.change("item put").item(key, secret, description)) { (fields) throws(IdentityError) in
      try fields.choice(["created": .created, "replaced": .replaced])
    }
  }
}

extension IdentityRequest where Answer == Item {
  /// Requests an item with its secret.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if there is no item with this key, and with
  /// ``IdentityError/Code/denied`` if the app may not use the access group.
  public static func readItem(_ key: ItemKey) -> IdentityRequest {
    IdentityRequest(.question("item read").item(key).takingSecret()) { (fields) throws(IdentityError) in
      try Item(fields)
    }
  }
}

extension IdentityRequest where Answer == [ItemEntry] {
  /// Requests the items that meet a condition, without their secrets, in the order in which they were added.
  ///
  /// The answer is empty if no item meets the condition.
  ///
  /// - Parameters:
  ///   - condition: The condition that each item must meet.
  ///   - limit: The maximum number of items; nil for all.
  public static func findItems(_ condition: ItemCondition, limit: Int? = nil) -> IdentityRequest {
    let line = RequestLine.question("item find").condition(condition).attribute("limit", limit.map { "\($0)" })
    return IdentityRequest(line, whenNotFound: []) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try ItemEntry(row) }
    }
  }
}

extension IdentityRequest where Answer == Int {
  /// Deletes the items that meet a condition. The answer is the number of deleted items, 0 if none met the condition.
  ///
  /// Fails with ``IdentityError/Code/badArgument`` if the condition is empty, or if it searches all groups. A named
  /// group alone is a condition.
  public static func deleteItems(_ condition: ItemCondition) -> IdentityRequest {
    IdentityRequest(.change("item delete").condition(condition), whenNotFound: 0) { (fields) throws(IdentityError) in
      guard let count = Int(try fields.word(0)) else { throw .brokenAnswer("word 1 is not a number") }
      return count
    }
  }
}
