extension RequestLine {
  /// Returns the line with the attributes that name the owner of the versions.
  fileprivate func owner(_ owner: VersionOwner) -> RequestLine {
    switch owner {
    case .app(let app): attribute("app", app)
    case .system: attribute("of", "os")
    }
  }
}

extension RequestLine {
  /// Returns the line with a version, and the rule that orders versions.
  fileprivate func release(_ version: String, _ build: String?, _ order: VersionScheme?) -> RequestLine {
    operand(version).attribute("build", build).attribute("order", order?.rawValue)
  }
}

extension IdentityRequest where Answer == VersionStatus {
  /// Reports the version that runs. The answer compares it with the version of the session before.
  ///
  /// A session that reports the same version again gets the same answer again. Fails with
  /// ``IdentityError/Code/unavailable`` if the daemon cannot determine the session.
  ///
  /// - Parameters:
  ///   - version: The version, 1 to 255 bytes.
  ///   - build: The build, at most 255 bytes; nil for none. The daemon compares builds only for equality.
  ///   - order: The rule that orders the versions; nil for that of the app's manifest, or without a manifest for
  ///     ``VersionScheme/auto``.
  ///   - app: The ID of the app; nil for the calling app. Any other app is for admins.
  public static func reportVersion(
    _ version: String, build: String? = nil, order: VersionScheme? = nil, app: String? = nil
  ) -> IdentityRequest {
    report(.change("version report").release(version, build, order).attribute("app", app))
  }

  /// Requests the answer that ``reportVersion(_:build:order:app:)`` would give, and reports nothing.
  public static func previewVersion(
    _ version: String, build: String? = nil, order: VersionScheme? = nil, app: String? = nil
  ) -> IdentityRequest {
    report(.question("version report").release(version, build, order).attribute("app", app).flag("dry-run", true))
  }

  /// Requests the last report: that of this session if it has reported, else that of any session.
  ///
  /// Fails with ``IdentityError/Code/notFound`` if no version was reported.
  public static func versionState(of owner: VersionOwner = .app(nil)) -> IdentityRequest {
    report(.question("version state").owner(owner))
  }

  private static func report(_ line: RequestLine) -> IdentityRequest {
    IdentityRequest(line) { (fields) throws(IdentityError) in try VersionStatus(fields) }
  }
}

extension IdentityRequest where Answer == [InstalledVersion] {
  /// Requests the versions that were reported, in the order of their first installation.
  public static func versionHistory(of owner: VersionOwner = .app(nil)) -> IdentityRequest {
    IdentityRequest(.question("version history").owner(owner)) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try InstalledVersion(row) }
    }
  }
}

extension IdentityRequest where Answer == Bool {
  /// Claims work that must be done once per version. The answer is true for the first caller only.
  ///
  /// The version is the one that the session reported, else the one reported last. Fails with
  /// ``IdentityError/Code/notFound`` if no version was reported. If the answer is lost, the claim may have been made:
  /// the request then fails with ``IdentityError/connectionLost``, and later claims get false.
  ///
  /// - Parameters:
  ///   - name: The name of the work, 1 to 255 bytes.
  ///   - app: The ID of the app; nil for the calling app. Any other app is for admins.
  public static func claim(_ name: String, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("version claim").operand(name).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.choice(["first": true, "again": false])
    }
  }
}

extension IdentityRequest where Answer == VersionComparison {
  /// Requests the order of two versions.
  ///
  /// - Parameters:
  ///   - first: The version that the answer describes.
  ///   - build: The build of the first version; nil for none.
  ///   - second: The version to compare with.
  ///   - secondBuild: The build of the second version; nil for none.
  ///   - order: The rule that orders versions.
  public static func compareVersions(
    _ first: String, build: String? = nil, _ second: String, secondBuild: String? = nil,
    order: VersionScheme = .numeric
  ) -> IdentityRequest {
    let line = RequestLine.question("version compare").operand(first).operand(second)
      .attribute("build", build).attribute("build2", secondBuild).attribute("order", order.rawValue)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      let all = VersionComparison.allCases
      return try fields.choice(Dictionary(uniqueKeysWithValues: all.map { ($0.rawValue, $0) }))
    }
  }
}
