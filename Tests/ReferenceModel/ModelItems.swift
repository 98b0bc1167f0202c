// Items: ITEMS in identityd-protocol(7).
extension ReferenceModel {
  package struct Item: Sendable {
    let group: String
    let service: String
    let account: String
    /// The app that the item counts for.
    var owner: String
    /// The secret, in Base64.
    var data: String
    var label: String?
    var described: [(name: String, value: String)]
    var onlyHere: Bool
    var whileInstalled: Bool
    var created: String
    var modified: String
    /// Whether the item is from before a renewal on what may be a copy.
    var isOriginals = false

    /// The size that counts in a quota, in bytes.
    package var size: Int {
      let padding = data.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
      let texts = [group, service, account, label ?? ""] + described.flatMap { [$0.name, $0.value] }
      return texts.reduce(data.utf8.count / 4 * 3 - padding) { $0 + $1.utf8.count }
    }
  }

  private func row(_ item: Item) -> String {
    "service=\(item.service) account=\(item.account) group=\(item.group)\(said("label", item.label))"
      + item.described.map { " attr.\($0.name)=\($0.value)" }.joined()
      + " created=\(item.created) modified=\(item.modified)"
      + (item.onlyHere ? " this-device-only=yes" : "") + (item.whileInstalled ? " lifetime=installation" : "")
      + (isLocked(item) ? " state=locked reason=copied" : "")
  }

  private func isLocked(_ item: Item) -> Bool {
    item.isOriginals && item.onlyHere && apps[item.owner]?.manifest?.rights.contains("fleet") != true
  }

  /// Returns the place of an item that can be used.
  func unlockedPlace(_ request: Request, account: String = "account") throws(Fault) -> Int {
    let place = try place(request, account: account)
    guard !isLocked(items[place]) else { throw .unavailable }
    return place
  }

  // MARK: Groups and conditions

  /// Returns the access group of a request. A group that the peer may not use is denied even if it is empty.
  private func group(_ named: String?) throws(Fault) -> String {
    guard let named else { return try app(nil) }
    if peer.isAdmin || groups(of: peer.app).contains(named) { return named }
    // The peer's own group, after its manifest was removed.
    if named == peer.app { throw .notFound }
    throw .denied
  }

  /// Returns the place of the one item that meets the conditions of a request, and that can be used.
  ///
  /// - Parameter prefix: the beginning of the names of conditions that are also the names of new values.
  private func unlockedPlace(_ request: Request, where prefix: String) throws(Fault) -> Int {
    let isExact = request["service"] != nil && request["account"] != nil
    if isExact, request["\(prefix)label"] == nil, request.described(behind: prefix).isEmpty {
      return try unlockedPlace(request)
    }
    let found = try places(request, where: prefix)
    guard let place = found.first else { throw .notFound }
    guard found.count == 1 else { throw .conflict }
    guard !isLocked(items[place]) else { throw .unavailable }
    return place
  }

  func place(_ request: Request, account: String = "account") throws(Fault) -> Int {
    let group = try group(request["group"])
    for (place, item) in items.enumerated()
    where item.group == group && item.service == request["service"] && item.account == request[account] { return place }
    throw .notFound
  }

  /// Returns the indices of the items that meet every condition. An empty condition matches items
  /// without the attribute.
  private func places(_ request: Request, where prefix: String = "") throws(Fault) -> [Int] {
    var groups: [String]?
    if request["group"] == "*" {
      _ = try app(nil)
      groups = peer.isAdmin ? nil : self.groups(of: peer.app)
    } else {
      groups = [try group(request["group"])]
    }
    func isMet(_ name: String, _ value: String) -> Bool { request[name].map { $0 == value } ?? true }
    return placesInOrder.filter { place in
      let item = items[place]
      return groups?.contains(item.group) != false && isMet("service", item.service) && isMet("account", item.account)
        && isMet("\(prefix)label", item.label ?? "")
        && request.described(behind: prefix).allSatisfy { wanted in
          wanted.value == item.described.first { $0.name == wanted.name }?.value ?? ""
        }
    }
  }

  /// The indices of all items in the order of their groups, services and accounts.
  private var placesInOrder: [Int] {
    let keys = items.map { [$0.group, $0.service, $0.account].map { Array($0.utf8) } }
    return items.indices.sorted { left, right in
      let differing = keys[left].indices.first { keys[left][$0] != keys[right][$0] }
      return differing.map { keys[left][$0].lexicographicallyPrecedes(keys[right][$0]) } ?? false
    }
  }

  // MARK: Verbs

  mutating func store(_ request: Request, replaces: Bool) throws(Fault) -> [String] {
    let group = try group(request["group"])
    let place = try? place(request)
    guard place == nil || replaces else { throw .exists }
    try requireOpen()
    // An item that an admin puts into the own group of another app counts for that app.
    let owner = peer.isAdmin && apps[group] != nil ? group : peer.app
    // The owner must be installed, even if an admin adds the item.
    guard isThere(owner) else { throw .notFound }
    let isFresh = place.map { items[$0].isOriginals && (items[$0].onlyHere || request["this-device-only"] == "yes") }
    let item = Item(
      group: group, service: request["service"] ?? "", account: request["account"] ?? "", owner: owner,
      data: request["data"] ?? "", label: request["label"].flatMap { $0.isEmpty ? nil : $0 },
      described: request.described().filter { !$0.value.isEmpty }, onlyHere: request["this-device-only"] == "yes",
      whileInstalled: request["lifetime"] == "installation",
      created: place.map { isFresh == true ? time : items[$0].created } ?? time, modified: time,
      isOriginals: place.map { isFresh != true && items[$0].isOriginals } ?? false)
    try requireRoom(for: item, at: place)
    use(owner)
    if isFresh == true { tell("deleted", item) }
    if let place { items[place] = item } else { items.append(item) }
    tell(isFresh == false ? "replaced" : "added", item)
    return [replaces ? (place == nil ? "OK created" : "OK replaced") : "OK"]
  }

  func read(_ request: Request) throws(Fault) -> [String] {
    let item = items[try unlockedPlace(request, where: "")]
    return ["OK data=\(word(item.data)) \(row(item))"]
  }

  func find(_ request: Request) throws(Fault) -> [String] {
    let found = try places(request)
    if request["data"] == "yes" { return try findSecrets(request, found) }
    guard !found.isEmpty else { throw .notFound }
    let limit = request["limit"].map { $0 == "all" ? .max : $0 == "one" ? 1 : Int($0) ?? 0 } ?? .max
    return rows(found.prefix(limit).map { row(items[$0]) })
  }

  /// Returns the rows with secrets, which an admin gets of its own groups only.
  private func findSecrets(_ request: Request, _ found: [Int]) throws(Fault) -> [String] {
    let groups = Set([peer.app] + groups(of: peer.app))
    if let named = request["group"], named != "*", !groups.contains(named) { throw .denied }
    let limit = request["limit"].map { $0 == "all" ? .max : $0 == "one" ? 1 : Int($0) ?? 0 } ?? .max
    let own = found.map { items[$0] }.filter { groups.contains($0.group) }.prefix(limit)
    guard !own.isEmpty else { throw .notFound }
    guard own.count <= 64, own.reduce(0, { $0 + $1.size }) <= 262_144 else { throw .limit }
    return rows(own.map { (isLocked($0) ? "" : "data=\(word($0.data)) ") + row($0) })
  }

  mutating func update(_ request: Request) throws(Fault) -> [String] {
    let place = try unlockedPlace(request, where: "where.")
    var item = items[place]
    guard request["data"] != nil || request["label"] != nil || !request.described().isEmpty else { return ["OK"] }
    try requireOpen()
    if let data = request["data"] { item.data = data }
    if let label = request["label"] { item.label = label.isEmpty ? nil : label }
    for new in request.described() {
      item.described.removeAll { $0.name == new.name }
      if !new.value.isEmpty { item.described.append(new) }
    }
    item.described.sort { $0.name < $1.name }
    item.modified = time
    try requireRoom(for: item, at: place)
    items[place] = item
    tell("updated", item)
    return ["OK"]
  }

  mutating func delete(_ request: Request) throws(Fault) -> [String] {
    let found = try places(request)
    guard !found.isEmpty else { throw .notFound }
    guard request["dry-run"] != "yes" else {
      return rows(found.map { row(items[$0]) + (items[$0].owner == peer.app ? "" : " own=no") })
    }
    try requireOpen()
    for place in found { tell("deleted", items[place]) }
    for place in found.sorted().reversed() { items.remove(at: place) }
    return ["OK \(found.count)"]
  }

  // MARK: Quotas

  /// Returns the holder of an app's quota. A user's apps without a manifest share one quota. Apps of root and services
  /// of the system have separate quotas.
  private func holder(_ app: String) -> String {
    guard isUnclaimed(app), let last = app.split(whereSeparator: { $0 == "@" || $0 == ":" }).last, let user = Int(last),
      user != 0
    else { return app }
    return "uid \(user)"
  }

  /// Checks the quota. Replacing an item by one that is no larger is always allowed.
  private func requireRoom(for item: Item, at place: Int?) throws(Fault) {
    let holder = holder(item.owner)
    var others = items
    let before = place.map { others.remove(at: $0) }
    others.removeAll { self.holder($0.owner) != holder }
    let replaced = before.flatMap { self.holder($0.owner) == holder ? $0 : nil }
    guard replaced != nil || others.count < itemQuota.items else { throw .limit }
    if let replaced, item.size <= replaced.size { return }
    guard others.reduce(item.size, { $0 + $1.size }) <= itemQuota.bytes else { throw .limit }
  }

  // MARK: Events

  mutating func removeItems(where isMeant: (Item) -> Bool) {
    for place in placesInOrder where isMeant(items[place]) { tell("deleted", items[place]) }
    items.removeAll(where: isMeant)
  }

  private mutating func tell(_ name: String, _ item: Item) {
    let attributes = " group=\(item.group) service=\(item.service) account=\(item.account)"
    tell("item", name, attributes, to: .group(item.group))
  }
}
