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
      for (id, app) in apps where app.suspended == nil {
        if let manifest = app.manifest { entries[id] = .init(file: "the manifest of \(id)", manifest: manifest) }
      }
      return entries
    case .found(let found, _):
      var entries: [Text: ManifestSurvey.Entry] = [:]
      for (id, entry) in found {
        // A faulty file keeps an app in force, but resumes none.
        let present = apps[id].flatMap { $0.suspended == nil ? $0.manifest : nil }
        guard let manifest = entry.manifest ?? present else { continue }
        entries[id] = .init(file: entry.file, manifest: manifest)
      }
      return entries
    }
  }

  /// Returns the changes after which exactly the apps with these manifests are in force, besides apps without
  /// a manifest. An app whose manifest is missing is suspended.
  ///
  /// - Parameters:
  ///   - survey: the result of the survey. An app with a faulty manifest stays installed.
  ///   - refused: the apps whose manifests conflict. Installed apps keep their present manifests. New apps are
  ///     not installed.
  ///   - replacements: the apps that take the place of another one, whose manifest is missing.
  /// - Returns: the changes of each transaction. Whichever was the last one, the next survey continues behind it.
  package func reconciliation(
    with survey: ManifestSurvey, _ entries: [Text: ManifestSurvey.Entry], refused: Set<Text>,
    replacements: [Text: Replacement] = [:], at now: Timestamp
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
    let replaced = Set(replacements.values.lazy.filter { !refused.contains($0.id) }.map(\.previous))
    for (id, app) in apps where app.manifest != nil && app.suspended == nil && found[id] == nil {
      if replaced.contains(id) { continue }
      plan.suspend(id, app, at: now)
      endTransaction()
    }
    for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !refused.contains(id) {
      guard let manifest = entry.manifest else { continue }
      if let app = apps[id], app.suspended != nil, !app.resumes(with: manifest, in: entry.folder) {
        plan.uninstall(id, at: now)
        leave(vendor(of: id))
      }
      if let app = plan.registry.apps[id] {
        // A faulty file leaves everything as it is, also the folder.
        let folder = found[id]?.manifest == nil ? app.folder : entry.folder
        let new = App(installed: app.installed, manifest: manifest, folder: folder)
        guard app != new else { continue }
        let device = plan.registry[plan.registry.deviceScope(of: id)]?.value
        plan.add(.appUpdated(id, new))
        if app.suspended != nil, plan.registry.use(of: id) != nil { plan.add(.appUseForgotten(id)) }
        plan.moveTokens(of: id, from: device)
        leave(vendor(of: id))
      } else if let replacement = replacements[id] {
        plan.replace(replacement)
      } else {
        plan.add(.appInstalled(id, App(installed: now, manifest: manifest, folder: entry.folder)))
      }
      endTransaction()
    }
    // Last, because an app that has just resumed is none of them.
    for id in plan.registry.surplusOfSuspended {
      plan.forget(id, at: now)
      endTransaction()
    }
    endTransaction(from: 1)
    return transactions
  }
  /// The apps that were suspended longest, if more are suspended than are kept.
  private var surplusOfSuspended: [Text] {
    guard apps.suspended > Bound.suspendedApps else { return [] }
    let suspended = apps.compactMap { id, app in app.suspended.map { (since: $0, id: id) } }
    return suspended.sorted { ($0.since, $0.id) < ($1.since, $1.id) }
      .prefix(suspended.count - Bound.suspendedApps).map(\.id)
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

  /// The app whose manifest is looked for again before the command is decided; see ``RegistryRule/removedApp``.
  package var removedApp: Text? { rule.removedApp }
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
      reply.attribute("suspended", row.app.suspended.map(Reply.Value.time))
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

/// `app forget ID`: uninstalls an app that has no manifest, or that is suspended because its manifest is missing.
///
/// The vendor's identifier ends with the vendor's last app. The history drops old identifiers if it has too many.
///
/// - Throws: `denied` without the right; `notFound` if the app is not installed; `conflict` if the manifest of the app
///   is there, which would install it again.
struct ForgetRule: ChangeRule {
  let id: Text
  var basis: Basis { Basis(whole: [.apps, .uses]) }
  var removedApp: Text? { id }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    // A user may forget the app of its own service, because a removed service cannot send the request itself.
    let isOwn = id == peer.app || id.owner == peer.userID && !peer.place.isContained
    guard isOwn || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to forget another app")
    }
    guard let app = registry.apps[id] else { throw .notFound("no such app is installed") }
    if app.manifest != nil, app.suspended == nil {
      // The manifest may have been removed since the last survey, so the writer decides after another one.
      if peer.isAdmin, context == nil { return nil }
      throw .conflict("\(id) is installed by its manifest; remove the manifest to uninstall the app")
    }
    guard app.suspended == nil || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to forget an app with a manifest")
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

  /// Suspends an app whose manifest is missing. Its identifiers and data stay.
  fileprivate mutating func suspend(_ id: Text, _ app: App, at now: Timestamp) {
    var suspended = app
    suspended.suspended = now
    add(.appUpdated(id, suspended))
    // The day from which `ForgetSuspended=` counts. Before the first day is recorded, the next record of uses adds it.
    if let today = registry.day { add(.appUsed(id, today)) }
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
