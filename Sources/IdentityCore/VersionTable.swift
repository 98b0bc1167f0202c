/// All that is known of the versions of an app, or of the system.
package struct VersionHistory: Equatable, Sendable {
  /// Whose they are.
  package let subject: VersionSubject
  /// First installed first.
  package fileprivate(set) var releases: [InstalledRelease] = []
  /// What the last sessions reported; the last is the current one.
  package fileprivate(set) var reports: [VersionReport] = []
  /// First claimed first.
  package fileprivate(set) var claims: [VersionClaim] = []

  /// What was reported last.
  package var current: VersionReport? { reports.last }

  /// When a release was installed; nil for one that is not in the history.
  func installed(_ release: Release) -> InstalledRelease? { releases.first { $0.release == release } }

  fileprivate var isEmpty: Bool { releases.isEmpty && reports.isEmpty && claims.isEmpty }
}

/// The versions of all apps and of the system.
package struct VersionTable: Equatable, Sendable {
  private var histories = DividedDictionary<VersionSubject, VersionHistory>()
  /// How many releases all apps together have.
  private(set) var releases = 0
  /// How many claims all apps together have.
  private(set) var claims = 0
  /// The number of the release that came last.
  package private(set) var lastRelease: Int64 = 0
  /// The number of the last report.
  package private(set) var lastReport: Int64 = 0
  /// The number of the last claim.
  package private(set) var lastClaim: Int64 = 0

  /// Nothing is known.
  package init() {}

  /// What is known of an app's versions, or of the system's.
  package subscript(subject: VersionSubject) -> VersionHistory {
    histories[subject] ?? VersionHistory(subject: subject)
  }

  /// Every history there is: the system's, then the apps' by their names.
  package var all: [VersionHistory] { histories.values.sorted { $0.subject < $1.subject } }

  /// Takes a change in.
  package mutating func apply(_ change: VersionChange) {
    switch change {
    case .installed(let subject, let installed):
      edit(subject) { $0.releases.append(installed) }
      releases += 1
      lastRelease = max(lastRelease, installed.number)
    case .reinstalled(let subject, let installed):
      edit(subject) { history in
        guard let place = history.releases.firstIndex(where: { $0.number == installed.number }) else { return }
        history.releases[place] = installed
      }
    case .reported(let subject, let report):
      edit(subject) { $0.reports.append(report) }
      lastReport = max(lastReport, report.number)
    case .claimed(let subject, let claim):
      edit(subject) { $0.claims.append(claim) }
      claims += 1
      lastClaim = max(lastClaim, claim.number)
    case .releaseForgotten(let subject, let installed):
      edit(subject) { Self.remove(from: &$0.releases) { $0.number == installed.number } }
      releases -= 1
    case .reportForgotten(let subject, let report):
      edit(subject) { Self.remove(from: &$0.reports) { $0.number == report.number } }
    case .claimForgotten(let subject, let claim):
      edit(subject) { Self.remove(from: &$0.claims) { $0.number == claim.number } }
      claims -= 1
    }
  }

  /// Takes a row out, looked for from the end: there it costs little, and a history that ends goes from there.
  private static func remove<Row>(from rows: inout [Row], where isMeant: (Row) -> Bool) {
    if let place = rows.lastIndex(where: isMeant) { rows.remove(at: place) }
  }

  private mutating func edit(_ subject: VersionSubject, _ body: (inout VersionHistory) -> Void) {
    var history = self[subject]
    // The only reference, so that nothing is copied.
    histories[subject] = nil
    body(&history)
    if !history.isEmpty { histories[subject] = history }
  }
}
