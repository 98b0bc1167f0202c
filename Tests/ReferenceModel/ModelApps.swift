// Apps, access rights and the audience of events: WHO IS ASKING and EVENTS in identityd-protocol(7).
extension ReferenceModel {
  /// The peers that may see an event.
  enum Audience: Sendable {
    /// All apps that share the device identifier.
    case sharing
    case vendor(String)
    case app(String)
    case group(String)
  }

  /// An event.
  package struct Event: Sendable {
    /// The event line.
    package let text: String
    /// The topic.
    package let topic: String
    let audience: Audience
  }

  // MARK: Rights

  /// Whether an app is installed, or can be installed by its first use. Only apps without a manifest can.
  func isThere(_ app: String) -> Bool { apps[app] != nil || isUnclaimed(app) }

  func isUnclaimed(_ app: String) -> Bool { app.utf8.contains(UInt8(ascii: ":")) }

  func vendor(of app: String) -> String { apps[app]?.manifest?.vendor ?? app }

  /// Returns the app that a request concerns.
  ///
  /// - Parameter isRemembered: whether an uninstalled app with a history is accepted.
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

  /// Returns the access groups of an app: its own, and those of its manifest.
  func groups(of app: String) -> [String] { isThere(app) ? [app] + (apps[app]?.manifest?.groups ?? []) : [] }

  func deviceScope(of app: String) -> Scope {
    switch apps[app]?.manifest?.device {
    case "app": Scope("device", app: app)
    case "vendor": Scope("device", vendor: vendor(of: app))
    default: Scope("device")
    }
  }

  /// Whether a peer could read the subject of an event.
  func sees(_ peer: Peer, _ audience: Audience) -> Bool {
    if peer.isAdmin { return true }
    switch audience {
    case .sharing: return isThere(peer.app) && deviceScope(of: peer.app) == Scope("device")
    case .vendor(let vendor): return isThere(peer.app) && vendor == self.vendor(of: peer.app)
    case .app(let app): return app == peer.app
    case .group(let group): return groups(of: peer.app).contains(group)
    }
  }

  /// Whether a peer receives an event now.
  package func hears(_ peer: Peer, _ event: Event) -> Bool {
    sees(peer, event.audience) || isToldOfAll(event.topic, peer)
  }

  /// Whether a peer is told of a topic for all apps, because it has the right `fleet`.
  func isToldOfAll(_ topic: String, _ peer: Peer) -> Bool {
    ["token", "version"].contains(topic) && apps[peer.app]?.manifest?.rights.contains("fleet") == true
  }

  mutating func tell(_ topic: String, _ name: String, _ attributes: String, to audience: Audience) {
    let text = "EVENT \(events.count + 1) \(topic) \(name)\(attributes) time=\(time)"
    events.append(Event(text: text, topic: topic, audience: audience))
  }

  // MARK: Installation

  /// Replaces the set of all manifests. The packages of missing ones are removed, which uninstalls the apps.
  package mutating func install(_ found: [String: Manifest], at now: Int64) {
    for id in survey(found, at: now) { remove(id, at: now) }
  }

  /// Replaces the set of all manifests.
  ///
  /// - Returns: the apps that are suspended, in the order of their IDs. The caller removes each with
  ///   ``remove(_:at:)``.
  package mutating func survey(_ found: [String: Manifest], at now: Int64) -> [String] {
    self.now = now
    let staying = Set(found.values.map(\.vendor))
    let missing = apps.filter { $0.value.manifest != nil && found[$0.key] == nil }.keys.sorted()
    for id in missing {
      tell("app", "suspended", " app=\(id) vendor=\(vendor(of: id))", to: .vendor(vendor(of: id)))
    }
    for (id, manifest) in found.sorted(by: { $0.key < $1.key }) {
      if apps[id] == nil {
        install(id, manifest)
      } else if apps[id]?.manifest != manifest {
        let vendor = vendor(of: id)
        apps[id]?.manifest = manifest
        rehome(deviceScope(of: id))
        if !staying.contains(vendor) { endIfDeserted(vendor) }
      }
    }
    return missing
  }

  /// Uninstalls a suspended app, as the removal of its package does.
  package mutating func remove(_ id: String, at now: Int64) {
    self.now = now
    let vendor = vendor(of: id)
    uninstall(id)
    endIfDeserted(vendor)
  }

  /// Installs an app without a manifest at its first use.
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
        let hasManifest = app.manifest == nil ? "no" : "yes"
        let told = peer.isAdmin ? app.manifest : nil
        return "\(id) vendor=\(vendor(of: id)) installed=\(app.installed) manifest=\(hasManifest)"
          + said("unit", told?.unit) + said("container", told?.container) + said("groups", list(told?.groups))
          + said("rights", list(told?.rights))
      })
  }

  private func list(_ names: [String]?) -> String? {
    names.flatMap { $0.isEmpty ? nil : $0.joined(separator: ",") }
  }

  /// Forgets an app. A user may also forget its own services, which need not run.
  mutating func forget(_ app: String) throws(Fault) -> [String] {
    let isOwn = app == peer.app || app.hasSuffix("@\(peer.user)")
    guard isOwn || peer.isAdmin else { throw .denied }
    guard let known = apps[app] else { throw .notFound }
    guard known.manifest == nil else {
      // For an admin, the daemon looks for the manifest again first.
      if peer.isAdmin { try requireOpen() }
      throw .conflict
    }
    try requireOpen()
    let vendor = vendor(of: app)
    uninstall(app)
    endIfDeserted(vendor)
    return ["OK"]
  }

  /// Ends every identifier and deletes all data stored for apps.
  mutating func seal(dryRun: Bool) -> [String] {
    if dryRun { return rows(current.map(describe)) }
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

// Facts that only a real daemon can tell.
extension ReferenceModel {
  /// Records the event of the system's version, as the daemon sent it at its first start.
  package mutating func tellOfSystem(_ line: String) {
    events.append(Event(text: line, topic: "version", audience: .sharing))
  }

  /// Whether an app has a manifest now.
  package func hasManifest(_ app: String) -> Bool { apps[app]?.manifest != nil }
}
