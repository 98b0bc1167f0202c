/// The peers and targets of the access tests. Each app that is installed has an installation identifier, an item
/// `s`/`a` in every access group that it may use, a token of provider `p`, and version 1.
package struct AccessScene: Sendable {
  /// One app, and a peer of this app.
  package struct Actor: Sendable, CustomStringConvertible {
    package let app: String
    package var user: Int = 990
    package var isAdmin = false
    /// Nil for an app without a manifest.
    package var manifest: ReferenceModel.Manifest?
    /// Whether the app was uninstalled while the peer was connected.
    package var isGone = false

    var groups: [String] { isGone ? [] : [app] + (manifest?.groups ?? []) }
    var vendor: String { manifest?.vendor ?? app }
    package var hasFleet: Bool { !isGone && manifest?.rights.contains("fleet") == true }
    var shares: Bool { !isGone && manifest?.device ?? "shared" == "shared" }
    package var description: String { app }
  }

  /// The peers, in order.
  ///
  /// With a manifest: an app, an app of the same vendor with its own device identifier, an app of another vendor, an
  /// app with the right `fleet`, an uninstalled app with this right. Without a manifest: a system service, a user, a service of this user, another user, an admin by
  /// group, and root.
  package static let actors: [Actor] = [
    Actor(app: "org.a", manifest: .init(vendor: "org.v", groups: ["org.shared"])),
    Actor(app: "org.b", manifest: .init(vendor: "org.v", device: "app", groups: ["org.shared"])),
    Actor(app: "org.c", user: 8, manifest: .init(vendor: "org.w", groups: ["org.media"])),
    Actor(app: "org.gone", manifest: .init(vendor: "org.v", groups: ["org.shared"], rights: ["fleet"]), isGone: true),
    Actor(app: "org.fleet", user: 991, manifest: .init(vendor: "org.fleet", rights: ["fleet"])),
    Actor(app: "unit:plain.service", user: 997), Actor(app: "user:1000", user: 1_000),
    Actor(app: "unit:one.service@1000", user: 1_000), Actor(app: "user:1002", user: 1_002),
    Actor(app: "user:1003", user: 1_003, isAdmin: true), Actor(app: "user:0", user: 0, isAdmin: true),
  ]

  /// The apps and groups that a request may name. Nil for a request that names none.
  package static let targets: [String?] = [nil, "org.shared", "org.media", "org.none"] + actors.map(\.app)

  static func actor(_ app: String?) -> Actor? { actors.first { $0.app == app } }
}

/// The access rights that the protocol gives for one request.
package struct AccessRule: Sendable, CustomStringConvertible {
  /// The peers that a request is granted to.
  package enum Grant: Sendable {
    case anybody
    case admins
    /// Admins, and apps with the right `fleet`.
    case fleet
    /// Admins, if their own app is installed.
    case adminsOfApp
    /// The app itself, and admins for any installed app.
    case app
    /// The app itself, and admins and apps with the right `fleet` for any installed app.
    case appOrFleet
    /// The app itself.
    case own
    /// The app itself, and admins for any app, also after it was uninstalled.
    case pastApp
    /// Apps that may use the access group, and admins.
    case group
    /// Apps that may use the access group by their manifests.
    case ownGroup
    /// Apps that share the device identifier, and admins.
    case sharing
    /// The app itself, and admins for any installed app, but only if the app shares the device identifier.
    case proof
    /// The app itself, its user and admins, for an app without a manifest.
    case forgetting
  }

  /// The request line without its target.
  package let line: String
  package let grant: Grant
  /// The answer to a peer with access: `OK`, or the error code that the scene leads to. Nil if only a running daemon
  /// can tell.
  package let granted: String?
  package var description: String { line }

  package init(_ line: String, _ grant: Grant, _ granted: String? = "OK") {
    self.line = line
    self.grant = grant
    self.granted = granted
  }

  /// Returns the request line for a target. Nil if the verb takes no such target.
  package func line(naming target: String?) -> String? {
    guard let target else { return grant == .forgetting ? nil : line }
    switch grant {
    case .app, .pastApp, .appOrFleet, .proof: return "\(line) app=\(target)"
    case .group, .ownGroup: return "\(line) group=\(target)"
    case .forgetting: return "\(line) \(target)"
    case .anybody, .admins, .fleet, .adminsOfApp, .sharing, .own: return nil
    }
  }

  /// Returns the expected answer: `OK`, or an error code. Nil if only a running daemon can tell.
  package func outcome(for peer: AccessScene.Actor, naming target: String?) -> String? {
    let other = AccessScene.actor(target)
    let isOwn = target == nil || target == peer.app
    switch grant {
    case .anybody: return granted
    case .admins: return peer.isAdmin ? granted : "denied"
    case .fleet: return peer.isAdmin || peer.hasFleet ? granted : "denied"
    case .adminsOfApp: return peer.isGone ? "not-found" : peer.isAdmin ? granted : "denied"
    case .app, .pastApp, .appOrFleet:
      if isOwn { return peer.isGone && grant != .pastApp ? "not-found" : granted }
      guard peer.isAdmin || grant == .appOrFleet && peer.hasFleet else { return "denied" }
      return other.map { !$0.isGone || grant == .pastApp } ?? false ? granted : "not-found"
    case .group:
      if isOwn { return peer.isGone ? "not-found" : granted }
      if let target, peer.groups.contains(target) { return granted }
      if !peer.isAdmin { return "denied" }
      // An admin may use any group, but an empty group has no items to return.
      let isEmpty = target == "org.none" || other?.isGone == true
      if isEmpty { return line.hasPrefix("item add") || line.hasPrefix("item put") ? "OK" : "not-found" }
      return granted
    case .ownGroup:
      if isOwn { return peer.isGone ? "not-found" : granted }
      return target.map { peer.groups.contains($0) } == true ? granted : "denied"
    case .own: return peer.isGone ? "not-found" : granted
    case .sharing:
      if peer.isGone { return "not-found" }
      return peer.shares || peer.isAdmin ? granted : "denied"
    case .proof:
      if !isOwn, !peer.isAdmin { return "denied" }
      guard let other = isOwn ? peer : other, !other.isGone else { return "not-found" }
      return other.shares ? granted : "denied"
    case .forgetting:
      let isOwner = isOwn || target?.hasSuffix("@\(peer.user)") == true
      if !isOwner && !peer.isAdmin { return "denied" }
      guard let other, !other.isGone else { return "not-found" }
      return other.manifest == nil ? granted : "conflict"
    }
  }

  private static let value = "55555555-5555-4555-8555-000000000001"
  private static let key = "key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

  /// The table of access. A verb without a line has the rights that its row states.
  package static let table: [AccessRule] =
    [
      "ping", "hello", "help", "whoami", "status", "stats", "check x", "get uuid", "get key a", "get session",
      "version compare 1 2", "app list", "subscribe", "subscribe snapshot=yes", "unsubscribe", "quit",
    ].map { AccessRule($0, .anybody, nil) }
    + [
      "key rotate", "backup \(key)", "restore begin \(key)", "restore add data=AAAA", "restore end",
    ].map { AccessRule($0, .admins, nil) }
    + [
      AccessRule("seal", .admins), AccessRule("renew device", .fleet), AccessRule("renew installation", .admins),
      AccessRule("renew vendor dry-run=yes", .admins), AccessRule("renew device dry-run=yes", .admins),
      AccessRule("renew device replaces=yes", .admins),
      AccessRule("account set bob", .fleet), AccessRule("account set bob dry-run=yes", .fleet),
      AccessRule("account clear", .fleet), AccessRule("devices put \(value)", .fleet),
      AccessRule("devices name desk", .admins), AccessRule("machine acknowledge", .admins),
      AccessRule("machine acknowledge dry-run=yes", .admins),
      AccessRule("devices remove \(value)", .fleet, "not-found"),
      AccessRule("devices forget \(value)", .admins, "not-found"), AccessRule("token list app=*", .fleet),
      AccessRule("token list app=* limit=1", .fleet),
      AccessRule("version state app=*", .fleet), AccessRule("fleet twin copy=no", .fleet),
      AccessRule("fleet rekeyed original=\(value)", .fleet),
      AccessRule("fleet said state=live", .fleet, nil),
      AccessRule("fleet open run=\(String(repeating: "4", count: 32))", .fleet), AccessRule("fleet next", .fleet),
      AccessRule("fleet records", .fleet),
      AccessRule("devices put \(value) generation=1 counter=1 record=AAAA", .fleet),
      AccessRule("devices remove \(value) generation=1 counter=1 record=AAAA", .fleet),
      AccessRule("migrate device \(value) force=yes", .adminsOfApp),
      AccessRule("migrate installation \(value) force=yes commit=yes", .adminsOfApp),
      AccessRule("resolve \(value)", .anybody, "not-found"),
      AccessRule("get boot", .app, nil), AccessRule("get device", .app), AccessRule("get installation", .app),
      AccessRule("get vendor", .app), AccessRule("history device", .app), AccessRule("history vendor", .app),
      AccessRule("history installation", .pastApp), AccessRule("migrate device \(value)", .app, "conflict"),
      AccessRule("migrate installation \(value) commit=yes", .app, "conflict"),
      AccessRule("account", .sharing), AccessRule("devices", .own), AccessRule("version state of=os", .sharing),
      AccessRule("version history of=os", .sharing), AccessRule("app forget", .forgetting),
      AccessRule("prove vault", .proof, nil), AccessRule("proof keys", .sharing),
      AccessRule("item add service=s account=new data=eA==", .group),
      AccessRule("item add service=s account=a data=eA==", .group, "exists"),
      AccessRule("item put service=s account=a data=eA==", .group), AccessRule("item read service=s account=a", .group),
      AccessRule("item read service=s account=no", .group, "not-found"), AccessRule("item find", .group),
      AccessRule("item find account=no", .group, "not-found"), AccessRule("item find data=yes", .ownGroup),
      AccessRule("item read account=a label=\"\"", .group), AccessRule("item read label=no", .group, "not-found"),
      AccessRule("item update where.label=\"\" attr.y=1", .group),
      AccessRule("item update service=s account=a label=l", .group), AccessRule("item delete service=s", .group),
      AccessRule("item delete service=s dry-run=yes", .group),
      AccessRule("migrate device item=a service=s", .group, "invalid-uuid"),
      AccessRule("migrate installation item=a service=s", .group, "invalid-uuid"),
      AccessRule("version report 2", .app), AccessRule("version report 2 dry-run=yes", .app),
      AccessRule("version state", .app), AccessRule("version history", .app), AccessRule("version claim n", .app),
      AccessRule("token put q two", .app), AccessRule("token get p", .app), AccessRule("token list", .app),
      AccessRule("token invalidate p one", .appOrFleet), AccessRule("token delete p", .app),
      AccessRule("token delete p dry-run=yes", .app),
    ]
}
