import IdentityCore

/// A simple model of versions and push tokens as the protocol defines them: arrays, searched linearly.
struct VersionTokenModel {
  /// The settings of a manifest that matter to the model.
  struct Said: Equatable {
    var vendor: Text
    var binding: Manifest.DeviceBinding
    var order: VersionOrder
  }

  /// A version with its build.
  struct Ran: Equatable {
    var version: Text
    var build: Text?
  }

  /// A row of the version history.
  struct Row: Equatable {
    var app: Text
    var ran: Ran
    var installed: Int64
    var last: Int64
  }

  /// The last report of a session, and the release that ran before the session.
  struct Told: Equatable {
    var app: Text
    var session: Int32
    var ran: Ran
    var before: Ran?
    var state: String
  }

  struct Claim: Equatable {
    var app: Text
    var version: Text
    var name: Text
  }

  struct Held: Equatable {
    var app: Text
    var provider: Text
    var value: Text
    var environment: Text?
    var topic: Text?
    var device: String
    var valid: Bool
    var created: Int64
    var changed: Int64
    var confirmed: Int64
  }

  /// The reason for a refusal.
  enum Fault: Error, Equatable {
    case denied, notFound, unavailable, other
  }

  var apps: Set<Text> = []
  var manifests: [Text: Said] = [:]
  var rows: [Row] = []
  var reports: [Told] = []
  var claims: [Claim] = []
  var tokens: [Held] = []
  /// The device identifiers in the order of their creation. A scope is named like its identifier derived
  /// from the machine-id.
  var devices: [(scope: String, value: String)] = []
  /// The number of random identifiers so far.
  var drawn = 0
  /// The events about versions and tokens since the test last cleared them.
  var told: (versions: [String], tokens: [String]) = ([], [])

  // MARK: Apps

  /// Returns the app that a request is about.
  func app(_ named: Text?, _ peer: Peer) throws(Fault) -> Text {
    let app = named ?? peer.app
    if app != peer.app {
      guard peer.isAdmin else { throw .denied }
      guard apps.contains(app) else { throw .notFound }
    }
    guard apps.contains(app) || "\(app)".contains(":") else { throw .notFound }
    return app
  }

  /// Replaces all manifests.
  mutating func install(_ found: [Text: Said]) {
    for gone in manifests.keys.sorted() where found[gone] == nil { uninstall(gone) }
    for app in found.keys.sorted() where found[app] != manifests[app] {
      manifests[app] = found[app]
      apps.insert(app)
      rehome { $0 == app }
    }
  }

  mutating func uninstall(_ app: Text) {
    for token in tokens where token.app == app { tell("deleted", token) }
    tokens.removeAll { $0.app == app }
    rows.removeAll { $0.app == app }
    reports.removeAll { $0.app == app }
    claims.removeAll { $0.app == app }
    apps.remove(app)
    manifests[app] = nil
  }

  // MARK: Devices

  private func scope(of app: Text) -> String {
    switch manifests[app]?.binding {
    case .app?: "m.device.\(app)"
    case .vendor?: "m.device.\(manifests[app]?.vendor ?? "")"
    case .shared?, nil: "m.device"
    }
  }

  private func device(_ scope: String) -> String? { devices.first { $0.scope == scope }?.value }

  /// Returns the device identifier that an app sees. Creates a missing one.
  mutating func device(of app: Text) -> String {
    let scope = scope(of: app)
    if let value = device(scope) { return value }
    set(scope, to: scope)
    return scope
  }

  mutating func renew(_ app: Text) -> String {
    let scope = scope(of: app)
    let before = device(scope) ?? "\"\""
    let others = scope == "m.device" ? devices.map(\.scope).filter { $0 != scope } : []
    for each in [scope] + others {
      drawn += 1
      set(each, to: "r\(drawn)")
    }
    return "OK \(device(scope) ?? "") previous=\(before)"
  }

  private mutating func set(_ scope: String, to value: String) {
    devices.removeAll { $0.scope == scope }
    devices.append((scope, value))
    rehome { _ in true }
  }

  private mutating func rehome(_ isMeant: (Text) -> Bool) {
    for place in tokens.indices where isMeant(tokens[place].app) {
      let before = tokens[place].device
      guard let now = device(scope(of: tokens[place].app)), now != before else { continue }
      tokens[place].device = now
      tell("rehomed", tokens[place], " previous-device=\(before)")
    }
  }

  // MARK: Versions

  mutating func answer(_ command: VersionCommand, _ peer: Peer, at now: Int64) throws(Fault) -> [String] {
    switch command {
    case .report(let release, let named):
      return [try report(Ran(version: release.version, build: release.build), try app(named, peer), peer, now)]
    case .state(.app(let named)): return [words(try known(try app(named, peer), peer))]
    case .history(.app(let named)):
      let app = try app(named, peer)
      let own = rows.filter { $0.app == app }
      return own.map {
        "* \($0.ran.version)\(attribute("build", $0.ran.build)) installed=t\($0.installed) last=t\($0.last)"
      }
        + ["OK \(own.count)"]
    case .claim(let name, let named):
      let told = try known(try app(named, peer), peer)
      let claim = Claim(app: told.app, version: told.ran.version, name: name)
      let isKnown = claims.contains {
        $0.app == claim.app && $0.name == name && rank($0.version, told.app) == rank(claim.version, told.app)
      }
      if !isKnown { claims.append(claim) }
      return [isKnown ? "OK again" : "OK first"]
    default: throw .other
    }
  }

  private mutating func report(_ ran: Ran, _ app: Text, _ peer: Peer, _ now: Int64) throws(Fault) -> String {
    guard case .process(let session, _)? = peer.session else { throw .unavailable }
    let own = reports.last { $0.app == app && $0.session == session }
    if let own, own.ran == ran { return words(own) }
    apps.insert(app)
    let current = reports.last { $0.app == app }?.ran
    if current != ran {
      if let place = rows.firstIndex(where: { $0.app == app && $0.ran == ran }) {
        rows[place].last = now
      } else {
        rows.append(Row(app: app, ran: ran, installed: now, last: now))
      }
      let step = state(ran, after: current, app)
      if step != "unchanged" {
        told.versions.append(
          "\(step) of=app app=\(app) version=\(ran.version)\(attribute("build", ran.build))\(past(current))")
      }
    }
    let before = own == nil ? current : own?.before
    let new = Told(app: app, session: session, ran: ran, before: before, state: state(ran, after: before, app))
    reports.removeAll { $0.app == app && $0.session == session }
    reports.append(new)
    if reports.filter({ $0.app == app }).count > 32, let oldest = reports.firstIndex(where: { $0.app == app }) {
      reports.remove(at: oldest)
    }
    return words(new)
  }

  private func known(_ app: Text, _ peer: Peer) throws(Fault) -> Told {
    let own = reports.filter { $0.app == app }
    if case .process(let session, _)? = peer.session, let told = own.first(where: { $0.session == session }) {
      return told
    }
    guard let last = own.last else { throw .notFound }
    return last
  }

  private func state(_ ran: Ran, after before: Ran?, _ app: Text) -> String {
    guard let before else { return "installed" }
    let (now, then) = (rank(ran.version, app), rank(before.version, app))
    if now != then { return now > then ? "upgraded" : "downgraded" }
    return ran.build == before.build ? "unchanged" : "updated"
  }

  /// The versions in use, each with its rank in both orders.
  static let ranks: [(version: Text, numeric: Int, linux: Int)] = [
    ("1", 1, 1), ("1.0", 1, 2), ("1.0.0", 1, 3), ("1.2~rc1", 2, 4), ("1.2", 2, 5), ("2", 3, 6), ("10", 4, 7),
  ]

  private func rank(_ version: Text, _ app: Text) -> Int {
    let rank = Self.ranks.first { $0.version == version }
    return (manifests[app]?.order == .linux ? rank?.linux : rank?.numeric) ?? 0
  }

  private func words(_ told: Told) -> String {
    let installed = rows.first { $0.app == told.app && $0.ran == told.ran }?.installed ?? 0
    let before = told.state == "unchanged" ? "" : past(told.before)
    return "OK \(told.state) \(told.ran.version)\(attribute("build", told.ran.build))\(before) installed=t\(installed)"
  }

  private func past(_ before: Ran?) -> String {
    before.map { " previous=\($0.version)\(attribute("previous-build", $0.build))" } ?? ""
  }

  private func attribute(_ name: String, _ value: Text?) -> String { value.map { " \(name)=\($0)" } ?? "" }

  // MARK: Tokens

  mutating func answer(_ command: TokenCommand, _ peer: Peer, at now: Int64) throws(Fault) -> [String] {
    switch command {
    case .put(let said, let named): return [put(said, try app(named, peer), now)]
    case .get(let provider, let named): return ["OK \(row(tokens[try place(provider, try app(named, peer))]))"]
    case .list(let owners, let stale):
      if owners == .all, !peer.isAdmin { throw .denied }
      var app: Text?
      if case .app(let named) = owners { app = try self.app(named, peer) }
      let listed = tokens.filter { (app == nil || $0.app == app) && now - $0.confirmed >= (stale ?? 0) * 1_000 }
      return listed.map { "* \(row($0))" } + ["OK \(listed.count)"]
    case .invalidate(let provider, let value, let named):
      let app = try app(named, peer)
      guard let place = try? place(provider, app), tokens[place].value == value else { return ["OK unchanged"] }
      if tokens[place].valid {
        tokens[place].valid = false
        tokens[place].changed = now
        tell("invalidated", tokens[place])
      }
      return ["OK invalidated"]
    case .delete(let provider, let named):
      tell("deleted", tokens.remove(at: try place(provider, try app(named, peer))))
      return ["OK"]
    }
  }

  private mutating func put(_ said: TokenRegistration, _ app: Text, _ now: Int64) -> String {
    apps.insert(app)
    let device = device(of: app)
    guard let place = try? place(said.provider, app) else {
      tokens.append(
        Held(
          app: app, provider: said.provider, value: said.value, environment: said.environment, topic: said.topic,
          device: device, valid: true, created: now, changed: now, confirmed: now))
      tell("created", tokens[tokens.count - 1])
      return "OK created device=\(device)"
    }
    let before = tokens[place]
    tokens[place].value = said.value
    tokens[place].environment = said.environment
    tokens[place].topic = said.topic
    tokens[place].valid = true
    tokens[place].confirmed = now
    var same = before
    same.confirmed = now
    if tokens[place] == same { return "OK unchanged device=\(device)" }
    tokens[place].changed = now
    tell("replaced", tokens[place])
    return "OK replaced device=\(device)\(before.value == said.value ? "" : " previous=\(before.value)")"
  }

  private func place(_ provider: Text, _ app: Text) throws(Fault) -> Int {
    for (place, token) in tokens.enumerated() where token.app == app && token.provider == provider { return place }
    throw .notFound
  }

  private func row(_ token: Held) -> String {
    "\(token.value) provider=\(token.provider) app=\(token.app) device=\(token.device)"
      + attribute("environment", token.environment) + attribute("topic", token.topic)
      + " state=\(token.valid ? "valid" : "invalid")"
      + " created=t\(token.created) changed=t\(token.changed) confirmed=t\(token.confirmed)"
  }

  private mutating func tell(_ name: String, _ token: Held, _ more: String = "") {
    told.tokens.append(
      "\(name) app=\(token.app) provider=\(token.provider) device=\(token.device)\(more) fingerprint=#\(token.value)")
  }
}
