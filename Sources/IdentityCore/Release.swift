/// The owner of versions: an app, or the system (identityd-protocol(7), section "VERSIONS", `of=app|os`).
package enum VersionSubject: Hashable, Sendable {
  /// The operating system.
  case system
  /// An app.
  case app(Text)

  /// The app; nil for the system.
  package var app: Text? {
    if case .app(let id) = self { return id }
    return nil
  }
}

extension VersionSubject: Comparable {
  /// Orders the system before all apps, and apps by ID.
  package static func < (left: VersionSubject, right: VersionSubject) -> Bool {
    guard let other = right.app else { return false }
    return left.app.map { $0 < other } ?? true
  }
}

/// A version with its build.
package struct Release: Hashable, Sendable {
  /// The distribution, `ID` of os-release(5); nil for a release of an app.
  package internal(set) var distribution: Text?
  /// The version, in the form that its vendor uses.
  package internal(set) var version: Text
  /// The build, an opaque text. Builds are compared for equality only and have no order.
  package internal(set) var build: Text?

  package init(distribution: Text? = nil, version: Text, build: Text? = nil) {
    self.distribution = distribution
    self.version = version
    self.build = build
  }
}

/// The relation of a release to the release of the session before.
package enum VersionState: String, CaseIterable, Sendable {
  /// No release was reported before.
  case installed
  /// Version and build are the same.
  case unchanged
  /// The version is the same and the build differs.
  case updated
  case upgraded
  case downgraded
}

/// A release in the history.
package struct InstalledRelease: Equatable, Sendable {
  /// The row number in the store. Release numbers ascend in the order of first installation.
  package internal(set) var number: Int64
  /// The release.
  package internal(set) var release: Release
  /// The time the release was first reported.
  package internal(set) var installed: Timestamp
  /// The time the release was last reported after another one.
  package var last: Timestamp

  package init(number: Int64, release: Release, installed: Timestamp, last: Timestamp) {
    self.number = number
    self.release = release
    self.installed = installed
    self.last = last
  }
}

/// The report of a session, with the answer. A repeated report gets the same answer.
package struct VersionReport: Equatable, Sendable {
  /// The row number in the store. Report numbers ascend in the order of the reports.
  package internal(set) var number: Int64
  /// The session.
  package internal(set) var session: UUID
  /// The reported release.
  package internal(set) var release: Release
  /// The relation of the release to ``previous``.
  package internal(set) var state: VersionState
  /// The release of the session before; nil for the first report.
  package internal(set) var previous: Release?

  package init(number: Int64, session: UUID, release: Release, state: VersionState, previous: Release?) {
    self.number = number
    self.session = session
    self.release = release
    self.state = state
    self.previous = previous
  }
}

/// A name that was claimed for a version.
package struct VersionClaim: Equatable, Sendable {
  /// The row number in the store. Claim numbers ascend in the order of the claims.
  package internal(set) var number: Int64
  /// The version.
  package internal(set) var version: Text
  /// The name.
  package internal(set) var name: Text

  package init(number: Int64, version: Text, name: Text) {
    self.number = number
    self.version = version
    self.name = name
  }
}

/// A change of an app's or the system's versions: a row that is added, changed or removed.
package enum VersionChange: Equatable, Sendable {
  /// A release was reported for the first time.
  case installed(VersionSubject, InstalledRelease)
  /// A release of the history was reported again after another one.
  case reinstalled(VersionSubject, InstalledRelease)
  /// A session reported a release, which is now the current one.
  case reported(VersionSubject, VersionReport)
  /// A name was claimed.
  case claimed(VersionSubject, VersionClaim)
  /// A release was removed from the history.
  case releaseForgotten(VersionSubject, InstalledRelease)
  /// The report of a session was removed.
  case reportForgotten(VersionSubject, VersionReport)
  /// A claim was removed.
  case claimForgotten(VersionSubject, VersionClaim)
}

/// The owner of the versions that a request asks about.
package enum VersionQuestion: Equatable, Sendable {
  case system
  /// The named app, or the peer's own if none is named.
  case app(named: Text?)
}
