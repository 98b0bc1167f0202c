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

  /// `app forget ID`: what ends with an app, with the vendor's last app also the vendor's identifier, and what the history
  /// lets go of because of that.
  func uninstallation(of id: Text, _ context: Context) -> [Change] {
    var plan = Plan(self)
    plan.forget(id, at: context.now)
    plan.trimHistory(of: holder(of: id), context.limits)
    return plan.changes
  }

  /// Checks whether a peer may uninstall an app.
  ///
  /// - Throws: `notFound` for an app that is not installed; `conflict` for one with a manifest, which would bring it back.
  func mayForget(_ id: Text, _ peer: Peer) throws(Refusal) {
    // A service of the user that is gone cannot ask by itself.
    let isOwn = id == peer.app || id.owner == peer.userID && !peer.place.isContained
    guard isOwn || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, to forget another app")
    }
    guard let app = apps[id] else { throw .notFound("no such app is installed") }
    guard app.manifest == nil else {
      throw .conflict("\(id) is installed by its manifest: it is uninstalled when that goes")
    }
  }

  /// What installs an app that is used for the first time; nil for one that is installed.
  func firstUse(of id: Text, _ context: Context) throws(Refusal) -> Change? {
    guard apps[id] == nil else { return nil }
    try requireRoom(for: id, context.limits)
    return .appInstalled(id, App(installed: context.now))
  }

  /// Checks that there is room for one more app without a manifest.
  ///
  /// A principal without any may have its first one as long as there is room at all; then it may have its fair share of
  /// what is not in reserve.
  private func requireRoom(for id: Text, _ limits: Limits) throws(Refusal) {
    guard id.isUnclaimedApp else { throw .notFound("\(id) is not installed") }
    let remedy = "an admin may remove unused ones by 'app forget unused=DAYS'"
    guard apps.withoutManifest < limits.apps else {
      throw .limit(
        "\(limits.apps) apps without a manifest are installed, which is all there may be ([Limits] Apps=); \(remedy)")
    }
    let holder = holder(of: id)
    guard case .principal = holder else { return }
    let own = apps.apps(of: holder).count
    let most = limits.share(
      of: limits.apps, atMost: limits.appsPerUser, used: apps.withoutManifest, own: own, principals: apps.principals)
    guard own == 0 || own < most else {
      throw .limit(
        "\(holder) has \(own) apps without a manifest, which is all it may have now ([Limits] Apps=, AppsPerUser=); "
          + remedy)
    }
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
  /// An app without a manifest goes, and with the vendor's last app the vendor's identifier.
  mutating func forget(_ id: Text, at now: Timestamp) {
    let vendor = registry.vendor(of: id)
    uninstall(id, at: now)
    endIfDeserted(vendor, at: now)
  }

  /// Lets go of the oldest identifiers of forgotten apps where a holder has too many of them, or all together. Some more
  /// than have to go, because finding the oldest takes a look at all.
  mutating func trimHistory(of holder: Holder, _ limits: Limits) {
    let own = registry.history.expendable(of: holder)
    if own > limits.historyPerUser {
      drop(own - limits.historyPerUser + limits.historyPerUser / 8, of: holder)
    }
    let all = registry.history.expendableCount
    if all > limits.history { drop(all - limits.history + limits.history / 64, of: nil) }
  }

  private mutating func drop(_ count: Int, of holder: Holder?) {
    for oldest in registry.history.oldestExpendable(min(count, Bound.forgottenTogether), of: holder) {
      add(.identifierForgotten(oldest))
    }
  }

  /// An app goes, and with it its installation identifier, its tokens, what is known of its versions, and the items that
  /// it added for as long.
  fileprivate mutating func uninstall(_ id: Text, at now: Timestamp) {
    if registry.items.usage(of: registry.holder(of: id)).items > 0 {
      for held in registry.items.held.filter({ $0.item.endsWithInstallation && $0.item.owner == id }).inOrder {
        add(.itemDeleted(held.item))
      }
    }
    if registry[.installation(id)] != nil {
      add(.identifierEnded(.installation(id), .init(time: now, cause: .uninstalled)))
    }
    deleteTokens(of: id)
    forgetVersions(of: .app(id))
    if registry.use(of: id) != nil { add(.appUseForgotten(id)) }
    add(.appUninstalled(id))
  }

  /// A vendor's identifier ends with the vendor's last app.
  fileprivate mutating func endIfDeserted(_ vendor: Text, at now: Timestamp) {
    guard registry[.vendor(vendor)] != nil, !registry.apps.hasAny(of: vendor) else { return }
    add(.identifierEnded(.vendor(vendor), .init(time: now, cause: .uninstalled)))
  }
}
