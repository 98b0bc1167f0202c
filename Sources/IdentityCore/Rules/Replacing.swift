// Apps that take the place of another one: `Replaces=` (identityd.app(5)).
extension Registry {
  /// Returns the replacements that manifests ask for, and the survey without faulty ones.
  ///
  /// If a manifest asks for a replacement that is not possible, its app is not installed. An app that is installed
  /// already stays as it is, and only the fault is reported.
  package func replacements(in survey: ManifestSurvey, _ context: Context) -> (
    survey: ManifestSurvey, replacements: [Text: Replacement], faults: [ReplacementFault]
  ) {
    guard case .found(var entries, let others) = survey else { return (survey, [:], []) }
    var faults: [ReplacementFault] = []
    var replacements: [Text: Replacement] = [:]
    let replacing = entries.filter { $0.value.manifest?.replaces != nil }.sorted { $0.key < $1.key }
    for (id, entry) in replacing {
      guard var manifest = entry.manifest, let previous = manifest.replaces.take() else { continue }
      entries[id] = .init(file: entry.file, manifest: manifest, userIDs: entry.userIDs)
      let rival = replacing.first { $0.key != id && $0.value.manifest?.replaces == previous }
      do throws(Refusal) {
        if let found = entries[previous] {
          throw .conflict("\(found.file) is still there; remove that file")
        }
        guard let old = apps[previous] else { continue }
        guard apps[id] == nil else {
          throw .conflict(
            "\(id) was installed before; to end \(previous) and its data, run 'identityctl app forget \(previous)'")
        }
        if let rival {
          throw .conflict("\(rival.value.file) replaces \(previous), too; remove the line from one of the files")
        }
        replacements[id] = try replacement(
          of: previous, old, by: id, App(installed: old.installed, manifest: manifest, folder: entry.folder), context)
      } catch {
        faults.append(ReplacementFault(file: entry.file, previous: previous, refusal: error))
        if apps[id] == nil { entries[id] = .init(file: entry.file, manifest: nil) }
      }
    }
    return (.found(entries, faults: others), replacements, faults)
  }

  /// Returns the replacement of an app whose manifest is missing.
  ///
  /// - Throws: the reason why it is not possible.
  private func replacement(of previous: Text, _ old: App, by id: Text, _ app: App, _ context: Context)
    throws(Refusal) -> Replacement
  {
    guard let manifest = old.manifest, let new = app.manifest, manifest.vendor == new.vendor else {
      throw .conflict("\(previous) is an app of the vendor \(vendor(of: previous)); set Vendor=\(vendor(of: previous))")
    }
    guard manifest.container == nil else {
      throw .conflict("\(previous) is the app of a container; an app outside of containers cannot replace it")
    }
    return Replacement(
      previous: previous, id: id, app: app, identifiers: movedIdentifiers(from: previous, to: id, at: context.now),
      items: try movedItems(from: previous, to: id, context), versions: movedVersions(from: previous, to: id),
      tokens: tokens.tokens(of: previous))
  }

  /// Returns all identifiers of an app with their new scopes.
  ///
  /// The new app may have a device identifier of its own from an earlier installation, which outlives an installation.
  /// That one stays in force, and the other one ends.
  private func movedIdentifiers(from previous: Text, to id: Text, at now: Timestamp) -> [NumberedIdentifier] {
    [(Scope.installation(previous), Scope.installation(id)), (.deviceOfApp(previous), .deviceOfApp(id))]
      .flatMap { from, to in
        history.numbers(of: from).compactMap { number in
          guard var identifier = history[number: number] else { return nil }
          identifier.scope = to
          if identifier.end == nil, history[to] != nil { identifier.end = .init(time: now, cause: .uninstalled) }
          return NumberedIdentifier(number: number, identifier: identifier)
        }
      }
  }

  /// Returns the items of an app's own group, and those in other groups that the app is charged for.
  ///
  /// - Throws: `conflict` if the new group has an item of the same service and account; the refusal of a secret that
  ///   cannot be read.
  private func movedItems(from previous: Text, to id: Text, _ context: Context) throws(Refusal)
    -> [Replacement.MovedItem]
  {
    guard items.isOwner(previous) || !items.isEmpty(group: previous) else { return [] }
    if let itemFault { throw .unavailable(itemFault) }
    var moved: [Replacement.MovedItem] = []
    for item in items.all where item.key.group == previous || item.owner == previous {
      var new = item
      if item.key.group == previous {
        new.key.group = id
        guard items[new.key] == nil else {
          throw .conflict(
            "the group \(id) has an item service=\(item.key.service) account=\(item.key.account) already; delete one of "
              + "the two")
        }
      }
      if item.owner == previous { new.owner = id }
      new.edition = try context.random()
      moved.append(.init(before: item, item: new, secret: try context.secret(item)))
    }
    return moved
  }

  private func movedVersions(from previous: Text, to id: Text) -> [VersionChange] {
    let history = versions[.app(previous)]
    let (old, new) = (VersionSubject.app(previous), VersionSubject.app(id))
    return history.reports.reversed().map { .reportForgotten(old, $0) }
      + history.releases.reversed().map { .releaseForgotten(old, $0) }
      + history.claims.reversed().map { .claimForgotten(old, $0) }
      + history.releases.map { .installed(new, $0) } + history.reports.map { .reported(new, $0) }
      + history.claims.map { .claimed(new, $0) }
  }
}

extension Plan {
  /// Puts an app in the place of another one.
  mutating func replace(_ replacement: Replacement) {
    let (previous, id) = (replacement.previous, replacement.id)
    let device = registry[registry.deviceScope(of: previous)]?.value
    if registry.use(of: previous) != nil { add(.appUseForgotten(previous)) }
    add(.appReplaced(replacement))
    for scope in [Scope.installation(id), .deviceOfApp(id)] { dropSurplus(of: scope) }
    moveTokens(of: id, from: device)
  }
}
