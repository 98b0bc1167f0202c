// The events of changes (identityd-protocol(7), section "EVENTS").
extension Registry {
  /// Returns a change with its event, which gets the next sequence number. Must be called before the change is applied.
  package func record(_ change: Change, at now: Timestamp, by originator: Originator = .daemon) -> RecordedChange {
    guard let news = news(of: change) else { return RecordedChange(change, event: nil, by: originator) }
    let event = Event(
      sequence: lastEvent + 1, time: now, topic: news.topic, name: news.name, attributes: news.attributes,
      audience: news.audience)
    return RecordedChange(change, event: event, by: originator)
  }

  private struct News {
    let topic: Topic
    let name: Text
    var attributes: [Event.Attribute] = []
    let audience: Audience
  }

  private func news(of change: Change) -> News? {
    switch change {
    case .appInstalled(let id, let app): news(of: id, vendor: app.manifest?.vendor ?? id, "installed")
    case .appUninstalled(let id): news(of: id, vendor: vendor(of: id), "uninstalled")
    case .appReplaced(let new):
      news(of: new.id, vendor: vendor(of: new.previous), "replaced", [.init("previous", new.previous)])
    case .appUpdated(let id, let app) where (app.suspended == nil) != (apps[id]?.suspended == nil):
      news(of: id, vendor: app.manifest?.vendor ?? id, app.suspended == nil ? "resumed" : "suspended")
    case .identifierMade(let identifier):
      news(
        of: identifier.scope, self[identifier.scope] == nil ? "created" : "changed", identifier.value,
        previous: self[identifier.scope]?.value, identifier.cause)
    case .identifierEnded(let scope, let end):
      self[scope].map { news(of: scope, "ended", $0.value, previous: nil, end.cause) }
    case .deviceSuspected(let scope, let cause, let copy):
      self[scope].map { news(of: scope, "suspect", $0.value, previous: nil, cause, copy) }
    case .deviceAcknowledged(let scope, let cause):
      self[scope].map { news(of: scope, "acknowledged", $0.value, previous: nil, cause) }
    case .deviceResumed(let scope):
      news(of: scope, "resumed", self[scope]?.value, previous: nil, nil)
    case .accountSet(let name):
      News(topic: .account, name: "changed", attributes: [.init("value", name ?? "")], audience: .sharing)
    case .deviceListed(let device): news(ofListed: "added", device.value)
    // The time of its last contact changes too often to tell.
    case .deviceDescribed(let device) where device.name != devices[device.value]?.name:
      news(ofListed: "changed", device.value, name: device.name)
    case .deviceReplaced(let previous, let device): news(ofListed: "replaced", device.value, previous: previous)
    case .deviceUnlisted(let value): news(ofListed: "removed", value)
    case .fleetRecorded(let record): news(of: record)
    case .itemStored(let item, _, let change): news(of: item.key, Text(change.rawValue))
    case .itemDeleted(let item): news(of: item.key, "deleted")
    case .version(.reported(let subject, let report)): news(of: subject, report)
    case .tokenStored(let token, let change): news(of: token, change)
    case .tokenDeleted(let token): news(of: token, "deleted")
    case .proofKeyStored(let key) where !proofKeys.contains { $0.number == key.number }:
      news(of: key, proofKeysInForce.isEmpty ? "key-created" : "key-rotated")
    case .proofKeyLocked(let key): news(of: key, "key-locked")
    case .proofKeyForgotten(let key, .lost): news(of: key, "key-lost")
    case .version, .appUpdated, .appUsed, .appUseForgotten, .dayBegan, .identifierRemembered, .identifierForgotten,
      .deviceDescribed, .machineRecorded, .machineLeft, .machineAcknowledged, .machineForgotten, .deviceLeft,
      .leftDeviceForgotten, .fleetAdvanced, .fleetForgotten, .backupTaken, .proofKeyStored, .proofKeyForgotten, .sealed,
      .epochBegan:
      nil
    }
  }

  private func news(of app: Text, vendor: Text, _ name: Text, _ others: [Event.Attribute] = []) -> News {
    News(
      topic: .app, name: name, attributes: [.init("app", app), .init("vendor", vendor)] + others,
      audience: .vendor(vendor))
  }

  private func news(
    of scope: Scope, _ name: Text, _ value: UUID?, previous: UUID?, _ cause: Cause?, _ copy: CopyVerdict? = nil
  ) -> News {
    var attributes = attributes(of: scope, value, previous: previous, cause)
    if let copy { attributes.append(.init("copy", Text(copy.rawValue))) }
    return News(topic: scope.topic, name: name, attributes: attributes, audience: scope.audience)
  }

  private func news(
    ofListed event: Text, _ value: UUID, previous: UUID? = nil, name: Text? = nil
  ) -> News {
    var attributes = [Event.Attribute("value", Text("\(value)"))]
    if let previous { attributes.append(.init("previous", Text("\(previous)"))) }
    if let name { attributes.append(.init("name", name)) }
    return News(topic: .devices, name: event, attributes: attributes, audience: .sharing)
  }

  /// Returns the event of a record that says whether a listed device is suspect, unless that was known.
  private func news(of record: FleetRecord) -> News? {
    let wasSuspect = records[record.device]?.isSuspect ?? false
    guard record.isSuspect != wasSuspect, !record.isGone, devices[record.device] != nil else { return nil }
    return News(
      topic: .devices, name: "changed",
      attributes: [
        .init("value", Text(record.device)), .init("suspect", record.isSuspect ? "yes" : "no"),
      ], audience: .sharing)
  }

  private func news(of key: StoredProofKey, _ name: Text) -> News {
    var attributes = [Event.Attribute("key", key.pair.identifier)]
    if name != "key-lost" { attributes.append(.init("signs", Text("\(key.signs)"))) }
    return News(topic: .proof, name: name, attributes: attributes, audience: .sharing)
  }

  private func news(of item: ItemKey, _ name: Text) -> News {
    News(topic: .item, name: name, attributes: attributes(of: item), audience: .group(item.group))
  }

  /// Returns the event of a report, relative to the last report of any session: a subscriber follows all reports
  /// in order.
  private func news(of subject: VersionSubject, _ report: VersionReport) -> News? {
    let release = report.release
    let before = versions[subject].current?.release
    // The report may have an order of its own.
    let state = before == report.previous ? report.state : order(of: subject).state(of: release, after: before)
    guard state != .unchanged else { return nil }
    let attributes = attributes(of: subject, release) + (before?.particulars(before: release, state) ?? [])
    return News(topic: .version, name: Text(state.rawValue), attributes: attributes, audience: subject.audience)
  }

  private func attributes(of subject: VersionSubject, _ release: Release) -> [Event.Attribute] {
    var attributes = [Event.Attribute("of", subject == .system ? "os" : "app")]
    if let app = subject.app { attributes.append(.init("app", app)) }
    return attributes + [.init("version", release.version)] + release.particulars
  }

  private func news(of token: Token, _ change: TokenChange) -> News? {
    guard let name = change.eventName else { return nil }
    switch change {
    case .rehomed(let before): return news(of: token, name, from: before)
    case .copied:
      var news = news(of: token, name)
      news.attributes.append(.init("reason", "copied"))
      return news
    default: return news(of: token, name)
    }
  }

  private func news(of token: Token, _ name: Text, from previous: UUID? = nil) -> News {
    News(
      topic: .token, name: name, attributes: attributes(of: token, from: previous), audience: .app(token.app))
  }

  /// Returns the attributes of a token's event, which never include the token value.
  private func attributes(of token: Token, from previous: UUID? = nil) -> [Event.Attribute] {
    var attributes: [Event.Attribute] = []
    attributes.reserveCapacity(5)
    attributes.append(.init(.app, token.app))
    attributes.append(.init(.provider, token.provider))
    attributes.append(.init(.device, Text(token.device)))
    if let previous { attributes.append(.init("previous-device", Text(previous))) }
    attributes.append(.init(.fingerprint, token.fingerprint))
    return attributes
  }

  private func attributes(of item: ItemKey) -> [Event.Attribute] {
    [.init(.group, item.group), .init(.service, item.service), .init(.account, item.account)]
  }

  private func attributes(of scope: Scope, _ value: UUID?, previous: UUID?, _ cause: Cause?) -> [Event.Attribute] {
    var attributes: [Event.Attribute] = []
    if let value { attributes.append(.init("value", Text("\(value)"))) }
    if let previous { attributes.append(.init("previous", Text("\(previous)"))) }
    if let cause { attributes.append(.init("cause", Text(cause.rawValue))) }
    if let app = scope.app { attributes.append(.init("app", app)) }
    if let vendor = vendor(of: scope) { attributes.append(.init("vendor", vendor)) }
    return attributes
  }
}

// MARK: - Snapshot

extension Registry {
  /// Checks that a snapshot of these topics depends only on proven records.
  ///
  /// - Throws: the refusal of requests that need unproven records.
  package func requireProof(forSnapshotOf topics: Set<Topic>) throws(Refusal) {
    try requireProof(of: topics.reduce([]) { $0.union($1.records) })
  }

  /// `subscribe snapshot=yes`: returns a row for each current value of these topics that the peer may see, all of this
  /// registry, whenever they are written.
  package func snapshot(of topics: Set<Topic>, for peer: Peer) -> Reply {
    var rows: [any RowSource] = []
    func add<Source: BlockSource>(
      _ topic: Topic, _ search: Search<Source>, _ attributes: @escaping @Sendable (Source.Element) -> [Event.Attribute]
    ) {
      guard topics.contains(topic) else { return }
      rows.append(FoundRows(search) { $1.row(of: topic, attributes($0)) })
    }
    let identifiers = identifiersInForce { topics.contains($0.topic) && may(peer, see: $0.audience) }
    rows.append(
      FoundRows(identifiers) { entry, reply in
        let (scope, identifier) = (entry.identifier.scope, entry.identifier)
        reply.row(of: scope.topic, attributes(of: scope, identifier.value, previous: nil, identifier.cause))
      })
    add(.app, visibleApps(to: peer)) { installed in
      let suspended = installed.app.suspended.map { [Event.Attribute("suspended", Text("\($0)"))] } ?? []
      return [.init("app", installed.key), .init("vendor", vendor(of: installed.key))] + suspended
    }
    if itemFault == nil {
      add(.item, Search(visibleItems(to: peer)) { _ in true }) { attributes(of: $0.item.key) }
    }
    let isToldOfAll = peer.isAdmin || rights(of: peer.app).contains(.fleet)
    let subjects = isToldOfAll ? nil : [.system, VersionSubject.app(peer.app)]
    let histories =
      subjects.map { JoinedBlocks($0.map { OrderedBlocks(versions.histories, from: $0, through: $0) }) }
      ?? JoinedBlocks([OrderedBlocks(versions.histories)])
    add(.version, Search(histories) { $0.current != nil && may(peer, see: $0.subject.audience, of: .version) }) {
      history in history.current.map { attributes(of: history.subject, $0.release) } ?? []
    }
    add(.token, Search(isToldOfAll ? tokens.blocks : tokens.blocks(of: peer.app)) { _ in true }) { attributes(of: $0) }
    guard may(peer, see: .sharing) else { return .rows(of: rows) }
    add(.devices, Search(OrderedBlocks(devices.table)) { _ in true }) { [.init("value", Text("\($0.device.value)"))] }
    add(.account, Search(ArrayBlocks([account ?? ""])) { _ in true }) { [.init("value", $0)] }
    return .rows(of: rows)
  }
}

extension Reply {
  fileprivate mutating func row(of topic: Topic, _ attributes: [Event.Attribute]) {
    row()
    word(.string(topic.rawValue))
    self.attributes(attributes)
  }
}

extension Topic {
  /// The records that a snapshot of the topic depends on. The records of apps decide which peers may see a value.
  fileprivate var records: Records {
    switch self {
    case .device, .installation, .vendor: [.identifiers, .apps]
    case .app: .apps
    case .devices: .devices
    case .account: .settings
    case .item: [.items, .apps]
    case .version: .versions
    case .token: .tokens
    case .proof: [.proofs, .settings, .identifiers]
    }
  }
}

extension Scope {
  /// The topic of the events about the scope.
  var topic: Topic {
    switch level {
    case .device: .device
    case .installation: .installation
    case .vendor: .vendor
    }
  }

  /// The peers that may see the identifier of the scope.
  package var audience: Audience {
    switch self {
    case .device: .sharing
    case .deviceOfVendor(let vendor), .vendor(let vendor): .vendor(vendor)
    case .deviceOfApp(let app), .installation(let app): .app(app)
    }
  }
}

extension VersionSubject {
  fileprivate var audience: Audience { app.map(Audience.app) ?? .sharing }
}

// The most frequent attribute names, each created once.
extension Text {
  fileprivate static let app: Text = "app"
  fileprivate static let provider: Text = "provider"
  fileprivate static let device: Text = "device"
  fileprivate static let fingerprint: Text = "fingerprint"
  fileprivate static let group: Text = "group"
  fileprivate static let service: Text = "service"
  fileprivate static let account: Text = "account"
}
