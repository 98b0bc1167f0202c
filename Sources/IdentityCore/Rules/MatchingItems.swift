// Requests about the secrets of items that meet conditions (identityd-protocol(7), section "ITEMS").
//
// The items are looked for before the request is decided, on the state in which the search began.

extension RegistryCommand {
  /// `item read` by conditions.
  package static func readItem(matching condition: ItemCondition) -> Self {
    Self(MatchingItemRule(condition: condition, purpose: .read))
  }
  /// `item update` by conditions.
  package static func updateItem(matching condition: ItemCondition, _ update: ItemUpdate) -> Self {
    Self(MatchingItemRule(condition: condition, purpose: .update(update)))
  }
  /// `item find data=yes`.
  package static func findSecrets(_ condition: ItemCondition, limit: Int?) -> Self {
    Self(FindSecretsRule(condition: condition, limit: limit))
  }
}

/// `item read`, `item update` by conditions: carries out the request with the only item that meets them.
///
/// - Throws: `notFound` if no item meets the conditions; `conflict` if several do.
struct MatchingItemRule: SearchRule {
  /// The request about the item.
  enum Purpose: Equatable, Sendable {
    case read
    case update(ItemUpdate)
  }

  let condition: ItemCondition
  let purpose: Purpose
  /// The first items found, at most two; nil before the search.
  var found: [HeldItem]?
  var basis: Basis { Basis(whole: [.apps, .items]) }
  var answerKind: AnswerKind { found == nil ? .search : purpose == .read ? .secret : .plain }

  func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch {
    ObjectSearch(try registry.search(condition, for: peer), most: 2) { [condition, purpose] in
      MatchingItemRule(condition: condition, purpose: purpose, found: $0)
    }
  }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let found else { return try decideAtOnce(in: registry, for: peer, context) }
    guard found.count < 2 else {
      throw .conflict("several items match the conditions; add others, such as service= and account=")
    }
    // The item may have changed since the search.
    guard let key = found.first?.item.key, let item = registry.items[key], condition.isMet(by: item) else {
      throw ItemCondition.isUnmet
    }
    let name = ItemName(service: key.service, account: key.account, group: key.group)
    switch purpose {
    case .read: return Decision(reply: try registry.readItem(name, for: peer))
    case .update(let update):
      return try UpdateItemRule(name: name, update: update).decide(in: registry, for: peer, context)
    }
  }
}

/// `item find data=yes`: lists the items of the peer's own groups that meet a condition, with their secrets.
///
/// An admin has no further groups here: other apps' secrets are read one at a time.
///
/// - Throws: `limit` if the items are more than an answer may have, or larger.
struct FindSecretsRule: SearchRule {
  let condition: ItemCondition
  /// The number of items to list at most; nil for all.
  let limit: Int?
  /// The first items found; nil before the search.
  var found: [HeldItem]?
  var basis: Basis { Basis(whole: [.apps, .items]) }
  var answerKind: AnswerKind { found == nil ? .search : .secret }

  func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch {
    let search = registry.search(condition, in: try groups(in: registry, for: peer))
    return ObjectSearch(search, most: min(limit ?? .max, Bound.secretsPerAnswer + 1)) { [condition, limit] in
      FindSecretsRule(condition: condition, limit: limit, found: $0)
    }
  }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let found else { return try decideAtOnce(in: registry, for: peer, context) }
    guard found.count <= Bound.secretsPerAnswer else {
      throw .limit(
        "more than \(Bound.secretsPerAnswer) items match, and an answer has the secrets of at most as many; "
          + "add conditions, or limit= with a smaller number")
    }
    // The manifest and the items may have changed since the search.
    let groups = try groups(in: registry, for: peer)
    let items = found.compactMap { registry.items[$0.item.key] }
      .filter { groups.contains($0.key.group) && condition.isMet(by: $0) }
    guard !items.isEmpty else { throw ItemCondition.isUnmet }
    guard items.reduce(0, { $0 + $1.size }) <= Bound.secretsAnswerLength else {
      throw .limit(
        "the items that match have more than \(Bound.secretsAnswerLength) bytes together, "
          + "which is the most for an answer with secrets; add conditions, or limit= with a smaller number")
    }
    let reply = Reply.rows(of: items, hasSecret: { !registry.isLeft($0) }) { item, hasSecret, reply in
      item.describe(to: &reply)
      if !hasSecret { Item.describeLock(to: &reply) }
    }
    return Decision(reply: reply)
  }

  /// Returns the groups that the peer's app may use, of those that the condition names.
  ///
  /// - Throws: `denied` for another group, also to an admin.
  private func groups(in registry: Registry, for peer: Peer) throws(Refusal) -> [Text] {
    let groups = try registry.groups(of: condition, for: peer)
    let usable = registry.usableGroups(of: peer)
    guard condition.groups != .all else { return usable }
    guard groups.allSatisfy({ usable.contains($0) }) else {
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "access group \(groups.map(\.shortened).joined(separator: ", ")) in its manifest, "
          + "which data=yes needs; 'item read' gives an admin one secret of any group")
    }
    return groups
  }
}
