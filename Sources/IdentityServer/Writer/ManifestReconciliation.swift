import IdentityCore
import IdentityWire

/// The reader of facts about the system: of manifests, and of the users and ranges on which they depend.
struct Surveyor {
  let sources: WriterSources
  /// The manifest folders of the last survey, most important first.
  private(set) var folders: [String] = []
  /// The users whose ranges of subordinate users are looked up by owner.
  private var rangeOwners: Set<UInt32> = []

  init(_ sources: WriterSources) { self.sources = sources }

  /// Adds a user whose ranges are looked up by owner, and returns whether the user is a new one.
  mutating func add(owner: UInt32) -> Bool { rangeOwners.insert(owner).inserted }

  /// Reads the manifests in these folders.
  mutating func manifests(in folders: [String]) -> ManifestSurvey {
    self.folders = folders
    return sources.manifests(folders)
  }

  /// Reads the ranges of subordinate users, which are nil if they cannot be read, and returns the faults found.
  func subordinates() -> (users: SubordinateUsers?, faults: [String]) { sources.subordinates(rangeOwners) }

  /// Looks up the users that manifests name, and returns the faults found.
  func lookUp(_ entries: [Text: ManifestSurvey.Entry]) -> (
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

// The survey of manifests, on the writer's thread, so that the loop never waits for a folder or for the name service.
extension Writer {
  /// Installs and uninstalls apps so that exactly the apps with a manifest are installed, besides apps without
  /// a manifest.
  ///
  /// - Parameter goOn: called after each transaction.
  func survey(_ folders: [String], _ report: inout WriterReport, _ goOn: () -> Void = {}) {
    let context = context(for: nil)
    let manifests = activity.inStorage { surveyor.manifests(in: folders) }
    let (survey, replacements, unmet) = registry.replacements(in: manifests, context)
    let (entries, userFaults) = activity.inStorage { surveyor.lookUp(registry.manifests(after: survey)) }
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
      // An app that goes takes its items along.
      if !transactions.isEmpty || !unmet.isEmpty, readItems(&report) { return self.survey(folders, &report, goOn) }
      for changes in transactions {
        try refuseUnwritable()
        guard !registry.isSealed else { throw .unavailable("the store is sealed") }
        if let refusal = commit(changes, at: now, &report) { throw refusal }
        goOn()
      }
    } catch {
      faults.append("the manifests could not be applied: \(error.text)")
      // An app that is not installed must not be served as installed, so the claims of the manifests in force apply.
      claims = AppClaims()
      _ = claims.insert(surveyor.lookUp(registry.manifests(after: .unreadable(""))).entries)
    }
    report.survey = .init(claims: claims, faults: faults.sorted())
  }

  /// Reads the ranges of subordinate users.
  ///
  /// - Returns: the faults found.
  @discardableResult
  func readSubordinates(_ report: inout WriterReport) -> [String] {
    let (users, faults) = activity.inStorage { surveyor.subordinates() }
    if let users {
      registry.use(users)
      report.subordinates = users
    }
    return faults
  }
}
