extension RequestLine {
  /// With the attributes that name an item.
  fileprivate func item(_ key: ItemKey) -> RequestLine {
    attribute("service", key.service).attribute("account", key.account).attribute("group", key.group)
  }

  /// With a new item.
  fileprivate func item(_ key: ItemKey, _ secret: Secret, _ description: ItemDescription) -> RequestLine {
    item(key).attribute("label", description.label).attributes(description.attributes)
      .flag("this-device-only", description.isThisDeviceOnly)
      .attribute("lifetime", description.endsWithInstallation ? "installation" : nil).secret(secret)
  }

  /// With the attributes that say which items are meant.
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

/// Whether an item is a new one.
public enum ItemOutcome: String, Hashable, Sendable {
  /// There was none of that key.
  case created
  /// It is in the place of another one.
  case replaced
}

extension IdentityRequest where Answer == Void {
  /// Adds an item; ``IdentityError/Code/exists`` where there is one of that key.
  ///
  /// - Parameters:
  ///   - key: what it is found by.
  ///   - secret: at most 32 KiB.
  ///   - description: what is said of it.
  public static func addItem(
    _ key: ItemKey, secret: Secret, _ description: ItemDescription = ItemDescription()
  ) -> IdentityRequest {
    IdentityRequest(.change("item add").item(key, secret, description)) { (_) throws(IdentityError) in }
  }

  /// Changes what is given of an item, and leaves the rest as it is.
  ///
  /// - Parameters:
  ///   - key: what it is found by.
  ///   - secret: at most 32 KiB; nil to leave it.
  ///   - label: nil to leave it, empty to remove it.
  ///   - attributes: those to change; one with an empty value is removed.
  public static func updateItem(
    _ key: ItemKey, secret: Secret? = nil, label: String? = nil, attributes: [String: String] = [:]
  ) -> IdentityRequest {
    let line = RequestLine.change("item update").item(key).attribute("label", label).attributes(attributes)
      .secret(secret)
    return IdentityRequest(line) { (_) throws(IdentityError) in }
  }
}

extension IdentityRequest where Answer == ItemOutcome {
  /// Adds an item, or replaces the one of that key.
  ///
  /// - Parameters:
  ///   - key: what it is found by.
  ///   - secret: at most 32 KiB.
  ///   - description: what is said of it.
  public static func putItem(
    _ key: ItemKey, secret: Secret, _ description: ItemDescription = ItemDescription()
  ) -> IdentityRequest {
    IdentityRequest(.change("item put").item(key, secret, description)) { (fields) throws(IdentityError) in
      try fields.choice(["created": .created, "replaced": .replaced])
    }
  }
}

extension IdentityRequest where Answer == Item {
  /// An item with its secret.
  public static func readItem(_ key: ItemKey) -> IdentityRequest {
    IdentityRequest(.question("item read").item(key).takingSecret()) { (fields) throws(IdentityError) in
      try Item(fields)
    }
  }
}

extension IdentityRequest where Answer == [ItemEntry] {
  /// The items that meet a condition, without their secrets; none where there are none.
  ///
  /// - Parameters:
  ///   - condition: which are meant.
  ///   - limit: as many at most; nil for all.
  public static func findItems(_ condition: ItemCondition, limit: Int? = nil) -> IdentityRequest {
    let line = RequestLine.question("item find").condition(condition).attribute("limit", limit.map { "\($0)" })
    return IdentityRequest(line, whenNotFound: []) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try ItemEntry(row) }
    }
  }
}

extension IdentityRequest where Answer == Int {
  /// Deletes the items that meet a condition, and tells how many there were. At least one condition besides the group, or
  /// a named group, has to be given.
  public static func deleteItems(_ condition: ItemCondition) -> IdentityRequest {
    IdentityRequest(.change("item delete").condition(condition), whenNotFound: 0) { (fields) throws(IdentityError) in
      guard let count = Int(try fields.word(0)) else { throw .brokenAnswer("word 1 is not a number") }
      return count
    }
  }
}
