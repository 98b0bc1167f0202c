// Apps, who may what, and who hears of it (protocol, sections 2, 7 and 8).
extension ReferenceModel {
  /// Whom something concerns.
  enum Audience: Sendable {
    /// Everybody who sees the device identifier that is shared.
    case sharing
    case vendor(String)
    case app(String)
    case group(String)
  }

  /// Something that was told.
  package struct Event: Sendable {
    /// The line.
    package let text: String
    /// Its topic.
    package let topic: String
    let audience: Audience
  }

  // MARK: Rights

  /// An app with a manifest is there while that is; any other comes with its first use.
  func isThere(_ app: String) -> Bool { apps[app] != nil || isUnclaimed(app) }

  func isUnclaimed(_ app: String) -> Bool { app.utf8.contains(UInt8(ascii: ":")) }

  func vendor(of app: String) -> String { apps[app]?.manifest?.vendor ?? app }

  /// Whose app a request is about.
  func app(_ named: String?, isRemembered: Bool = false) throws(Fault) -> String {
    guard let named, named != peer.app else {
      guard isThere(peer.app) || isRemembered else { throw .notFound }
      return peer.app
    }
    guard peer.isAdmin else { throw .denied }
    let wasThere = isRemembered && identifiers.contains { $0.scope == Scope("installation", app: named) }
    guard apps[named] != nil || wasThere else { throw .notFound }
    return named
  }

  /// The access groups of an app: its own, and those of its manifest.
  func groups(of app: String) -> [String] { isThere(app) ? [app] + (apps[app]?.manifest?.groups ?? []) : [] }

  func deviceScope(of app: String) -> Scope {
    switch apps[app]?.manifest?.device {
    case "app": Scope("device", app: app)
    case "vendor": Scope("device", vendor: vendor(of: app))
    default: Scope("device")
    }
  }

  /// Whether a peer could read what an event is about.
  func sees(_ peer: Peer, _ audience: Audience) -> Bool {
    if peer.isAdmin { return true }
    switch audience {
    case .sharing: return isThere(peer.app) && deviceScope(of: peer.app) == Scope("device")
    case .vendor(let vendor): return isThere(peer.app) && vendor == self.vendor(of: peer.app)
    case .app(let app): return app == peer.app
    case .group(let group): return groups(of: peer.app).contains(group)
    }
  }

  /// Whether a peer hears of an event now.
  package func hears(_ peer: Peer, _ event: Event) -> Bool { sees(peer, event.audience) }

  mutating func tell(_ topic: String, _ name: String, _ attributes: String, to audience: Audience) {
    let text = "EVENT \(events.count + 1) \(topic) \(name)\(attributes) time=\(time)"
    events.append(Event(text: text, topic: topic, audience: audience))
  }

  // MARK: Coming and going

  /// The manifests are exactly these.
  package mutating func install(_ found: [String: Manifest], at now: Int64) {
    self.now = now
    var left: Set<String> = []
    for (id, app) in apps.sorted(by: { $0.key < $1.key }) where app.manifest != nil && found[id] == nil {
      left.insert(vendor(of: id))
      uninstall(id)
    }
    for (id, manifest) in found.sorted(by: { $0.key < $1.key }) {
      if apps[id] == nil {
        install(id, manifest)
      } else if apps[id]?.manifest != manifest {
        left.insert(vendor(of: id))
        apps[id]?.manifest = manifest
        rehome(deviceScope(of: id))
      }
    }
    for vendor in left.sorted() { endIfDeserted(vendor) }
  }

  /// The first use of an app without a manifest installs it.
  mutating func use(_ app: String) { if apps[app] == nil { install(app, nil) } }

  private mutating func install(_ app: String, _ manifest: Manifest?) {
    apps[app] = App(installed: time, manifest: manifest)
    tell("app", "installed", " app=\(app) vendor=\(vendor(of: app))", to: .vendor(vendor(of: app)))
  }

  mutating func uninstall(_ app: String) {
    removeItems { $0.owner == app && $0.whileInstalled }
    end(Scope("installation", app: app), "uninstalled")
    removeTokens { $0.app == app }
    installed.removeAll { $0.app == app }
    reports.removeAll { $0.app == app }
    claims.removeAll { $0.app == app }
    let vendor = vendor(of: app)
    apps[app] = nil
    tell("app", "uninstalled", " app=\(app) vendor=\(vendor)", to: .vendor(vendor))
  }

  private mutating func endIfDeserted(_ vendor: String) {
    if !apps.keys.contains(where: { self.vendor(of: $0) == vendor }) {
      end(Scope("vendor", vendor: vendor), "uninstalled")
    }
  }

  var appRows: [String] {
    let listed = apps.filter { sees(peer, .vendor(vendor(of: $0.key))) }.sorted { $0.key < $1.key }
    return rows(
      listed.map { id, app in
        "\(id) vendor=\(vendor(of: id)) installed=\(app.installed) manifest=\(app.manifest == nil ? "no" : "yes")"
      })
  }

  /// A user may forget its own services too, which may be gone.
  mutating func forget(_ app: String) throws(Fault) -> [String] {
    let isOwn = app == peer.app || app.hasSuffix("@\(peer.user)")
    guard isOwn || peer.isAdmin else { throw .denied }
    guard let known = apps[app] else { throw .notFound }
    guard known.manifest == nil else { throw .conflict }
    try requireOpen()
    let vendor = vendor(of: app)
    uninstall(app)
    endIfDeserted(vendor)
    return ["OK"]
  }

  /// Everything that was stored for apps goes, and every identifier ends.
  mutating func seal() -> [String] {
    guard !isSealed else { return ["OK"] }
    for identifier in current { end(identifier.scope, "sealed") }
    removeItems { _ in true }
    removeTokens { _ in true }
    installed = []
    reports = []
    claims = []
    isSealed = true
    return ["OK"]
  }
}

// What only a real daemon can say.
extension ReferenceModel {
  /// The system's version is told at the first start: the line as it came.
  package mutating func tellOfSystem(_ line: String) {
    events.append(Event(text: line, topic: "version", audience: .sharing))
  }

  /// Whether an app has a manifest now.
  package func hasManifest(_ app: String) -> Bool { apps[app]?.manifest != nil }
}
