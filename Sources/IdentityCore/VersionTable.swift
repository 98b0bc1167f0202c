/// The releases, reports and claims of an app or of the system.
package struct VersionHistory: OrderedElement, Equatable {
  /// The app or the system that the history belongs to.
  package let subject: VersionSubject
  /// The releases in the order of their first installation.
  package fileprivate(set) var releases: [InstalledRelease] = []
  /// The reports of the last sessions, oldest first. The last one is current.
  package fileprivate(set) var reports: [VersionReport] = []
  /// The claims, oldest first.
  package fileprivate(set) var claims: [VersionClaim] = []

  package var key: VersionSubject { subject }

  /// The last report.
  package var current: VersionReport? { reports.last }

  /// Returns the entry of a release; nil if the release is not in the history.
  func installed(_ release: Release) -> InstalledRelease? { releases.first { $0.release == release } }

  fileprivate var isEmpty: Bool { releases.isEmpty && reports.isEmpty && claims.isEmpty }
}

/// The versions of all apps and of the system.
package struct VersionTable: Equatable, Sendable {
  /// The histories: first that of the system, then those of the apps by ID.
  private(set) var histories = OrderedTable<VersionHistory>()
  /// The number of releases of all apps together.
  private(set) var releases = 0
  /// The number of claims of all apps together.
  private(set) var claims = 0
  /// The highest number of any release.
  package private(set) var lastRelease: Int64 = 0
  /// The highest number of any report.
  package private(set) var lastReport: Int64 = 0
  /// The highest number of any claim.
  package private(set) var lastClaim: Int64 = 0

  package init() {}

  /// The history of an app or of the system; empty if nothing is known.
  package subscript(subject: VersionSubject) -> VersionHistory {
    histories[subject] ?? VersionHistory(subject: subject)
  }

  /// All histories: first that of the system, then those of the apps by ID.
  package var all: some Sequence<VersionHistory> { histories.lazy.map(\.self) }

  /// Applies a change.
  package mutating func apply(_ change: VersionChange) {
    switch change {
    case .installed(let subject, let installed):
      edit(subject) { $0.releases.append(installed) }
      releases += 1
      lastRelease = max(lastRelease, installed.number)
    case .reinstalled(let subject, let installed):
      edit(subject) { history in
        guard let index = history.releases.firstIndex(where: { $0.number == installed.number }) else { return }
        history.releases[index] = installed
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

  /// Removes a row. The search starts at the end, because removing there is cheap and a history is removed from
  /// the end.
  private static func remove<Row>(from rows: inout [Row], where isMeant: (Row) -> Bool) {
    if let index = rows.lastIndex(where: isMeant) { rows.remove(at: index) }
  }

  private mutating func edit(_ subject: VersionSubject, _ body: (inout VersionHistory) -> Void) {
    // Taken out of the table, so that no copy of the history is made.
    var history = histories.remove(subject) ?? VersionHistory(subject: subject)
    body(&history)
    if !history.isEmpty { histories.store(history) }
  }
}
