// Apps and their manifests (identityd-protocol(7), section "WHO IS ASKING").
extension Registry {
  /// Returns the manifests in force after a survey.
  ///
  /// If a manifest is faulty, the app's present manifest stays in force. If the survey failed, all present
  /// manifests do.
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

  /// Returns the changes after which exactly the apps with these manifests are installed, besides apps without
  /// a manifest.
  ///
  /// - Parameters:
  ///   - survey: the result of the survey. An app with a faulty manifest stays installed.
  ///   - refused: the apps whose manifests conflict. Installed apps keep their present manifests. New apps are
  ///     not installed.
  /// - Returns: the changes of each transaction. Whichever was the last one, the next survey continues behind it.
  package func reconciliation(
    with survey: ManifestSurvey, _ entries: [Text: ManifestSurvey.Entry], refused: Set<Text>, at now: Timestamp
  ) -> [[Change]] {
    guard case .found(let found, _) = survey else { return [] }
    var plan = Plan(self)
    var transactions: [[Change]] = []
    func endTransaction(from count: Int = Bound.changesPerSurveyCommit) {
      if plan.changes.count >= count { transactions.append(plan.takeChanges()) }
    }
    // Another app of these vendors may still be to be installed.
    let staying = Set(entries.compactMap { refused.contains($0.key) ? nil : $0.value.manifest?.vendor })
    func leave(_ vendor: Text) { if !staying.contains(vendor) { plan.endIfDeserted(vendor, at: now) } }
    let gone = apps.filter { $0.value.manifest != nil && found[$0.key] == nil }.map(\.key)
    for id in gone {
      plan.uninstall(id, at: now)
      leave(vendor(of: id))
      endTransaction()
    }
    for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !refused.contains(id) {
      guard let manifest = entry.manifest else { continue }
      if let app = apps[id] {
        guard app.manifest != manifest else { continue }
        let device = plan.registry[plan.registry.deviceScope(of: id)]?.value
        plan.add(.appUpdated(id, App(installed: app.installed, manifest: manifest)))
        plan.moveTokens(of: id, from: device)
        leave(vendor(of: id))
      } else {
        plan.add(.appInstalled(id, App(installed: now, manifest: manifest)))
      }
      endTransaction()
    }
    endTransaction(from: 1)
    return transactions
  }
  /// Returns the change that installs an app at its first use; nil if the app is installed.
  func firstUse(of id: Text, _ context: Context) throws(Refusal) -> Change? {
    guard apps[id] == nil else { return nil }
    try requireRoom(for: id, context.limits)
    return .appInstalled(id, App(installed: context.now))
  }

  /// Checks that there is room for another app without a manifest.
  ///
  /// A principal without such apps may have its first one as long as there is any room. Beyond that, a principal may
  /// have its fair share of the part that is not reserved.
  private func requireRoom(for id: Text, _ limits: Limits) throws(Refusal) {
    guard id.isUnclaimedApp else { throw .notFound("\(id) is not installed") }
    let remedy = "an admin can remove unused apps with 'app forget unused=DAYS'"
    guard apps.withoutManifest < limits.apps else {
      throw .limit(
        "the limit of \(limits.apps) apps without a manifest is reached ([Limits] Apps=); \(remedy)")
    }
    let holder = holder(of: id)
    guard case .principal = holder else { return }
    let own = apps.count(of: holder)
    let most = limits.share(
      of: limits.apps, atMost: limits.appsPerUser, used: apps.withoutManifest, own: own, principals: apps.principals)
    guard own == 0 || own < most else {
      throw .limit(
        "\(holder) has \(own) apps without a manifest and may have no more now ([Limits] Apps=, AppsPerUser=); "
          + remedy)
    }
  }
}

extension RegistryCommand {
  package static var apps: Self { Self(AppsRule()) }
  package static func forget(app: Text) -> Self { Self(ForgetRule(id: app)) }
}

/// `app list`: lists all apps for an admin, and otherwise the apps of the peer's vendor.
///
/// Only an admin learns what the manifests say: an app has no use for the units and rights of others.
struct AppsRule: QueryRule {
  var basis: Basis { Basis(whole: [.apps, .uses]) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let isAdmin = peer.isAdmin
    return .rows(of: registry.visibleApps(to: peer)) { row, reply in
      let vendor = row.app.manifest?.vendor ?? row.key
      reply.word(.text(row.key))
      reply.attribute("vendor", .text(vendor))
      reply.attribute("installed", .time(row.app.installed))
      reply.attribute("manifest", .yesOrNo(row.app.manifest != nil))
      guard isAdmin, let manifest = row.app.manifest else { return }
      reply.attribute("unit", manifest.unit.map(Reply.Value.text))
      reply.attribute("container", manifest.container.map(Reply.Value.text))
      reply.grants(groups: manifest.accessGroups, rights: manifest.rights)
    }
  }
}

extension Registry {
  /// Returns the search for the apps that a peer may see, in the order of their IDs.
  func visibleApps(to peer: Peer) -> Search<OrderedBlocks<InstalledApp>> {
    Search(OrderedBlocks(apps.table)) { may(peer, see: .vendor($0.app.manifest?.vendor ?? $0.key)) }
  }
}

/// `app forget ID`: uninstalls an app that has no manifest.
///
/// The vendor's identifier ends with the vendor's last app. The history drops old identifiers if it has too many.
///
/// - Throws: `denied` without the right; `notFound` if the app is not installed; `conflict` if the app has a
///   manifest, which would install it again.
struct ForgetRule: ChangeRule {
  let id: Text
  var basis: Basis { Basis(whole: [.apps, .uses]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    // A user may forget the app of its own service, because a removed service cannot send the request itself.
    let isOwn = id == peer.app || id.owner == peer.userID && !peer.place.isContained
    guard isOwn || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to forget another app")
    }
    guard let app = registry.apps[id] else { throw .notFound("no such app is installed") }
    guard app.manifest == nil else {
      throw .conflict("\(id) is installed by its manifest; remove the manifest to uninstall the app")
    }
    guard let context else { return nil }
    var plan = Plan(registry)
    plan.forget(id, at: context.now)
    plan.trimHistory(of: registry.holder(of: id), context.limits)
    return Decision(changes: plan.changes, reply: .done)
  }
}

extension Plan {
  /// Uninstalls an app without a manifest. The vendor's identifier ends with the vendor's last app.
  mutating func forget(_ id: Text, at now: Timestamp) {
    let vendor = registry.vendor(of: id)
    uninstall(id, at: now)
    endIfDeserted(vendor, at: now)
  }

  /// Drops the oldest identifiers of forgotten apps if a holder, or all holders together, have too many.
  ///
  /// Drops more than necessary, because finding the oldest takes a scan of the whole history.
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

  /// Uninstalls an app, with its installation identifier, tokens, versions, and its items that end with the installation.
  fileprivate mutating func uninstall(_ id: Text, at now: Timestamp) {
    for held in registry.items.ending(with: id) { add(.itemDeleted(held.item)) }
    if registry[.installation(id)] != nil {
      add(.identifierEnded(.installation(id), .init(time: now, cause: .uninstalled)))
    }
    deleteTokens(of: id)
    forgetVersions(of: .app(id))
    if registry.use(of: id) != nil { add(.appUseForgotten(id)) }
    add(.appUninstalled(id))
  }

  /// Ends the identifier of a vendor that has no app left.
  fileprivate mutating func endIfDeserted(_ vendor: Text, at now: Timestamp) {
    guard registry[.vendor(vendor)] != nil, !registry.apps.hasAny(of: vendor) else { return }
    add(.identifierEnded(.vendor(vendor), .init(time: now, cause: .uninstalled)))
  }
}
