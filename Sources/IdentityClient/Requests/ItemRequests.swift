extension RequestLine {
  /// Returns the line with the attributes that name an item.
  fileprivate func item(_ key: ItemPrimaryKey) -> RequestLine {
    attribute("service", key.service).attribute("account", key.account).attribute("group", key.group)
  }

  /// Returns the line with the attributes and the secret of a new item.
  fileprivate func item(_ key: ItemPrimaryKey, _ secret: Secret, _ metadata: ItemMetadata) -> RequestLine {
    item(key).attribute("label", metadata.label).attributes(metadata.attributes)
      .flag("this-device-only", metadata.isThisDeviceOnly)
      .attribute("lifetime", metadata.endsWithInstallation ? "installation" : nil).secret(secret)
  }

  /// Returns the line with the attributes of a query.
  ///
  /// - Parameter prefix: the beginning of the names that the request also uses for new values.
  fileprivate func query(_ query: ItemQuery, behind prefix: String = "") -> RequestLine {
    let group: String? =
      switch query.groups {
      case .own: nil
      case .named(let name): name
      case .all: "*"
      }
    return attribute("service", query.service).attribute("account", query.account).attribute("group", group)
      .attribute("\(prefix)label", query.label).attributes(query.attributes, behind: "\(prefix)attr.")
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
  ///   - secret: The secret, at most 64 KiB.
  ///   - metadata: The label, attributes and lifetime of the item.
  public static func addItem(
    _ key: ItemPrimaryKey, secret: Secret, _ metadata: ItemMetadata = ItemMetadata()
  ) -> IdentityRequest {
    IdentityRequest(.change("item add").item(key, secret, metadata)) { (_) throws(IdentityError) in }
  }

  /// Changes the given parts of an item, and leaves the other parts as they are.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if there is no item with this key.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - secret: The new secret, at most 64 KiB; nil to keep the present one.
  ///   - label: The new label; nil to keep the present one, empty to remove it.
  ///   - attributes: The attributes to change. An attribute with an empty value is removed.
  public static func updateItem(
    _ key: ItemPrimaryKey, secret: Secret? = nil, label: String? = nil, attributes: [String: String] = [:]
  ) -> IdentityRequest {
    updateItem(ItemQuery(key), secret: secret, label: label, attributes: attributes)
  }

  /// Changes the given parts of the one item that matches a query, and leaves the other parts as they are.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if no item matches, with ``IdentityError/Code/conflict`` if several do,
  /// and with ``IdentityError/Code/badArgument`` if the query is empty, or if it searches all groups.
  ///
  /// - Parameters:
  ///   - query: The query that only the item matches.
  ///   - secret: The new secret, at most 64 KiB; nil to keep the present one.
  ///   - label: The new label; nil to keep the present one, empty to remove it.
  ///   - attributes: The attributes to change. An attribute with an empty value is removed.
  public static func updateItem(
    _ query: ItemQuery, secret: Secret? = nil, label: String? = nil, attributes: [String: String] = [:]
  ) -> IdentityRequest {
    let line = RequestLine.change("item update").query(query, behind: "where.").attribute("label", label)
      .attributes(attributes).secret(secret)
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
  ///   - secret: The secret, at most 64 KiB.
  ///   - metadata: The label, attributes and lifetime of the item.
  public static func putItem(
    _ key: ItemPrimaryKey, secret: Secret, _ metadata: ItemMetadata = ItemMetadata()
  ) -> IdentityRequest {
    IdentityRequest(.change("item put").item(key, secret, metadata)) { (fields) throws(IdentityError) in
      try fields.choice(["created": .created, "replaced": .replaced])
    }
  }
}

extension IdentityRequest where Answer == DecryptedItem {
  /// Requests an item with its secret.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if there is no item with this key, and with
  /// ``IdentityError/Code/denied`` if the app may not use the access group.
  public static func readItem(_ key: ItemPrimaryKey) -> IdentityRequest { readItem(ItemQuery(key)) }

  /// Requests the one item that matches a query, with its secret.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if no item matches, with ``IdentityError/Code/conflict`` if several do,
  /// and with ``IdentityError/Code/badArgument`` if the query is empty, or if it searches all groups.
  public static func readItem(_ query: ItemQuery) -> IdentityRequest {
    IdentityRequest(.question("item read").query(query).takingSecret()) { (fields) throws(IdentityError) in
      try DecryptedItem(fields)
    }
  }
}

extension IdentityRequest where Answer == [FoundItem] {
  /// Requests the items of the app's own groups that match a query, with their secrets.
  ///
  /// The answer is empty if no item matches the query. Fails with ``IdentityError/Code/limit`` if more than 64 items
  /// match, or if they have more than 256 KiB together, and with ``IdentityError/Code/denied`` for a group that is
  /// neither the app's own nor in its manifest.
  ///
  /// - Parameters:
  ///   - query: The query that each item must match.
  ///   - limit: The maximum number of items; nil for all.
  public static func findSecrets(_ query: ItemQuery, limit: Int? = nil) -> IdentityRequest {
    let line = RequestLine.question("item find").query(query).flag("data", true)
      .attribute("limit", limit.map { "\($0)" }).takingSecret()
    return IdentityRequest(line, whenNotFound: []) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try FoundItem(row) }
    }
  }
}

extension IdentityRequest where Answer == [ItemEntry] {
  /// Requests the items that match a query, without their secrets, in the order in which they were added.
  ///
  /// The answer is empty if no item matches the query.
  ///
  /// - Parameters:
  ///   - query: The query that each item must match.
  ///   - limit: The maximum number of items; nil for all.
  public static func findItems(_ query: ItemQuery, limit: Int? = nil) -> IdentityRequest {
    let line = RequestLine.question("item find").query(query).attribute("limit", limit.map { "\($0)" })
    return IdentityRequest(line, whenNotFound: []) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try ItemEntry(row) }
    }
  }
}

extension IdentityRequest where Answer == Int {
  /// Deletes the items that match a query. The answer is the number of deleted items, 0 if none matched.
  ///
  /// Fails with ``IdentityError/Code/badArgument`` if the query is empty, or if it searches all groups. A named
  /// group alone is enough.
  public static func deleteItems(_ query: ItemQuery) -> IdentityRequest {
    IdentityRequest(.change("item delete").query(query), whenNotFound: 0) { (fields) throws(IdentityError) in
      guard let count = Int(try fields.word(0)) else { throw .brokenAnswer("word 1 is not a number") }
      return count
    }
  }
}
