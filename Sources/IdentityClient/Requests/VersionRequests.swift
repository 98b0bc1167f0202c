extension RequestLine {
  /// With the attributes that say whose versions are meant.
  fileprivate func owner(_ owner: VersionOwner) -> RequestLine {
    switch owner {
    case .app(let app): attribute("app", app)
    case .system: attribute("of", "os")
    }
  }
}

extension IdentityRequest where Answer == VersionReport {
  /// Reports the version that runs, and tells what it is beside the last session's.
  public static func reportVersion(_ version: String, build: String? = nil, app: String? = nil) -> IdentityRequest {
    report(.change("version report").operand(version).attribute("build", build).attribute("app", app))
  }

  /// What ``reportVersion(_:build:app:)`` would tell, and nothing is reported.
  public static func previewVersion(_ version: String, build: String? = nil, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("version report").operand(version).attribute("build", build).attribute("app", app)
    return report(line.flag("dry-run", true))
  }

  /// What was reported last, by this session where it has reported.
  public static func versionState(of owner: VersionOwner = .app(nil)) -> IdentityRequest {
    report(.question("version state").owner(owner))
  }

  private static func report(_ line: RequestLine) -> IdentityRequest {
    IdentityRequest(line) { (fields) throws(IdentityError) in try VersionReport(fields) }
  }
}

extension IdentityRequest where Answer == [InstalledVersion] {
  /// The versions there were, first installed first.
  public static func versionHistory(of owner: VersionOwner = .app(nil)) -> IdentityRequest {
    IdentityRequest(.question("version history").owner(owner)) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try InstalledVersion(row) }
    }
  }
}

extension IdentityRequest where Answer == Bool {
  /// Claims work that is to be done once a version: true for one caller of all.
  ///
  /// Where the answer is lost, the claim may have been made: ``IdentityError/connectionLost`` says that it is not known.
  public static func claim(_ name: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("version claim").operand(name).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.choice(["first": true, "again": false])
    }
  }
}

extension IdentityRequest where Answer == VersionComparison {
  /// How one version stands to another.
  public static func compareVersions(
    _ first: String, _ second: String, order: VersionOrder = .numeric
  ) -> IdentityRequest {
    let line = RequestLine.question("version compare").operand(first).operand(second)
      .attribute("order", order.rawValue)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.choice(["less": .less, "equal": .equal, "greater": .greater])
    }
  }
}
