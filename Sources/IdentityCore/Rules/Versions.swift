// Versions of apps and of the system, and the relation of each report to the one before (identityd-protocol(7),
// section "VERSIONS").
extension VersionOrder {
  /// Returns the relation of a release to the previous release.
  func state(of release: Release, after previous: Release?) -> VersionState {
    guard let previous else { return .installed }
    // Versions of different distributions have no order.
    guard release.distribution == previous.distribution else { return .upgraded }
    // Neither have the names of a distribution's releases, such as forky and trixie.
    if release.version != previous.version, release.isNamed || previous.isNamed { return .upgraded }
    switch compareReported(release.version, previous.version) {
    case .greater: return .upgraded
    case .less: return .downgraded
    case .equal: return release == previous ? .unchanged : .updated
    }
  }
}

extension RegistryCommand {
  package static func reportVersion(_ release: Release, app: Text?, order: VersionOrder? = nil) -> Self {
    Self(ReportVersionRule(release: release, namedApp: app, order: order))
  }
  package static func previewVersion(_ release: Release, app: Text?, order: VersionOrder? = nil) -> Self {
    Self(PreviewVersionRule(release: release, namedApp: app, order: order))
  }
  package static func versionState(_ question: VersionQuestion) -> Self { Self(VersionStateRule(question: question)) }
  package static var versionStates: Self { Self(VersionStatesRule()) }
  package static func versionHistory(_ question: VersionQuestion) -> Self {
    Self(VersionHistoryRule(question: question))
  }
  package static func claim(name: Text, app: Text?) -> Self { Self(ClaimRule(name: name, namedApp: app)) }
}

// MARK: - Rules

/// `version report`: reports the release that the app runs. The release is compared with that of the session before.
struct ReportVersionRule: RegistryRule {
  let release: Release
  let namedApp: Text?
  /// The order that the release and the one before are compared by; nil for that of the app.
  let order: VersionOrder?
  var basis: Basis { Basis(whole: .versions) }

  func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    let subject = VersionSubject.app(try registry.app(named: namedApp, by: peer))
    let session = try surroundings.session(peer)
    if let report = registry.versions[subject].report(of: session), report.release == release {
      return Decision(reply: registry.describe(report, of: subject))
    }
    guard let context else { return nil }
    return try registry.report(release, of: subject, session: session, by: order, context)
  }
}

/// `version report dry-run=yes`: returns the answer to a report without reporting.
struct PreviewVersionRule: QueryRule {
  let release: Release
  let namedApp: Text?
  /// The order that the release and the one before are compared by; nil for that of the app.
  let order: VersionOrder?
  var basis: Basis { Basis(whole: .versions) }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let subject = VersionSubject.app(try registry.app(named: namedApp, by: peer))
    let report = registry.report(of: release, by: try surroundings.session(peer), of: subject, order)
    return registry.describe(report, of: subject)
  }
}

/// `version state`: returns the last report, that of this session if there is one.
struct VersionStateRule: QueryRule {
  let question: VersionQuestion
  var basis: Basis { Basis(whole: .versions) }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let subject = try registry.subject(of: question, for: peer)
    return registry.describe(try registry.report(of: subject, for: peer, in: surroundings), of: subject)
  }
}

/// `version state app=*`: returns the last report of each app.
struct VersionStatesRule: QueryRule {
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: .versions) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    .rows(of: Search(OrderedBlocks(registry.versions.histories)) { $0.subject.app != nil && $0.current != nil }) {
      history, reply in
      guard let current = history.current else { return }
      current.describe(installed: history.installed(current.release)?.installed, to: &reply)
      reply.attribute("app", history.subject.app.map(Reply.Value.text))
    }
  }
}

/// `version history`: lists all releases.
struct VersionHistoryRule: QueryRule {
  let question: VersionQuestion
  var basis: Basis { Basis(whole: .versions) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    .rows(registry.versions[try registry.subject(of: question, for: peer)].inOrder) { installed, reply in
      reply.word(.text(installed.release.version))
      reply.attributes(installed.release.particulars)
      reply.attribute("installed", .time(installed.installed))
      reply.attribute("last", .time(installed.last))
    }
  }
}

/// `version claim`: claims run-once work of the version. Only the first caller for a name gets `first`.
struct ClaimRule: RegistryRule {
  let name: Text
  let namedApp: Text?
  var basis: Basis { Basis(whole: .versions) }

  func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    let subject = VersionSubject.app(try registry.app(named: namedApp, by: peer))
    let version = try registry.report(of: subject, for: peer, in: surroundings).release.version
    guard !registry.isClaimed(name, for: version, of: subject) else {
      return Decision(reply: .done(.string("again")))
    }
    guard context != nil else { return nil }
    var plan = Plan(registry)
    try plan.makeRoomForClaim(of: subject, version: version)
    let claim = VersionClaim(number: registry.versions.lastClaim + 1, version: version, name: name)
    plan.add(.version(.claimed(subject, claim)))
    return Decision(changes: plan.changes, reply: .done(.string("first")))
  }
}

// MARK: - Reports

extension Registry {
  /// Returns the order of versions for an app or for the system.
  func order(of subject: VersionSubject) -> VersionOrder {
    guard let app = subject.app else { return .linux }
    return apps[app]?.manifest?.versionOrder ?? .auto
  }

  fileprivate func subject(of question: VersionQuestion, for peer: Peer) throws(Refusal) -> VersionSubject {
    switch question {
    case .app(let named): return .app(try app(named: named, by: peer))
    case .system:
      _ = try app(named: nil, by: peer)
      // The times of system updates are unique to this device, so apps could be linked by them.
      try requireSharing(peer)
      return .system
    }
  }

  /// Returns the report of the peer's session, or else the last report.
  fileprivate func report(of subject: VersionSubject, for peer: Peer, in surroundings: Surroundings) throws(Refusal)
    -> VersionReport
  {
    let history = versions[subject]
    // A peer whose session cannot be determined has not reported.
    let session = subject == .system ? nil : try? surroundings.session(peer)
    guard let report = session.flatMap({ history.report(of: $0) }) ?? history.current else {
      let reason = subject.app.map { "\($0) has not reported a version" }
      throw .notFound(reason ?? "the version of the system is unknown; see the journal")
    }
    return report
  }

  /// Returns whether a name is claimed for a version, or for an equal version in another spelling.
  func isClaimed(_ name: Text, for version: Text, of subject: VersionSubject) -> Bool {
    let order = order(of: subject)
    return versions[subject].claims.contains { $0.name == name && order.compare($0.version, version) == .equal }
  }

  fileprivate func describe(_ report: VersionReport, of subject: VersionSubject) -> Reply {
    var reply = Reply()
    reply.ok()
    report.describe(installed: versions[subject].installed(report.release)?.installed, to: &reply)
    return reply
  }
}

extension VersionReport {
  /// Adds the words and attributes of the report to an answer.
  ///
  /// - Parameter installed: the time of the release's first installation. The time of the last return to the release is
  ///   left out. It may be later than the report, whose answer must not change.
  fileprivate func describe(installed: Timestamp?, to reply: inout Reply) {
    reply.word(.string(state.rawValue))
    reply.word(.text(release.version))
    reply.attributes(release.particulars)
    if state != .unchanged { reply.attributes(previous?.particulars(before: release, state) ?? []) }
    reply.attribute("installed", installed.map(Reply.Value.time))
  }
}

extension Release {
  /// Whether the release is one of a distribution that has no number.
  fileprivate var isNamed: Bool { distribution != nil && version.bytes.first?.isDigit != true }

  /// The attributes that follow the version in an answer or an event.
  var particulars: [Event.Attribute] { Event.Attribute.given(("build", build), ("id", distribution)) }

  /// The attributes of the release as the previous one. The distribution is included only if it differs. An update to
  /// another spelling of the version, or to one of the same rank, says so.
  func particulars(before release: Release, _ state: VersionState) -> [Event.Attribute] {
    Event.Attribute.given(
      ("previous", version), ("previous-build", build),
      ("previous-id", distribution == release.distribution ? nil : distribution),
      ("same-order", state == .updated && version != release.version ? "yes" : nil))
  }
}

extension Event.Attribute {
  /// Returns the attributes that have a value.
  fileprivate static func given(_ attributes: (Text, Text?)...) -> [Event.Attribute] {
    attributes.compactMap { name, value in value.map { Event.Attribute(name, $0) } }
  }
}

extension Reply {
  /// Adds the attributes of an event.
  mutating func attributes(_ attributes: [Event.Attribute]) {
    for attribute in attributes { self.attribute("\(attribute.name)", .text(attribute.value)) }
  }
}

extension VersionHistory {
  /// The releases in the order of their first installation. A restored release may be older than those already here.
  fileprivate var inOrder: [InstalledRelease] {
    releases.sorted { ($0.installed, $0.number) < ($1.installed, $1.number) }
  }

  /// Returns the report of a session.
  func report(of session: UUID) -> VersionReport? { reports.last { $0.session == session } }
}

// MARK: - Changes

extension Registry {
  /// Returns the changes that report the running system. The boot is the session.
  ///
  /// - Returns: no changes if this boot has reported already, even if the system's version has changed since.
  package func systemReport(_ release: Release, boot: UUID, _ context: Context) throws(Refusal) -> [Change] {
    guard !isSealed, versions[.system].report(of: boot) == nil else { return [] }
    return try report(release, of: .system, session: boot, by: nil, context).changes
  }

  /// Decides a report. The release is compared with the release of the session before.
  fileprivate func report(
    _ release: Release, of subject: VersionSubject, session: UUID, by order: VersionOrder?, _ context: Context
  ) throws(Refusal) -> Decision {
    var plan = Plan(self)
    if let app = subject.app, let change = try firstUse(of: app, context) { plan.add(change) }
    let own = versions[subject].report(of: session)
    let report = report(of: release, by: session, of: subject, order)
    if versions[subject].current?.release != release { try plan.install(release, of: subject, at: context.now) }
    plan.add(.version(.reported(subject, report)))
    if let own { plan.add(.version(.reportForgotten(subject, own))) }
    let reports = plan.registry.versions[subject].reports
    for old in reports.dropLast(Bound.sessionsPerApp) { plan.add(.version(.reportForgotten(subject, old))) }
    return Decision(changes: plan.changes, reply: plan.registry.describe(report, of: subject))
  }

  /// Returns the report for a release, which determines the answer to the session.
  fileprivate func report(
    of release: Release, by session: UUID, of subject: VersionSubject, _ order: VersionOrder?
  ) -> VersionReport {
    let history = versions[subject]
    let own = history.report(of: session)
    if let own, own.release == release { return own }
    // A session keeps the previous release of its first report in all later reports.
    let previous = own.map(\.previous) ?? history.current?.release
    return VersionReport(
      number: versions.lastReport + 1, session: session, release: release,
      state: (order ?? self.order(of: subject)).state(of: release, after: previous), previous: previous)
  }

  /// Returns the apps that share a bound with an app; see ``Holder``.
  func sharers(of app: Text) -> Set<Text> { apps.apps(of: holder(of: app)) }
}

extension Plan {
  /// Adds a release to the history, or updates its entry.
  ///
  /// If there are too many releases, drops the one whose last installation is the longest ago, among those that no kept
  /// report names.
  fileprivate mutating func install(_ release: Release, of subject: VersionSubject, at now: Timestamp) throws(Refusal) {
    if var known = registry.versions[subject].installed(release) {
      known.last = now
      add(.version(.reinstalled(subject, known)))
      return
    }
    if hasTooMany(Bound.releasesPerApp, Bound.releases, \.releases.count, registry.versions.releases, of: subject) {
      let history = registry.versions[subject]
      let told = Set(history.reports.map(\.release))
      let oldest = history.releases.filter { !told.contains($0.release) }.min { $0.last < $1.last }
      guard let oldest else { throw tooMany("reported versions", subject) }
      add(.version(.releaseForgotten(subject, oldest)))
    }
    add(
      .version(
        .installed(
          subject,
          InstalledRelease(number: registry.versions.lastRelease + 1, release: release, installed: now, last: now))))
  }

  /// Makes room for a claim by removing the oldest claim of another version.
  fileprivate mutating func makeRoomForClaim(of subject: VersionSubject, version: Text) throws(Refusal) {
    guard hasTooMany(Bound.claimsPerApp, Bound.claims, \.claims.count, registry.versions.claims, of: subject) else {
      return
    }
    let order = registry.order(of: subject)
    let oldest = registry.versions[subject].claims.first { order.compare($0.version, version) != .equal }
    guard let oldest else { throw tooMany("version claims", subject) }
    add(.version(.claimForgotten(subject, oldest)))
  }

  private func hasTooMany(
    _ bound: Int, _ boundOfAll: Int, _ count: (VersionHistory) -> Int, _ all: Int, of subject: VersionSubject
  ) -> Bool {
    let sharers = subject.app.map { registry.sharers(of: $0).map(VersionSubject.app) } ?? [subject]
    return all >= boundOfAll || sharers.reduce(0) { $0 + count(registry.versions[$1]) } >= bound
  }

  private func tooMany(_ what: String, _ subject: VersionSubject) -> Refusal {
    .limit("the limit of \(what) is reached\(subject.app.map { " for \($0)" } ?? "")")
  }

  /// Removes the versions of an app or of the system.
  mutating func forgetVersions(of subject: VersionSubject) {
    let history = registry.versions[subject]
    // Last row first, because removing the first one would move all others each time.
    for report in history.reports.reversed() { add(.version(.reportForgotten(subject, report))) }
    for installed in history.releases.reversed() { add(.version(.releaseForgotten(subject, installed))) }
    for claim in history.claims.reversed() { add(.version(.claimForgotten(subject, claim))) }
  }
}
