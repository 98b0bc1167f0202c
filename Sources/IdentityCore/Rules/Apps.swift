// Apps and their manifests (protocol, section 2).
extension Registry {
  /// The manifests that are in force once a survey is taken in: those found, and for a faulty one what the app had. A
  /// survey that failed leaves what there is.
  package func manifests(after survey: ManifestSurvey) -> [Text: ManifestSurvey.Entry] {
    switch survey {
    case .unreadable:
      var entries: [Text: ManifestSurvey.Entry] = [:]
      for (id, app) in apps {
        if let manifest = app.manifest { entries[id] = .init(file: "the manifest of \(id)", manifest: manifest) }
      }
      return entries
    case .found(let found, _):
      var entries: [Text: ManifestSurvey.Entry] = [:]
      for (id, entry) in found {
        guard let manifest = entry.manifest ?? apps[id]?.manifest else { continue }
        entries[id] = .init(file: entry.file, manifest: manifest)
      }
      return entries
    }
  }

  /// What it takes to have exactly these manifests' apps installed.
  ///
  /// - Parameters:
  ///   - survey: what was found. An app whose manifest is there, though faulty, stays installed.
  ///   - refused: apps whose manifests contradict others: those that are installed stay as they are, others wait.
  package func reconciliation(
    with survey: ManifestSurvey, _ entries: [Text: ManifestSurvey.Entry], refused: Set<Text>, at now: Timestamp
  ) -> [Change] {
    guard case .found(let found, _) = survey else { return [] }
    var plan = Plan(self)
    var left: Set<Text> = []
    let gone = apps.filter { $0.value.manifest != nil && found[$0.key] == nil }
    for id in gone.map(\.key).sorted() {
      left.insert(vendor(of: id))
      plan.uninstall(id, at: now)
    }
    for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !refused.contains(id) {
      guard let manifest = entry.manifest else { continue }
      guard let app = apps[id] else {
        plan.add(.appInstalled(id, App(installed: now, manifest: manifest)))
        continue
      }
      guard app.manifest != manifest else { continue }
      left.insert(vendor(of: id))
      plan.add(.appUpdated(id, App(installed: app.installed, manifest: manifest)))
      // It may see another device identifier now. Where that is not there yet, it is told when it comes.
      plan.rehomeTokens(of: plan.registry.deviceScope(of: id))
    }
    // At last: one app of a vendor may have taken another's place.
    for vendor in left.sorted() { plan.endIfDeserted(vendor, at: now) }
    return plan.changes
  }

  /// What ends with an app, and with the vendor's last app the vendor's identifier.
  func uninstallation(of id: Text, at now: Timestamp) -> [Change] {
    var plan = Plan(self)
    plan.uninstall(id, at: now)
    plan.endIfDeserted(vendor(of: id), at: now)
    return plan.changes
  }

  /// `app forget ID`.
  ///
  /// - Throws: `notFound` for an app that is not installed; `conflict` for one with a manifest, which would bring it back;
  ///   `limit` where the peer has done so too often, because the history is kept for good.
  func mayForget(_ id: Text, _ peer: Peer) throws(Refusal) {
    // A service of the user that is gone cannot ask by itself.
    guard id == peer.app || id.owner == peer.userID || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, to forget another app")
    }
    guard let app = apps[id] else { throw .notFound("no such app is installed") }
    guard app.manifest == nil else {
      throw .conflict("\(id) is installed by its manifest: it is uninstalled when that goes")
    }
    guard peer.isAdmin || remembered(of: id) < Bound.identifiersPerScope else {
      throw .limit("\(id) has had \(Bound.identifiersPerScope) identifiers; an admin may forget it")
    }
  }

  /// What installs an app that is used for the first time; nil for one that is installed.
  func firstUse(of id: Text, at now: Timestamp) throws(Refusal) -> Change? {
    guard apps[id] == nil else { return nil }
    try requireRoom(for: id)
    return .appInstalled(id, App(installed: now))
  }

  /// One more app without a manifest: a user who names services at will must not fill the store.
  func requireRoom(for id: Text) throws(Refusal) {
    guard id.isUnclaimedApp else { throw .notFound("\(id) is not installed") }
    guard apps.withoutManifest < Bound.unclaimedApps else {
      throw .limit("\(Bound.unclaimedApps) apps without a manifest are installed, which is all there may be")
    }
    guard let owner = id.owner else { return }
    guard apps.services(of: owner).count < Bound.appsPerUser else {
      throw .limit("\(Bound.appsPerUser) services of this user are installed, which is all it may have")
    }
  }

  /// How many identifiers the history has of an app without a manifest; of a user's service, of all that user's, whose
  /// names are the user's choice.
  private func remembered(of id: Text) -> Int {
    let owner = id.owner
    return history.lazy.filter { identifier in
      guard let app = identifier.scope.app ?? identifier.scope.vendor else { return false }
      return owner == nil ? app == id : app.owner == owner
    }.count
  }

  /// `app list`: an admin sees all, an app those of its vendor.
  func appRows(for peer: Peer) -> Reply {
    let visible = apps.filter { may(peer, see: .vendor(vendor(of: $0.key))) }.sorted { $0.key < $1.key }
    return .rows(visible.map { (id: $0.key, vendor: vendor(of: $0.key), app: $0.value) }) { row, reply in
      reply.word(.text(row.id))
      reply.attribute("vendor", .text(row.vendor))
      reply.attribute("installed", .time(row.app.installed))
      reply.attribute("manifest", .yesOrNo(row.app.manifest != nil))
    }
  }
}

extension Plan {
  /// An app goes, and with it its installation identifier, its tokens, what is known of its versions, and the items that
  /// it added for as long.
  fileprivate mutating func uninstall(_ id: Text, at now: Timestamp) {
    if registry.items.usage(of: id.quotaHolder).items > 0 {
      for held in registry.items.held.filter({ $0.item.endsWithInstallation && $0.item.owner == id }).inOrder {
        add(.itemDeleted(held.item))
      }
    }
    if registry[.installation(id)] != nil {
      add(.identifierEnded(.installation(id), .init(time: now, cause: .uninstalled)))
    }
    deleteTokens(of: id)
    forgetVersions(of: .app(id))
    add(.appUninstalled(id))
  }

  /// A vendor's identifier ends with the vendor's last app.
  fileprivate mutating func endIfDeserted(_ vendor: Text, at now: Timestamp) {
    guard registry[.vendor(vendor)] != nil, !registry.apps.hasAny(of: vendor) else { return }
    add(.identifierEnded(.vendor(vendor), .init(time: now, cause: .uninstalled)))
  }
}

extension Text {
  /// The user to whom an app without a manifest belongs by its name: `unit:NAME@UID`, `unit:NAME:UID`, `container:ID@UID`.
  /// Nil for any other. The name of a service ends with `.service`, so that of a system's own service is none of these.
  package var owner: UInt32? {
    let isUnit = bytes.starts(with: "unit:".utf8)
    guard isUnit || bytes.starts(with: "container:".utf8),
      let mark = bytes.lastIndex(where: { $0 == UInt8(ascii: "@") || isUnit && $0 == UInt8(ascii: ":") })
    else { return nil }
    return UInt32(String(decoding: bytes[(mark + 1)...], as: UTF8.self))
  }
}
