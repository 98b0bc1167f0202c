// Versions of apps: VERSIONS in identityd-protocol(7).
extension ReferenceModel {
  /// A version with its build.
  struct Release: Equatable, Sendable {
    let version: String
    let build: String?
  }

  /// A row of the history.
  package struct Installed: Sendable {
    let app: String
    let release: Release
    let time: String
    var last: String
  }

  /// The last report of a session, and the release that ran before the session.
  struct Report: Sendable {
    let app: String
    let session: Int
    let release: Release
    let before: Release?
    let state: String
  }

  struct Claim: Sendable {
    let app: String
    let version: String
    let name: String
  }

  /// The versions that requests use, with the rank of each in three orders.
  static let ranks: [(version: String, numeric: Int, linux: Int, auto: Int)] = [
    ("1", 1, 1, 1), ("1.0", 1, 2, 1), ("1.0.0", 1, 3, 1), ("1.2~rc1", 2, 4, 2), ("1.2", 2, 5, 3), ("2", 3, 6, 4),
    ("10", 4, 7, 5),
  ]

  private func rank(_ version: String, _ app: String, _ order: String? = nil) -> Int? {
    let known = Self.ranks.first { $0.version == version }
    switch order ?? apps[app]?.manifest?.order ?? "auto" {
    // The versions are none of Semantic Versioning, which compares their numbers alone.
    case "numeric", "semver": return known?.numeric
    case "linux", "debian": return known?.linux
    default: return known?.auto
    }
  }

  private func state(_ release: Release, after before: Release?, _ app: String, _ order: String? = nil) -> String {
    guard let before, let now = rank(release.version, app, order), let then = rank(before.version, app, order) else {
      return "installed"
    }
    if now != then { return now > then ? "upgraded" : "downgraded" }
    return release == before ? "unchanged" : "updated"
  }

  private func past(_ before: Release?, of release: Release, _ state: String) -> String {
    said("previous", before?.version) + said("previous-build", before?.build)
      + (state == "updated" && release.version != before?.version ? " same-order=yes" : "")
  }

  private func words(_ report: Report, _ installed: String?) -> [String] {
    let past = report.state == "unchanged" ? "" : past(report.before, of: report.release, report.state)
    let release = "\(report.release.version)\(said("build", report.release.build))"
    return ["OK \(report.state) \(release)\(past)\(said("installed", installed))"]
  }

  private func words(_ report: Report) -> [String] {
    words(report, installed.first { $0.app == report.app && $0.release == report.release }?.time)
  }

  /// Returns the report of a session that reports a release now.
  private func report(_ release: Release, _ app: String, _ session: Int, _ order: String?) -> Report {
    let own = reports.last { $0.app == app && $0.session == session }
    if let own, own.release == release { return own }
    let before = own.map(\.before) ?? reports.last { $0.app == app }?.release
    return Report(
      app: app, session: session, release: release, before: before,
      state: state(release, after: before, app, order))
  }

  // MARK: Verbs

  mutating func report(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    guard let session = peer.session else { throw .unavailable }
    let release = Release(version: request.word(0), build: request["build"])
    let new = report(release, app, session, request["order"])
    let isKnown = reports.contains { $0.app == app && $0.session == session && $0.release == release }
    if isKnown || request["dry-run"] == "yes" { return words(new) }
    try requireOpen()
    use(app)
    // The event compares with the previous report of any session.
    let before = reports.last { $0.app == app }?.release
    if before != release {
      if let place = installed.firstIndex(where: { $0.app == app && $0.release == release }) {
        installed[place].last = time
      } else {
        installed.append(Installed(app: app, release: release, time: time, last: time))
      }
      let step = before == new.before ? new.state : state(release, after: before, app)
      if step != "unchanged" {
        let attributes =
          " of=app app=\(app) version=\(release.version)\(said("build", release.build))\(past(before, of: release, step))"
        tell("version", step, attributes, to: .app(app))
      }
    }
    reports.removeAll { $0.app == app && $0.session == session }
    reports.append(new)
    // The daemon remembers the last 32 sessions of an app.
    if reports.filter({ $0.app == app }).count > 32, let oldest = reports.firstIndex(where: { $0.app == app }) {
      reports.remove(at: oldest)
    }
    return words(new)
  }

  /// Returns the last report of this session, else the last report of any session.
  private func known(_ app: String) throws(Fault) -> Report {
    let all = reports.filter { $0.app == app }
    guard let found = all.first(where: { $0.session == peer.session }) ?? all.last else { throw .notFound }
    return found
  }

  func state(_ request: Request) throws(Fault) -> [String] { words(try known(try app(request["app"]))) }

  func versions(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    return rows(
      installed.filter { $0.app == app }.map {
        "\($0.release.version)\(said("build", $0.release.build)) installed=\($0.time) last=\($0.last)"
      })
  }

  mutating func claim(_ request: Request) throws(Fault) -> [String] {
    let report = try known(try app(request["app"]))
    let isClaimed = claims.contains {
      $0.app == report.app && $0.name == request.word(0)
        && rank($0.version, report.app) == rank(report.release.version, report.app)
    }
    if isClaimed { return ["OK again"] }
    try requireOpen()
    claims.append(Claim(app: report.app, version: report.release.version, name: request.word(0)))
    return ["OK first"]
  }
}
