// Items and the rights to use them (identityd-protocol(7), section "ITEMS").
//
// The store holds the secrets. The rules only pass sealed secrets on.

// MARK: - Access groups

extension Registry {
  /// Returns whether a peer may use an access group: its app's own, one in its manifest, or any group for an admin.
  func may(_ peer: Peer, use group: Text) -> Bool {
    peer.isAdmin
      || isInstalledOrUnclaimed(peer.app) && (group == peer.app || accessGroups(of: peer.app).contains(group))
  }

  /// Returns the access group that a request means: the app's own if none is named.
  ///
  /// - Throws: `denied` for a group that the peer may not use, whether or not the group has items.
  func group(named: Text?, for peer: Peer) throws(Refusal) -> Text {
    if let itemFault { throw .unavailable(itemFault) }
    guard let named else { return try app(named: nil, by: peer) }
    guard may(peer, use: named) else {
      // An app lacks access to its own group only if it was uninstalled, which `app(named:by:)` reports.
      if named == peer.app { return try app(named: nil, by: peer) }
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "access group \(named.shortened); AccessGroups= of its manifest can grant it")
    }
    return named
  }

  private func key(_ name: ItemName, for peer: Peer) throws(Refusal) -> ItemKey {
    ItemKey(group: try group(named: name.group, for: peer), service: name.service, account: name.account)
  }

  /// Returns the item with a name, if the peer may use its group.
  func item(_ name: ItemName, for peer: Peer) throws(Refusal) -> Item {
    let key = try key(name, for: peer)
    guard let item = items[key] else { throw .notFound("no such item is in group \(key.group.shortened)") }
    return item
  }
}

// MARK: - Rules

extension Registry {
  /// Applies the rule of `item …`.
  func rule(_ command: ItemCommand, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    switch command {
    case .read(let name): return Decision(reply: describe(try item(name, for: peer)))
    case .find(let condition, let limit):
      let found = try matches(condition, for: peer, limit: limit ?? .max)
      guard !found.isEmpty else { throw .notFound("no item matches the conditions") }
      return .rows(found) { Self.attribute($0.item, to: &$1) }
    case .store(let name, let secret, let description, let replaces):
      let key = try key(name, for: peer)
      guard replaces || items[key] == nil else {
        throw .exists("group \(key.group.shortened) already has this item; use 'item put' to replace it")
      }
      guard let context else { return nil }
      return try store(key, secret, description, replaces: replaces, by: peer, context)
    case .update(let name, let update):
      let item = try item(name, for: peer)
      guard update != ItemUpdate() else { return Decision(reply: .done) }
      guard let context else { return nil }
      return try self.update(item, update, context)
    case .delete(let condition):
      // Requires a condition, so that nothing is deleted by oversight, and a single group.
      guard !condition.isEmpty, condition.groups != .all else {
        throw .badArgument(verb: "item delete", .combination("give at least one condition, and one group"))
      }
      let found = try matches(condition, for: peer, limit: context == nil ? 1 : .max)
      guard !found.isEmpty else { throw .notFound("no item matches the conditions") }
      guard context != nil else { return nil }
      return Decision(changes: found.map { .itemDeleted($0.item) }, reply: .done(.number(Int64(found.count))))
    }
  }

  /// Returns up to `limit` items that meet a condition, in the order in which they were added.
  private func matches(_ condition: ItemCondition, for peer: Peer, limit: Int = .max) throws(Refusal) -> [HeldItem] {
    let groups: [Text]
    switch condition.groups {
    case .own: groups = [try group(named: nil, for: peer)]
    case .named(let name): groups = [try group(named: name, for: peer)]
    case .all:
      _ = try group(named: nil, for: peer)
      if peer.isAdmin { return Array(items.held.lazy.filter { condition.isMet(by: $0.item) }.prefix(limit)) }
      groups = usableGroups(of: peer)
    }
    if let service = condition.service, let account = condition.account {
      return Array(
        groups.compactMap { items[held: ItemKey(group: $0, service: service, account: account)] }
          .filter { condition.isMet(by: $0.item) }.inOrder.prefix(limit))
    }
    return Array(groups.flatMap { items.items(in: $0).filter { condition.isMet(by: $0.item) } }.inOrder.prefix(limit))
  }

  /// Returns the groups that a peer may use, each once. A manifest may list the app's own group, or a group twice.
  private func usableGroups(of peer: Peer) -> [Text] { Set([peer.app] + accessGroups(of: peer.app)).sorted() }

  /// Returns all items that a peer may see, in the order in which they were added.
  func visibleItems(to peer: Peer) -> [HeldItem] {
    if peer.isAdmin { return Array(items.held) }
    guard isInstalledOrUnclaimed(peer.app) else { return [] }
    return usableGroups(of: peer).flatMap { Array(items.items(in: $0)) }.inOrder
  }

  /// Returns the answer to `item read`. The server adds the secret.
  private func describe(_ item: Item) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.item = item
    Self.attribute(item, to: &reply)
    return reply
  }

  private static func attribute(_ item: Item, to reply: inout Reply) {
    reply.attribute("service", .text(item.key.service))
    reply.attribute("account", .text(item.key.account))
    reply.attribute("group", .text(item.key.group))
    reply.attribute("label", item.label.map(Reply.Value.text))
    for attribute in item.attributes { reply.attribute("attr.\(attribute.name)", .text(attribute.value)) }
    reply.attribute("created", .time(item.created))
    reply.attribute("modified", .time(item.modified))
    reply.attribute("this-device-only", item.isThisDeviceOnly ? .yesOrNo(true) : nil)
    reply.attribute("lifetime", item.endsWithInstallation ? .string("installation") : nil)
  }
}

// MARK: - Changes

extension Registry {
  private func store(
    _ key: ItemKey, _ secret: SealedSecret, _ description: ItemDescription, replaces: Bool, by peer: Peer,
    _ context: Context
  ) throws(Refusal) -> Decision {
    let before = items[key]
    // An admin who adds an item to another app's own group acts for that app.
    let owner = peer.isAdmin && key.group != peer.app && apps[key.group] != nil ? key.group : peer.app
    var changes: [Change] = []
    if let change = try firstUse(of: owner, context) { changes.append(change) }
    let item = Item(
      key: key, number: before?.number ?? items.lastNumber + 1, edition: try context.random(), owner: owner,
      label: description.label.flatMap { $0.isEmpty ? nil : $0 },
      attributes: description.attributes.filter { !$0.value.isEmpty }.sorted { $0.name < $1.name },
      isThisDeviceOnly: description.isThisDeviceOnly, endsWithInstallation: description.endsWithInstallation,
      secretLength: secret.length, created: before?.created ?? context.now, modified: context.now)
    try requireRoom(for: item, inPlaceOf: before, context.limits)
    changes.append(.itemStored(item, secret, before == nil ? .added : .replaced))
    let reply = replaces ? Reply.done(.string(before == nil ? "created" : "replaced")) : .done
    return Decision(changes: changes, reply: reply)
  }

  private func update(_ item: Item, _ update: ItemUpdate, _ context: Context) throws(Refusal) -> Decision {
    // An unchanged secret has to be encrypted again, because it is encrypted together with the item's other properties.
    let secret = if let given = update.secret { given } else { try context.secret(item) }
    var changed = item
    changed.edition = try context.random()
    changed.modified = context.now
    changed.secretLength = secret.length
    if let label = update.label { changed.label = label.isEmpty ? nil : label }
    changed.attributes.removeAll { old in update.attributes.contains { $0.name == old.name } }
    changed.attributes += update.attributes.filter { !$0.value.isEmpty }
    changed.attributes.sort { $0.name < $1.name }
    try requireRoom(for: changed, inPlaceOf: item, context.limits)
    return Decision(changes: [.itemStored(changed, secret, .updated)], reply: .done)
  }

  /// Checks the quotas of an item's owner and of all apps together.
  ///
  /// Replacing an item of the same holder by one that is not larger always fits.
  ///
  /// - Throws: `limit` with the name of the exceeded quota.
  private func requireRoom(for item: Item, inPlaceOf before: Item?, _ limits: Limits) throws(Refusal) {
    guard item.attributes.count <= Bound.attributesPerItem else {
      throw .limit("an item has at most \(Bound.attributesPerItem) attributes")
    }
    guard items.total.items < limits.items || before != nil,
      items.total.bytes + item.size <= limits.itemBytes || item.size <= before?.size ?? 0
    else {
      throw .limit(
        "all apps together have reached the limit of items ([Limits] Items=, ItemBytes=); delete items first")
    }
    let holder = holder(of: item.owner)
    var usage = items.usage(of: holder)
    let replaced = before.flatMap { self.holder(of: $0.owner) == holder ? $0 : nil }
    if let replaced { usage.remove(replaced) }
    usage.add(item)
    let room = room(for: holder, limits)
    guard usage.items <= room.items || replaced != nil else {
      throw .limit(
        "\(holder) may have \(room.items) items at most now ([Limits] \(room.settings.items)); delete items first")
    }
    guard usage.bytes <= room.bytes || item.size <= replaced?.size ?? 0 else {
      throw .limit(
        "the items of \(holder) may have \(room.bytes) bytes at most now ([Limits] \(room.settings.bytes)); "
          + "delete items first"
      )
    }
  }

  /// The number and total size of items that a holder may have, and the settings with these bounds.
  private struct ItemRoom {
    var items: Int
    var bytes: Int
    let settings: (items: String, bytes: String)
  }

  /// Returns the room of a holder. A principal with items may have its fair share of the part that is not reserved.
  ///
  /// The reserve is for a principal's first item.
  private func room(for holder: Holder, _ limits: Limits) -> ItemRoom {
    guard case .principal = holder else {
      return ItemRoom(
        items: limits.itemsPerApp, bytes: limits.itemBytesPerApp, settings: ("ItemsPerApp=", "ItemBytesPerApp="))
    }
    var room = ItemRoom(
      items: limits.itemsPerUser, bytes: limits.itemBytesPerUser,
      settings: ("Items=, ItemsPerUser=", "ItemBytes=, ItemBytesPerUser="))
    let own = items.usage(of: holder)
    guard own.items > 0 else { return room }
    room.items = limits.share(
      of: limits.items, atMost: room.items, used: items.total.items, own: own.items, principals: items.principals)
    room.bytes = limits.share(
      of: limits.itemBytes, atMost: room.bytes, used: items.total.bytes, own: own.bytes, principals: items.principals)
    return room
  }
}

extension Text {
  /// The text, cut for an error text, so that clients cannot inflate a reply line.
  fileprivate var shortened: String {
    bytes.count > Bound.quotedBytes ? String(decoding: bytes.prefix(Bound.quotedBytes), as: UTF8.self) + "…" : "\(self)"
  }
}
