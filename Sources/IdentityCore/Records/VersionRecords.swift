/// An installed release with its owner, as it is stored.
package struct ReleaseRecord: StoredRecord {
  package static let table = RecordTable("installed_release", of: Self.self, digestIndex: 7, .versions)

  /// The owner of the release.
  package var subject: VersionSubject
  /// The release.
  package var installed: InstalledRelease

  package init(_ subject: VersionSubject, _ installed: InstalledRelease) {
    self.subject = subject
    self.installed = installed
  }

  package init() {
    self.init(.system, InstalledRelease(number: 0, release: Release(version: .empty), installed: .epoch, last: .epoch))
  }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &installed.number)
    subject.visit(&fields)
    installed.release.visit(&fields)
    fields.field("installed", &installed.installed)
    fields.field("last", &installed.last)
  }
}

/// The report of a session with its owner, as it is stored.
package struct ReportRecord: StoredRecord {
  package static let table = RecordTable("version_report", of: Self.self, digestIndex: 8, .versions)

  /// The owner of the version.
  package var subject: VersionSubject
  /// The report.
  package var report: VersionReport

  package init(_ subject: VersionSubject, _ report: VersionReport) {
    self.subject = subject
    self.report = report
  }

  package init() {
    self.init(
      .system,
      VersionReport(number: 0, session: .zero, release: Release(version: .empty), state: .installed, previous: nil))
  }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &report.number)
    subject.visit(&fields)
    fields.field("session", &report.session)
    fields.field("state", &report.state)
    report.release.visit(&fields)
    var (distribution, version, build) = (
      report.previous?.distribution, report.previous?.version, report.previous?.build
    )
    fields.field("previous_distribution", &distribution)
    fields.field("previous_version", &version)
    fields.field("previous_build", &build)
    guard fields.isReading else { return }
    report.previous = nil
    if let version {
      report.previous = Release(distribution: distribution, version: version, build: build)
    } else if distribution != nil || build != nil {
      fields.refuse()
    }
  }
}

extension VersionState: StoredWord {}

/// A claim with its owner, as it is stored.
package struct ClaimRecord: StoredRecord {
  package static let table = RecordTable("version_claim", of: Self.self, digestIndex: 9, .versions)

  /// The owner of the version.
  package var subject: VersionSubject
  /// The claim.
  package var claim: VersionClaim

  package init(_ subject: VersionSubject, _ claim: VersionClaim) {
    self.subject = subject
    self.claim = claim
  }

  package init() { self.init(.system, VersionClaim(number: 0, version: .empty, name: .empty)) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("n", &claim.number)
    subject.visit(&fields)
    fields.field("version", &claim.version)
    fields.field("name", &claim.name)
  }
}

extension VersionSubject {
  /// Visits the column `app`, which is NULL for the system.
  fileprivate mutating func visit(_ fields: inout some FieldVisitor) {
    var app = app
    fields.field("app", &app, .lasting)
    if fields.isReading { self = app.map(VersionSubject.app) ?? .system }
  }
}

extension Release {
  /// Visits the columns of a release. Only the system has a distribution.
  fileprivate mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("distribution", &distribution)
    fields.field("version", &version)
    fields.field("build", &build)
  }
}
