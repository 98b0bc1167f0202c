import IdentityCore

// Short forms of the requests about versions and push tokens.
extension RegistryCommand {
  /// Returns a `version report` request.
  static func report(_ version: Text, _ build: Text? = nil, of app: Text? = nil) -> RegistryCommand {
    .reportVersion(Release(version: version, build: build), app: app)
  }

  /// Returns a `version report … dry-run=yes` request.
  static func preview(_ version: Text, _ build: Text? = nil, of app: Text? = nil) -> RegistryCommand {
    .previewVersion(Release(version: version, build: build), app: app)
  }

  /// Returns a `version state` request.
  static func state(of app: Text? = nil) -> RegistryCommand { .versionState(.app(named: app)) }

  /// The request `version state of=os`.
  static var systemState: RegistryCommand { .versionState(.system) }

  /// Returns a `version history` request.
  static func versions(of app: Text? = nil) -> RegistryCommand { .versionHistory(.app(named: app)) }

  /// The request `version history of=os`.
  static var systemVersions: RegistryCommand { .versionHistory(.system) }

  /// Returns a `version claim` request.
  static func claim(_ name: Text, of app: Text? = nil) -> RegistryCommand { .claim(name: name, app: app) }

  /// Returns a `token put` request.
  static func token(
    _ provider: Text, _ value: Text, environment: Text? = nil, topic: Text? = nil, of app: Text? = nil
  ) -> RegistryCommand {
    .putToken(
      TokenRegistration(provider: provider, value: value, environment: environment, topic: topic), app: app)
  }

  /// Returns a `token get` request.
  static func token(of provider: Text, of app: Text? = nil) -> RegistryCommand {
    .getToken(provider: provider, app: app)
  }

  /// Returns a `token list` request.
  static func tokens(of owners: TokenOwners = .app(named: nil), stale: Int64? = nil) -> RegistryCommand {
    .listTokens(owners, stale: stale)
  }

  /// Returns a `token invalidate` request.
  static func invalidate(_ provider: Text, _ value: Text, of app: Text? = nil) -> RegistryCommand {
    .invalidateToken(provider: provider, value: value, app: app)
  }

  /// Returns a `token delete` request.
  static func deleteToken(_ provider: Text, of app: Text? = nil) -> RegistryCommand {
    .deleteToken(provider: provider, app: app)
  }

  /// Returns requests with every verb about the versions and push tokens of an app.
  static func everyVersionOrTokenVerb(of app: Text? = nil) -> [RegistryCommand] {
    [
      .report("1", of: app), .preview("1", of: app), .state(of: app), .versions(of: app), .claim("n", of: app),
      .token("p", "t", of: app),
      .token(of: "p", of: app), .tokens(of: .app(named: app)), .tokens(of: .app(named: app), stale: 0),
      .invalidate("p", "t", of: app), .deleteToken("p", of: app),
    ]
  }
}

extension Manifest {
  init(_ vendor: Text, order: VersionOrder) {
    self.init(vendor: vendor)
    versionOrder = order
  }
}

extension Life {
  /// Records the version of the system, as after the boot with this number.
  ///
  /// - Returns: the number of changes.
  @discardableResult
  mutating func boot(_ number: UInt64, _ release: Release) throws(Refusal) -> Int {
    now += 1
    let changes = try registry.systemReport(release, boot: UUID(high: 0x8888, low: number), context(nil))
    take(changes)
    return changes.count
  }

  /// Returns the events of a topic from a number on, without their number, topic and audience.
  func told(of topic: Topic, from number: Int64 = 1) -> [String] {
    told(from: number).map { $0.split(separator: " ").dropFirst().prefix { $0 != ">" } }
      .filter { "\($0.first ?? "")" == topic.rawValue }
      .map { $0.dropFirst().joined(separator: " ") }
  }
}
