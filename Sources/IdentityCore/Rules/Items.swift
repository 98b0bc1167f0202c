// Items and who may use them (protocol, section 4). Their secrets are the store's: the rules only pass them on.

// MARK: - Access groups

extension Registry {
  /// Whether a peer may use an access group: its app's own, one that its manifest lists, or as an admin any.
  func may(_ peer: Peer, use group: Text) -> Bool {
    peer.isAdmin
      || isInstalledOrUnclaimed(peer.app) && (group == peer.app || accessGroups(of: peer.app).contains(group))
  }

  /// The access group that a request is about: the app's own where none is named.
  ///
  /// - Throws: `denied` for a group that the peer may not use, whether or not there is anything in it.
  func group(named: Text?, for peer: Peer) throws(Refusal) -> Text {
    if let itemFault { throw .unavailable(itemFault) }
    guard let named else { return try app(named: nil, by: peer) }
    guard may(peer, use: named) else {
      // Its app was uninstalled: that is what it has to hear.
      if named == peer.app { return try app(named: nil, by: peer) }
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "access group \(named.shortened), which AccessGroups= of a manifest gives")
    }
    return named
  }

  private func key(_ name: ItemName, for peer: Peer) throws(Refusal) -> ItemKey {
    ItemKey(group: try group(named: name.group, for: peer), service: name.service, account: name.account)
  }

  /// The item of that name, for a peer that may use its group.
  func item(_ name: ItemName, for peer: Peer) throws(Refusal) -> Item {
    let key = try key(name, for: peer)
    guard let item = items[key] else { throw .notFound("there is no such item in group \(key.group.shortened)") }
    return item
  }
}

// MARK: - Questions

extension Registry {
  /// `item …` where it takes no change; nil where it does.
  func answer(_ command: ItemCommand, for peer: Peer) throws(Refusal) -> Reply? {
    switch command {
    case .read(let name): return describe(try item(name, for: peer))
    case .find(let condition, let limit):
      let found = try matches(condition, for: peer, limit: limit ?? .max)
      guard !found.isEmpty else { throw .notFound("no item meets the condition") }
      return .rows(found) { Self.attribute($0.item, to: &$1) }
    case .store(let name, _, _, let replaces):
      let key = try key(name, for: peer)
      guard replaces || items[key] == nil else { throw .exists("group \(key.group.shortened) has such an item") }
      return nil
    case .update(let name, let update):
      _ = try item(name, for: peer)
      // Where nothing is named, nothing changes.
      return update == ItemUpdate() ? .done : nil
    case .delete(let condition):
      // Never by oversight, and never in more than one group.
      guard !condition.isEmpty, condition.groups != .all else {
        throw .badArgument(verb: "item delete", .combination("at least one condition is needed, in one group"))
      }
      guard !(try matches(condition, for: peer, limit: 1).isEmpty) else {
        throw .notFound("no item meets the condition")
      }
      return nil
    }
  }

  /// The items that meet a condition, in the order they were added, as many as are asked for.
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

  /// The groups that a peer may use, each once: a manifest may list the app's own, or one twice.
  private func usableGroups(of peer: Peer) -> [Text] { Set([peer.app] + accessGroups(of: peer.app)).sorted() }

  /// All items that a peer may know of, in the order they were added.
  func visibleItems(to peer: Peer) -> [HeldItem] {
    if peer.isAdmin { return Array(items.held) }
    guard isInstalledOrUnclaimed(peer.app) else { return [] }
    return usableGroups(of: peer).flatMap { Array(items.items(in: $0)) }.inOrder
  }

  /// `item read`: the secret is put in by whoever can open it.
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
  /// `item …` where it takes a change.
  func decide(_ command: ItemCommand, _ context: Context) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    switch command {
    case .store(let name, let secret, let description, let replaces):
      return try store(try key(name, for: peer), secret, description, replaces: replaces, by: peer, context)
    case .update(let name, let update): return try self.update(try item(name, for: peer), update, context)
    case .delete(let condition):
      let found = try matches(condition, for: peer)
      return Decision(changes: found.map { .itemDeleted($0.item) }, reply: .done(.number(Int64(found.count))))
    // These are always answered.
    case .read, .find: throw .broken("\(command) was not answered")
    }
  }

  private func store(
    _ key: ItemKey, _ secret: SealedSecret, _ description: ItemDescription, replaces: Bool, by peer: Peer,
    _ context: Context
  ) throws(Refusal) -> Decision {
    let before = items[key]
    // An admin who fills another app's own group does it for that app.
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
    // Also where it stays the same: it is sealed together with what is said of the item.
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

  /// - Throws: `limit`, naming the quota, where the item or its owner would have more than it may. Less than the owner had
  ///   before is always fine.
  private func requireRoom(for item: Item, inPlaceOf before: Item?, _ limits: Limits) throws(Refusal) {
    guard item.attributes.count <= Bound.attributesPerItem else {
      throw .limit("an item has at most \(Bound.attributesPerItem) attributes")
    }
    guard items.total.items < limits.items || before != nil,
      items.total.bytes + item.size <= limits.itemBytes || item.size <= before?.size ?? 0
    else { throw .limit("all apps together have as many items as there may be ([Limits] Items=, ItemBytes=)") }
    let holder = holder(of: item.owner)
    var usage = items.usage(of: holder)
    let replaced = before.flatMap { self.holder(of: $0.owner) == holder ? $0 : nil }
    if let replaced { usage.remove(replaced) }
    usage.add(item)
    let room = room(for: holder, limits)
    guard usage.items <= room.items || replaced != nil else {
      throw .limit("\(holder) may have \(room.items) items now ([Limits] \(room.settings.items))")
    }
    guard usage.bytes <= room.bytes || item.size <= replaced?.size ?? 0 else {
      throw .limit("the items of \(holder) may have \(room.bytes) bytes now ([Limits] \(room.settings.bytes))")
    }
  }

  /// How many items a holder may have, how long these may be together, and the settings that say so.
  private struct ItemRoom {
    var items: Int
    var bytes: Int
    let settings: (items: String, bytes: String)
  }

  /// A principal may have its fair share of what is not in reserve. The reserve is there for its first item.
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
  /// As far as an error text repeats it: no line can be made to grow by it.
  fileprivate var shortened: String {
    bytes.count > Bound.quotedBytes ? String(decoding: bytes.prefix(Bound.quotedBytes), as: UTF8.self) + "…" : "\(self)"
  }
}
