import IdentityCore
import IdentityWire

// The survey of manifests, on the writer's thread, so that the loop never waits for a folder or for the name service.
extension Writer {
  /// Installs and uninstalls apps so that exactly the apps with a manifest are installed, besides apps without
  /// a manifest.
  ///
  /// - Parameter goOn: called after each transaction.
  func survey(_ folders: [String], _ report: inout WriterReport, _ goOn: () -> Void = {}) {
    surveyed = folders
    activity.enterStorage()
    let context = context(for: nil)
    let (survey, replacements, unmet) = registry.replacements(in: sources.manifests(folders), context)
    let (entries, userFaults) = lookUp(registry.manifests(after: survey))
    activity.leaveStorage()
    var faults: [String]
    switch survey {
    case .found(_, let found): faults = found + userFaults
    case .unreadable(let reason): faults = ["\(reason): the installed apps stay as they are"] + userFaults
    }
    faults += unmet.map(\.text) + readSubordinates(&report)
    var claims = AppClaims()
    let (refused, conflicts) = claims.insert(entries)
    faults += conflicts
    do throws(Refusal) {
      let now = context.now
      let transactions = registry.reconciliation(
        with: survey, entries, refused: refused, replacements: replacements, at: now)
      for changes in transactions {
        try refuseUnwritable()
        guard !registry.isSealed else { throw .unavailable("the store is sealed") }
        let before = registry
        if let refusal = commit(record(changes, at: now), &report) {
          registry = before
          throw refusal
        }
        goOn()
      }
    } catch {
      faults.append("the manifests could not be applied: \(error.text)")
      // An app that is not installed must not be served as installed, so the claims of the manifests in force apply.
      claims = AppClaims()
      _ = claims.insert(lookUp(registry.manifests(after: .unreadable(""))).entries)
    }
    report.survey = .init(claims: claims, faults: faults.sorted())
  }

  /// Reads the ranges of subordinate users.
  ///
  /// - Returns: the faults found.
  @discardableResult
  func readSubordinates(_ report: inout WriterReport) -> [String] {
    activity.enterStorage()
    let (users, faults) = sources.subordinates(rangeOwners)
    activity.leaveStorage()
    if let users {
      registry.use(users)
      report.subordinates = users
    }
    return faults
  }

  /// Looks up the users that manifests name, and returns the faults found.
  private func lookUp(_ entries: [Text: ManifestSurvey.Entry]) -> (
    entries: [Text: ManifestSurvey.Entry], faults: [String]
  ) {
    let users = sources.userIDs(Set(entries.values.flatMap { $0.manifest?.users.names ?? [] }))
    var faults: [String] = []
    let found = entries.mapValues { entry in
      let names = entry.manifest?.users.names ?? []
      for name in names {
        if let fault = users.faults[name] { faults.append("\(entry.file): User=\(name): \(fault)") }
      }
      return ManifestSurvey.Entry(
        file: entry.file, manifest: entry.manifest, userIDs: names.compactMap { users.known[$0] })
    }
    return (found, faults)
  }
}
