import IdentityCore

// Requests about versions and push tokens in few words.
extension RegistryCommand {
  /// `version report`.
  static func report(_ version: Text, _ build: Text? = nil, of app: Text? = nil) -> RegistryCommand {
    .version(.report(Release(version: version, build: build), app: app))
  }

  /// `version report … dry-run=yes`.
  static func preview(_ version: Text, _ build: Text? = nil, of app: Text? = nil) -> RegistryCommand {
    .version(.preview(Release(version: version, build: build), app: app))
  }

  /// `version state`.
  static func state(of app: Text? = nil) -> RegistryCommand { .version(.state(.app(named: app))) }

  /// `version state of=os`.
  static var systemState: RegistryCommand { .version(.state(.system)) }

  /// `version history`.
  static func versions(of app: Text? = nil) -> RegistryCommand { .version(.history(.app(named: app))) }

  /// `version history of=os`.
  static var systemVersions: RegistryCommand { .version(.history(.system)) }

  /// `version claim`.
  static func claim(_ name: Text, of app: Text? = nil) -> RegistryCommand { .version(.claim(name: name, app: app)) }

  /// `token put`.
  static func token(
    _ provider: Text, _ value: Text, environment: Text? = nil, topic: Text? = nil, of app: Text? = nil
  ) -> RegistryCommand {
    .token(
      .put(TokenRegistration(provider: provider, value: value, environment: environment, topic: topic), app: app))
  }

  /// `token get`.
  static func token(of provider: Text, of app: Text? = nil) -> RegistryCommand {
    .token(.get(provider: provider, app: app))
  }

  /// `token list`.
  static func tokens(of owners: TokenOwners = .app(named: nil), stale: Int64? = nil) -> RegistryCommand {
    .token(.list(owners, stale: stale))
  }

  /// `token invalidate`.
  static func invalidate(_ provider: Text, _ value: Text, of app: Text? = nil) -> RegistryCommand {
    .token(.invalidate(provider: provider, value: value, app: app))
  }

  /// `token delete`.
  static func deleteToken(_ provider: Text, of app: Text? = nil) -> RegistryCommand {
    .token(.delete(provider: provider, app: app))
  }

  /// Every verb of versions and push tokens that is about an app, once.
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
  /// A manifest that says how versions are ordered.
  init(_ vendor: Text, order: VersionOrder) {
    self.init(vendor: vendor)
    versionOrder = order
  }
}

extension Life {
  /// The system says which it is.
  ///
  /// - Returns: how many changes that is.
  @discardableResult
  mutating func boot(_ number: UInt64, _ release: Release) throws(Refusal) -> Int {
    now += 1
    let changes = try registry.systemReport(release, boot: UUID(high: 0x8888, low: number), context(nil))
    take(changes)
    return changes.count
  }

  /// The events of a topic from a number on, without number and audience.
  func told(of topic: Topic, from number: Int64 = 1) -> [String] {
    told(from: number).map { $0.split(separator: " ").dropFirst().prefix { $0 != ">" } }
      .filter { "\($0.first ?? "")" == topic.rawValue }
      .map { $0.dropFirst().joined(separator: " ") }
  }
}
