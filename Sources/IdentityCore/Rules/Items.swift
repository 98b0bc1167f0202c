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

  fileprivate func key(_ name: ItemName, for peer: Peer) throws(Refusal) -> ItemKey {
    ItemKey(group: try group(named: name.group, for: peer), service: name.service, account: name.account)
  }

  /// Returns the item with a name, if the peer may use its group and the item is not locked.
  func item(_ name: ItemName, for peer: Peer) throws(Refusal) -> Item {
    let key = try key(name, for: peer)
    guard let item = items[key] else { throw .notFound("no such item is in group \(key.group.shortened)") }
    try requireUnlocked(item)
    return item
  }
}

// MARK: - Rules

extension RegistryCommand {
  package static func storeItem(
    _ name: ItemName, _ secret: SealedSecret, _ description: ItemDescription, replaces: Bool
  ) -> Self {
    Self(StoreItemRule(name: name, secret: secret, description: description, replaces: replaces))
  }
  package static func readItem(_ name: ItemName) -> Self { Self(ReadItemRule(name: name)) }
  package static func findItems(_ condition: ItemCondition, limit: Int?) -> Self {
    Self(FindItemsRule(condition: condition, limit: limit, marksOthers: false))
  }
  /// `item delete dry-run=yes`: lists the items that would be deleted.
  package static func previewDeletion(_ condition: ItemCondition) -> Self {
    Self(FindItemsRule(condition: condition, limit: nil, marksOthers: true))
  }
  package static func updateItem(_ name: ItemName, _ update: ItemUpdate) -> Self {
    Self(UpdateItemRule(name: name, update: update))
  }
  package static func deleteItems(_ condition: ItemCondition) -> Self { Self(DeleteItemsRule(condition: condition)) }
}

/// `item add`, `item put`: adds an item. With `replaces`, an existing item with the same key is replaced.
package struct StoreItemRule: ChangeRule {
  package let name: ItemName
  package let secret: SealedSecret
  package let description: ItemDescription
  package let replaces: Bool
  package var basis: Basis { Basis(whole: [.apps, .items]) }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let key = try registry.key(name, for: peer)
    let before = registry.items[key]
    guard replaces || before == nil else {
      throw .exists("group \(key.group.shortened) already has this item; use 'item put' to replace it")
    }
    guard let context else { return nil }
    // An admin who adds an item to another app's own group acts for that app.
    let owner = peer.isAdmin && key.group != peer.app && registry.apps[key.group] != nil ? key.group : peer.app
    var changes: [Change] = []
    if let change = try registry.firstUse(of: owner, context) { changes.append(change) }
    // An item with a number that was left would be locked, so the new one gets a number of its own.
    let isFresh = before.map { registry.isLeft($0.number, $0.isThisDeviceOnly || description.isThisDeviceOnly) } ?? true
    if let before, isFresh { changes.append(.itemDeleted(before)) }
    let same = isFresh ? nil : before
    let item = Item(
      key: key, number: same?.number ?? registry.nextItemNumber, edition: try context.random(), owner: owner,
      label: description.label.flatMap { $0.isEmpty ? nil : $0 },
      attributes: description.attributes.filter { !$0.value.isEmpty }.sorted { $0.name < $1.name },
      isThisDeviceOnly: description.isThisDeviceOnly, endsWithInstallation: description.endsWithInstallation,
      secretLength: secret.length, created: same?.created ?? context.now, modified: context.now)
    try registry.requireRoom(for: item, inPlaceOf: before, context.limits)
    changes.append(.itemStored(item, secret, same == nil ? .added : .replaced))
    let reply = replaces ? Reply.done(.string(before == nil ? "created" : "replaced")) : .done
    return Decision(changes: changes, reply: reply)
  }
}

/// `item read`: returns an item. The server adds the secret.
package struct ReadItemRule: QueryRule {
  package let name: ItemName
  package var basis: Basis { Basis(found: [.apps, .items]) }
  package var answerKind: AnswerKind { .secret }

  package func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    try registry.readItem(name, for: peer)
  }
}

extension Registry {
  /// Returns the answer with the properties of an item, to which the server adds the secret.
  func readItem(_ name: ItemName, for peer: Peer) throws(Refusal) -> Reply {
    let item = try item(name, for: peer)
    var reply = Reply()
    reply.ok()
    reply.secret(of: item)
    item.describe(to: &reply)
    return reply
  }
}

/// `item find`: lists the items that meet a condition, at most `limit` of them.
struct FindItemsRule: QueryRule {
  let condition: ItemCondition
  let limit: Int?
  /// Whether a row tells that the item is another app's.
  let marksOthers: Bool
  var basis: Basis { Basis(whole: [.apps, .items]) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let (app, marksOthers) = (peer.app, marksOthers)
    let copy = registry.leftDevices.isEmpty ? nil : registry
    return .rows(
      of: try registry.search(condition, for: peer), limit: limit ?? .max, orRefuse: ItemCondition.isUnmet
    ) { held, reply in
      held.item.describe(to: &reply)
      if copy?.isLeft(held.item) == true { Item.describeLock(to: &reply) }
      reply.attribute("own", marksOthers && held.item.owner != app ? .yesOrNo(false) : nil)
    }
  }
}

/// `item update`: changes the given properties of an item.
package struct UpdateItemRule: ChangeRule {
  package let name: ItemName
  package let update: ItemUpdate
  package var basis: Basis { Basis(found: [.apps, .items]) }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let item = try registry.item(name, for: peer)
    guard update != ItemUpdate() else { return Decision(reply: .done) }
    guard let context else { return nil }
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
    try registry.requireRoom(for: changed, inPlaceOf: item, context.limits)
    return Decision(changes: [.itemStored(changed, secret, .updated)], reply: .done)
  }
}

/// `item delete`: deletes the items that meet a condition.
///
/// The items are looked for before the change is decided, and are deleted in several steps if they are many.
package struct DeleteItemsRule: SearchRule {
  let condition: ItemCondition
  /// The items found, as far as they are not deleted; nil before the search.
  var found: ArraySlice<HeldItem>?
  /// The number of items deleted so far.
  var deleted = 0
  package var basis: Basis { Basis(whole: [.apps, .items]) }
  package var answerKind: AnswerKind { found == nil ? .search : .steps }

  package func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch {
    // Requires a condition, so that nothing is deleted by oversight, and a single group.
    guard !condition.isEmpty, condition.groups != .all else {
      throw .badArgument(verb: "item delete", .combination("give at least one condition, and one group"))
    }
    return ObjectSearch(try registry.search(condition, for: peer)) { [condition] in
      DeleteItemsRule(condition: condition, found: $0[...])
    }
  }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let found else { return try decideAtOnce(in: registry, for: peer, context) }
    guard !found.isEmpty || deleted > 0 else { throw ItemCondition.isUnmet }
    guard context != nil else { return nil }
    let group = try registry.groups(of: condition, for: peer).first
    // The items may have changed since the search.
    let present = found.prefix(Bound.changesPerStep).compactMap { registry.items[held: $0.item.key] }
      .filter { $0.item.key.group == group && condition.isMet(by: $0.item) }
    let rest = found.dropFirst(Bound.changesPerStep)
    let count = deleted + present.count
    guard !rest.isEmpty || count > 0 else { throw ItemCondition.isUnmet }
    var decision = Decision(changes: present.map { .itemDeleted($0.item) }, reply: .done(.number(Int64(count))))
    if !rest.isEmpty {
      decision.next = DeleteItemsRule(condition: condition, found: rest, deleted: count)
    }
    return decision
  }
}

// MARK: - Items

extension Registry {
  /// Returns the search for the items that meet a condition, in the order of their keys.
  func search(_ condition: ItemCondition, for peer: Peer) throws(Refusal) -> Search<JoinedBlocks<ItemRange>> {
    let groups = try groups(of: condition, for: peer)
    guard peer.isAdmin && condition.groups == .all else { return search(condition, in: groups) }
    return Search(JoinedBlocks([ItemRange(items.held)])) { condition.isMet(by: $0.item) }
  }

  /// Returns the search for the items of some groups that meet a condition, in the order of their keys.
  func search(_ condition: ItemCondition, in groups: [Text]) -> Search<JoinedBlocks<ItemRange>> {
    let ranges = groups.map {
      ItemRange(items.held, group: $0, service: condition.service, account: condition.account)
    }
    return Search(JoinedBlocks(ranges)) { condition.isMet(by: $0.item) }
  }

  /// Returns the groups in which a condition looks for items, in order. For an admin, `group=*` means all groups, of
  /// which none is returned.
  func groups(of condition: ItemCondition, for peer: Peer) throws(Refusal) -> [Text] {
    switch condition.groups {
    case .own: return [try group(named: nil, for: peer)]
    case .named(let name): return [try group(named: name, for: peer)]
    case .all:
      _ = try group(named: nil, for: peer)
      return peer.isAdmin ? [] : usableGroups(of: peer)
    }
  }

  /// Returns the groups that a peer may use, each once. A manifest may list the app's own group, or a group twice.
  func usableGroups(of peer: Peer) -> [Text] { Set([peer.app] + accessGroups(of: peer.app)).sorted() }

  /// Returns the items that a peer may see, in the order of their keys.
  func visibleItems(to peer: Peer) -> JoinedBlocks<ItemRange> {
    if peer.isAdmin { return JoinedBlocks([ItemRange(items.held)]) }
    guard isInstalledOrUnclaimed(peer.app) else { return JoinedBlocks([]) }
    return JoinedBlocks(usableGroups(of: peer).map { ItemRange(items.held, group: $0) })
  }

  /// Checks the quotas of an item's owner and of all apps together.
  ///
  /// Replacing an item of the same holder by one that is not larger always fits.
  ///
  /// - Throws: `limit` with the name of the exceeded quota.
  fileprivate func requireRoom(for item: Item, inPlaceOf before: Item?, _ limits: Limits) throws(Refusal) {
    guard item.attributes.count <= Bound.attributesPerItem else {
      throw .limit("an item has at most \(Bound.attributesPerItem) attributes")
    }
    guard items.total.items < limits.items.total.items || before != nil,
      items.total.bytes + item.size <= limits.items.total.bytes || item.size <= before?.size ?? 0
    else {
      throw .limit(
        "all apps together have reached the limit of items ([Limits] Items=, ItemBytes=); delete items first")
    }
    let holder = holder(of: item.owner)
    var usage = items.usage(of: holder)
    let replaced = before.flatMap { self.holder(of: $0.owner) == holder ? $0 : nil }
    if let replaced { usage.remove(replaced) }
    usage.add(item)
    let (room, settings) = room(for: holder, limits)
    guard usage.items <= room.items || replaced != nil else {
      throw .limit(
        "\(holder) may have \(room.items) items at most now ([Limits] \(settings.items)); delete items first")
    }
    guard usage.bytes <= room.bytes || item.size <= replaced?.size ?? 0 else {
      throw .limit(
        "the items of \(holder) may have \(room.bytes) bytes at most now ([Limits] \(settings.bytes)); "
          + "delete items first"
      )
    }
  }

  /// Returns the most that a holder may have, and the settings with these bounds. A principal with items may have its
  /// fair share of the part that is not reserved.
  ///
  /// The reserve is for a principal's first item.
  private func room(for holder: Holder, _ limits: Limits) -> (
    most: ItemTable.Usage, settings: (items: String, bytes: String)
  ) {
    let bounds = limits.items
    guard case .principal = holder else { return (bounds.perApp, ("ItemsPerApp=", "ItemBytesPerApp=")) }
    var most = bounds.perUser
    let (own, all) = (items.usage(of: holder), items.total)
    if own.items > 0 {
      most.items = limits.share(
        of: bounds.total.items, atMost: most.items, used: all.items, own: own.items, principals: items.principals)
      most.bytes = limits.share(
        of: bounds.total.bytes, atMost: most.bytes, used: all.bytes, own: own.bytes, principals: items.principals)
    }
    return (most, ("Items=, ItemsPerUser=", "ItemBytes=, ItemBytesPerUser="))
  }
}

extension ItemCondition {
  /// The refusal if no item meets the condition.
  static var isUnmet: Refusal { .notFound("no item matches the conditions") }
}

extension Text {
  /// The text, cut for an error text, so that clients cannot inflate a reply line.
  var shortened: String {
    bytes.count > Bound.quotedBytes ? String(decoding: bytes.prefix(Bound.quotedBytes), as: UTF8.self) + "…" : "\(self)"
  }
}

extension Item {
  /// Adds that an item is locked.
  static func describeLock(to reply: inout Reply) {
    reply.attribute("state", .string("locked"))
    reply.attribute("reason", .string("copied"))
  }

  /// Adds the properties of the item, without its secret.
  func describe(to reply: inout Reply) {
    reply.attribute("service", .text(key.service))
    reply.attribute("account", .text(key.account))
    reply.attribute("group", .text(key.group))
    reply.attribute("label", label.map(Reply.Value.text))
    for attribute in attributes { reply.attribute("attr.\(attribute.name)", .text(attribute.value)) }
    reply.attribute("created", .time(created))
    reply.attribute("modified", .time(modified))
    reply.attribute("this-device-only", isThisDeviceOnly ? .yesOrNo(true) : nil)
    reply.attribute("lifetime", endsWithInstallation ? .string("installation") : nil)
  }
}
