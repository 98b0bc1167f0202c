import IdentityCore

/// A simple model of the items as the protocol defines them: one array in the order of addition, searched linearly.
struct ItemModel {
  /// An item with its secret.
  struct Entry: Equatable {
    var group: Text
    var service: Text
    var account: Text
    var owner: Text
    var label: Text?
    var attributes: [Text: Text]
    var onlyHere: Bool
    var whileInstalled: Bool
    var secret: String
    var created: Int64
    var modified: Int64

    var size: Int {
      let texts = [group, service, account, label ?? ""] + attributes.keys + attributes.values
      return texts.reduce(secret.utf8.count) { $0 + $1.bytes.count }
    }

    var row: String {
      let label = label.map { " label=\($0)" } ?? ""
      let said = attributes.sorted { $0.key < $1.key }.map { " attr.\($0.key)=\($0.value)" }.joined()
      return
        "service=\(service) account=\(account) group=\(group)\(label)\(said) created=t\(created) modified=t\(modified)"
        + (onlyHere ? " this-device-only=yes" : "") + (whileInstalled ? " lifetime=installation" : "")
    }
  }

  /// The reason for a refusal.
  enum Fault: Error, Equatable {
    case denied, notFound, exists, limit, other
  }

  var entries: [Entry] = []
  /// The installed apps.
  var apps: Set<Text> = []
  /// The access groups of each app with a manifest.
  var manifests: [Text: [Text]] = [:]
  /// The events about items since the test last cleared them.
  var told: [String] = []
  let limits: Limits

  // MARK: Apps

  /// Replaces all manifests.
  mutating func install(_ manifests: [Text: [Text]]) {
    for gone in self.manifests.keys.sorted() where manifests[gone] == nil { uninstall(gone) }
    self.manifests = manifests
    apps.formUnion(manifests.keys)
  }

  mutating func forget(_ app: Text) throws(Fault) {
    guard apps.contains(app) else { throw .notFound }
    uninstall(app)
  }

  private mutating func uninstall(_ app: Text) {
    remove { $0.owner == app && $0.whileInstalled }
    apps.remove(app)
  }

  // MARK: Verbs

  mutating func answer(_ command: ItemCommand, by peer: Peer, at now: Int64) throws(Fault) -> [String] {
    switch command {
    case .store(let name, let secret, let description, let replaces):
      return try store(name, secret, description, replaces: replaces, by: peer, at: now)
    case .read(let name):
      let entry = entries[try place(name, by: peer)]
      return ["OK data=\(entry.secret) \(entry.row)"]
    case .find(let condition, let limit):
      let found = try matching(condition, by: peer)
      guard !found.isEmpty else { throw .notFound }
      let rows = found.prefix(limit ?? found.count).map { "* \($0.row)" }
      return rows + ["OK \(rows.count)"]
    case .update(let name, let update): return try self.update(name, update, by: peer, at: now)
    case .delete(let condition):
      let found = try matching(condition, by: peer)
      guard !found.isEmpty else { throw .notFound }
      remove { found.contains($0) }
      return ["OK \(found.count)"]
    }
  }

  private mutating func store(
    _ name: ItemName, _ secret: SealedSecret, _ description: ItemDescription, replaces: Bool, by peer: Peer,
    at now: Int64
  ) throws(Fault) -> [String] {
    let group = try group(name.group, by: peer)
    let place = entries.firstIndex { $0.group == group && $0.service == name.service && $0.account == name.account }
    guard place == nil || replaces else { throw .exists }
    let isForOther = peer.isAdmin && apps.contains(group)
    var attributes: [Text: Text] = [:]
    for attribute in description.attributes where !attribute.value.isEmpty {
      attributes[attribute.name] = attribute.value
    }
    let entry = Entry(
      group: group, service: name.service, account: name.account, owner: isForOther ? group : peer.app,
      label: description.label == "" ? nil : description.label, attributes: attributes,
      onlyHere: description.isThisDeviceOnly, whileInstalled: description.endsWithInstallation,
      secret: String(decoding: secret.bytes, as: UTF8.self), created: place.map { entries[$0].created } ?? now,
      modified: now)
    try requireRoom(for: entry, at: place)
    apps.insert(entry.owner)
    if let place { entries[place] = entry } else { entries.append(entry) }
    tell(place == nil ? "added" : "replaced", entry)
    return [replaces ? (place == nil ? "OK created" : "OK replaced") : "OK"]
  }

  private mutating func update(_ name: ItemName, _ update: ItemUpdate, by peer: Peer, at now: Int64) throws(Fault)
    -> [String]
  {
    let place = try place(name, by: peer)
    var entry = entries[place]
    guard update != ItemUpdate() else { return ["OK"] }
    if let secret = update.secret { entry.secret = String(decoding: secret.bytes, as: UTF8.self) }
    if let label = update.label { entry.label = label == "" ? nil : label }
    for attribute in update.attributes {
      entry.attributes[attribute.name] = attribute.value == "" ? nil : attribute.value
    }
    entry.modified = now
    try requireRoom(for: entry, at: place)
    entries[place] = entry
    tell("updated", entry)
    return ["OK"]
  }

  // MARK: Rules

  private func groups(of peer: Peer) -> [Text] {
    if let more = manifests[peer.app] { return [peer.app] + more }
    return "\(peer.app)".contains(":") ? [peer.app] : []
  }

  private func group(_ named: Text?, by peer: Peer) throws(Fault) -> Text {
    guard let named else {
      guard let own = groups(of: peer).first else { throw .notFound }
      return own
    }
    guard peer.isAdmin || groups(of: peer).contains(named) else { throw .denied }
    return named
  }

  private func place(_ name: ItemName, by peer: Peer) throws(Fault) -> Int {
    let group = try group(name.group, by: peer)
    for (place, entry) in entries.enumerated()
    where entry.group == group && entry.service == name.service && entry.account == name.account { return place }
    throw .notFound
  }

  private func matching(_ condition: ItemCondition, by peer: Peer) throws(Fault) -> [Entry] {
    let groups: [Text]
    switch condition.groups {
    case .own: groups = [try group(nil, by: peer)]
    case .named(let name): groups = [try group(name, by: peer)]
    case .all:
      _ = try group(nil, by: peer)
      groups = peer.isAdmin ? entries.map(\.group) : self.groups(of: peer)
    }
    return entries.filter { entry in
      groups.contains(entry.group) && condition.service.map { $0 == entry.service } != false
        && condition.account.map { $0 == entry.account } != false
        && condition.label.map { $0 == entry.label ?? "" } != false
        && condition.attributes.allSatisfy { $0.value == entry.attributes[$0.name] ?? "" }
    }
  }

  private func holder(_ app: Text) -> String { "\(app)".hasSuffix("1000") ? "uid 1000" : "\(app)" }

  private func requireRoom(for entry: Entry, at place: Int?) throws(Fault) {
    var after = entries
    if let place { after.remove(at: place) }
    after.append(entry)
    let charged = after.filter { holder($0.owner) == holder(entry.owner) }
    let before = place.map { entries[$0] }.flatMap { holder($0.owner) == holder(entry.owner) ? $0 : nil }
    guard charged.count <= limits.itemsPerApp || before != nil else { throw .limit }
    if let before, entry.size <= before.size { return }
    guard charged.reduce(0, { $0 + $1.size }) <= limits.itemBytesPerApp else { throw .limit }
  }

  private mutating func remove(where isMeant: (Entry) -> Bool) {
    for entry in entries where isMeant(entry) { tell("deleted", entry) }
    entries.removeAll(where: isMeant)
  }

  private mutating func tell(_ name: String, _ entry: Entry) {
    told.append("item \(name) group=\(entry.group) service=\(entry.service) account=\(entry.account)")
  }
}
