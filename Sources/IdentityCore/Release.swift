/// Whose versions they are (protocol, section 5: `of=app|os`).
package enum VersionSubject: Hashable, Sendable {
  /// The operating system's.
  case system
  /// An app's.
  case app(Text)

  /// The app; nil for the system.
  package var app: Text? {
    if case .app(let id) = self { return id }
    return nil
  }
}

extension VersionSubject: Comparable {
  /// The system comes first, then the apps by their names.
  package static func < (left: VersionSubject, right: VersionSubject) -> Bool {
    guard let other = right.app else { return false }
    return left.app.map { $0 < other } ?? true
  }
}

/// A version with its build.
package struct Release: Hashable, Sendable {
  /// The distribution, `ID` of os-release(5); nil for an app's.
  package let distribution: Text?
  /// The version, in whatever form its maker has it.
  package let version: Text
  /// The build: opaque, another one is another, and none is before or after.
  package let build: Text?

  /// Puts a release together.
  package init(distribution: Text? = nil, version: Text, build: Text? = nil) {
    self.distribution = distribution
    self.version = version
    self.build = build
  }
}

/// What a release is, beside the one of the session before.
package enum VersionState: String, CaseIterable, Sendable {
  /// There was none before.
  case installed
  /// It is the same.
  case unchanged
  /// The version is the same, and the build another.
  case updated
  case upgraded
  case downgraded
}

/// A release of the history.
package struct InstalledRelease: Equatable, Sendable {
  /// Its place in the store, and in the order in which releases were first installed.
  package let number: Int64
  /// The release.
  package let release: Release
  /// When it was first reported.
  package let installed: Timestamp
  /// When it was last reported where another had been before.
  package var last: Timestamp

  /// Puts both together.
  package init(number: Int64, release: Release, installed: Timestamp, last: Timestamp) {
    self.number = number
    self.release = release
    self.installed = installed
    self.last = last
  }
}

/// What a session reported, and what it was told: it is told the same again.
package struct VersionReport: Equatable, Sendable {
  /// Its place in the store, and in the order of the reports.
  package let number: Int64
  /// The session.
  package let session: UUID
  /// What it reported.
  package let release: Release
  /// What that is beside ``previous``.
  package let state: VersionState
  /// What the session before had; nil for the first.
  package let previous: Release?

  /// Puts a report together.
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
  /// Its place in the store, and in the order of the claims.
  package let number: Int64
  /// The version.
  package let version: Text
  /// The name.
  package let name: Text

  /// Puts a claim together.
  package init(number: Int64, version: Text, name: Text) {
    self.number = number
    self.version = version
    self.name = name
  }
}

/// One thing that happened to the versions of an app or the system: each is a row that comes, changes or goes.
package enum VersionChange: Equatable, Sendable {
  /// A release came for the first time.
  case installed(VersionSubject, InstalledRelease)
  /// A release of the history came again.
  case reinstalled(VersionSubject, InstalledRelease)
  /// A session reported, and its release is the current one.
  case reported(VersionSubject, VersionReport)
  /// A name was claimed.
  case claimed(VersionSubject, VersionClaim)
  /// A release left the history.
  case releaseForgotten(VersionSubject, InstalledRelease)
  /// What a session was told is not kept any more.
  case reportForgotten(VersionSubject, VersionReport)
  /// A claim is not kept any more.
  case claimForgotten(VersionSubject, VersionClaim)
}

// MARK: - Requests

/// Requests about versions (protocol, section 5). An app that is not named is the peer's own.
package enum VersionCommand: Equatable, Sendable {
  /// The app runs this release.
  case report(Release, app: Text?)
  /// What would a session that runs this release be told?
  case preview(Release, app: Text?)
  /// What was reported last, by this session where it has reported.
  case state(VersionQuestion)
  /// Every release there was.
  case history(VersionQuestion)
  /// Run-once work: am I the first to claim this name for the version?
  case claim(name: Text, app: Text?)
}

/// Whose versions a question is about.
package enum VersionQuestion: Equatable, Sendable {
  case system
  /// The app that is named, else the peer's own.
  case app(named: Text?)
}
