import IdentityCore
import Testing

/// The app of a peer in every kind of unit, for every kind of user, inside and outside of containers. See WHO IS ASKING
/// in identityd-protocol(7).
struct PeerTests {
  /// The users, in the order of the columns of ``table``.
  static let users: [(name: String, userID: UInt32)] = [
    ("root", 0), ("a system user", 101), ("a dynamic user", 61_200), ("alice", 1_000), ("bob", 1_001),
    ("the user of a manifest", 1_002), ("a sub-uid", 165_536),
  ]

  /// The subordinate users of alice.
  static let subordinates = SubordinateUsers(
    [SubordinateUsers.Range(first: 165_536, count: 65_536, owner: 1_000)].compactMap(\.self))

  /// The manifests, named by their purpose.
  static let claims: AppClaims = {
    func entry(unit: Text? = nil, container: Text? = nil, _ users: AdmittedUsers = .unnamed, _ ids: [UInt32] = [])
      -> ManifestSurvey.Entry
    {
      var manifest = Manifest("v", unit: unit)
      (manifest.container, manifest.users) = (container, users)
      return .init(file: "f", manifest: manifest, userIDs: ids)
    }
    var claims = AppClaims()
    let (refused, faults) = claims.insert([
      "org.unit": entry(unit: "unit.service"),
      "org.named": entry(unit: "named.service", .named(["alice", "daemon"]), [1_000, 101]),
      "org.unknown": entry(unit: "unknown.service", .named(["gone"])),
      "org.all": entry(unit: "all.service", .everyone),
      "org.both": entry(unit: "both.service"),
      "org.both.alice": entry(unit: "both.service", .named(["alice"]), [1_000]),
      "org.both.all": entry(unit: "both.service", .everyone),
      "org.user": entry(.named(["user"]), [1_002]), "org.box": entry(container: "box"),
    ])
    precondition(refused.isEmpty && faults.isEmpty)
    return claims
  }()

  /// The app of each user in a place. `UID` stands for the user's number.
  static let table: [(place: PeerPlace, apps: [String])] = [
    (
      PeerPlace(),
      ["user:UID", "user:UID", "user:UID", "user:UID", "user:UID", "org.user", "user:UID"]
    ),
    // A system service without a manifest, such as cron or a worker pool.
    (
      PeerPlace(unit: "cron.service"),
      [
        "unit:cron.service", "unit:cron.service:UID", "unit:cron.service", "unit:cron.service:UID",
        "unit:cron.service:UID", "org.user", "unit:cron.service:UID",
      ]
    ),
    // `Unit=` alone admits root, system users and the dynamic user.
    (
      PeerPlace(unit: "unit.service"),
      [
        "org.unit", "org.unit", "org.unit", "unit:unit.service:UID", "unit:unit.service:UID", "org.user",
        "unit:unit.service:UID",
      ]
    ),
    // `Unit=` with `User=` admits the named users alone, of any kind.
    (
      PeerPlace(unit: "named.service"),
      [
        "unit:named.service", "org.named", "unit:named.service", "org.named", "unit:named.service:UID", "org.user",
        "unit:named.service:UID",
      ]
    ),
    // If the named users do not exist, nobody is admitted. The rule for a missing `User=` does not apply.
    (
      PeerPlace(unit: "unknown.service"),
      [
        "unit:unknown.service", "unit:unknown.service:UID", "unit:unknown.service", "unit:unknown.service:UID",
        "unit:unknown.service:UID", "org.user", "unit:unknown.service:UID",
      ]
    ),
    (PeerPlace(unit: "all.service"), [String](repeating: "org.all", count: 7)),
    // Of several manifests for one unit, the manifest that names the user most precisely counts.
    (
      PeerPlace(unit: "both.service"),
      ["org.both", "org.both", "org.both", "org.both.alice", "org.both.all", "org.both.all", "org.both.all"]
    ),
    // Only the owner is in a user's own service. Any other user there counts as outside of the service.
    (
      PeerPlace(unit: "unit.service", owner: 1_000),
      ["user:UID", "user:UID", "user:UID", "unit:unit.service@1000", "user:UID", "org.user", "user:UID"]
    ),
    (
      PeerPlace(unit: "web.service", owner: 1_002),
      ["user:UID", "user:UID", "user:UID", "user:UID", "user:UID", "org.user", "user:UID"]
    ),
    (PeerPlace(unit: nil, container: "0123abcd"), [String](repeating: "container:0123abcd", count: 7)),
    // Only the owner and its subordinate users are in a user's own container. Any other user there
    // counts as outside of it.
    (
      PeerPlace(unit: nil, owner: 1_000, container: "0123abcd"),
      [
        "user:UID", "user:UID", "user:UID", "container:0123abcd@1000", "user:UID", "org.user",
        "container:0123abcd@1000",
      ]
    ),
    (PeerPlace(unit: nil, container: "box"), [String](repeating: "org.box", count: 7)),
    (
      PeerPlace(unit: nil, owner: 1_000, container: "box"),
      ["user:UID", "user:UID", "user:UID", "container:box@1000", "user:UID", "org.user", "container:box@1000"]
    ),
  ]

  private func peer(_ place: PeerPlace, _ user: UInt32, isAdmin: Bool = true, isMonitor: Bool = false) -> Peer {
    Peer(
      userID: user, groupID: 0, processID: 2, place: place, isAdmin: isAdmin, isMonitor: isMonitor,
      claims: Self.claims, subordinates: Self.subordinates)
  }

  @Test(arguments: table.indices) func `the app of a peer is a unit and a user, or a container`(row: Int) {
    let (place, apps) = Self.table[row]
    #expect(apps.count == Self.users.count)
    for (user, expected) in zip(Self.users, apps) {
      let app = expected.replacing("UID", with: "\(user.userID)")
      // In other namespaces the app is the same, but the peer is no admin.
      for isContained in [false, true] {
        let place = PeerPlace(
          unit: place.unit, owner: place.owner, container: place.container, hasOtherNamespaces: isContained)
        let peer = peer(place, user.userID)
        #expect("\(peer.app)" == app, "\(user.name) in \(place)")
        #expect(peer.isAdmin == (peer.place.container == nil && !isContained))
        let other = self.peer(place, user.userID, isAdmin: false)
        #expect(!other.isAdmin && !other.mayMonitor)
        // An admin may monitor the daemon, but a monitor is no admin.
        #expect(peer.mayMonitor == peer.isAdmin)
        let monitor = self.peer(place, user.userID, isAdmin: false, isMonitor: true)
        #expect(!monitor.isAdmin)
        #expect(monitor.mayMonitor == peer.isAdmin, "\(user.name) in \(place)")
        #expect(peer.app.isUnclaimedApp == app.contains(":"))
      }
    }
  }

  @Test func `unrelated places and users never share an app`() {
    var seen: [Text: [String]] = [:]
    for (place, _) in Self.table {
      for user in Self.users {
        let peer = peer(place, user.userID)
        guard peer.app.isUnclaimedApp else { continue }
        // A container is one app for all its users. A user is one app in all places outside of services.
        let key = peer.place.containerName.map { "\($0)" } ?? "\(peer.place.unit ?? "-") \(user.userID)"
        seen[peer.app, default: []].append(key)
      }
    }
    for (app, keys) in seen {
      // Root and the dynamic user of a unit have the app of the unit itself.
      let isUnitItself = keys.allSatisfy { $0.hasSuffix(" 0") || $0.hasSuffix(" 61200") }
      #expect(Set(keys).count == 1 || isUnitItself, "\(app): \(keys)")
    }
  }

  @Test(arguments: [(1, 1), (500, 500), (1_000, 1_000), (0, 1), (60_000, 60_000)] as [(UInt32, UInt32)])
  func `the first regular user is the configured one, and never root`(said: UInt32, first: UInt32) {
    let ranges = UserRanges(firstRegular: said)
    #expect(ranges.isForServices(0) && ranges.isUnitItself(0))
    #expect(ranges.isForServices(first - 1) && !ranges.isForServices(first))
    for user in [61_184, 65_519] as [UInt32] { #expect(ranges.isForServices(user) && ranges.isUnitItself(user)) }
    for user in [61_183, 65_520, 65_534, 4_294_967_294] as [UInt32] { #expect(!ranges.isUnitItself(user)) }
  }

  @Test(
    arguments: [
      (PeerPlace(), "uid:1000"), (PeerPlace(unit: "unit.service"), "unit:unit.service"),
      (PeerPlace(unit: "web.service", owner: 1_000), "unit:web.service@1000"),
      (PeerPlace(unit: "web.service", owner: 1_001), "uid:1000"),
      (PeerPlace(unit: nil, container: "box"), "container:box"),
    ] as [(PeerPlace, Text)])
  func `the author in the history is a container, a service or a user`(place: PeerPlace, author: Text) {
    #expect(peer(place, 1_000).author == author)
  }

  @Test func `a peer that was handed over equals the original`() {
    let place = PeerPlace(unit: "unit.service", hasOtherNamespaces: true)
    let peer = Peer(
      app: "org.unit", userID: 0, groupID: 997, processID: 5, place: place, session: .process(5, start: 77),
      isAdmin: false)
    let before = Peer(
      userID: 0, groupID: 997, processID: 5, place: place, session: .process(5, start: 77), isAdmin: true,
      isMonitor: true, claims: Self.claims)
    #expect(peer == before)
  }

  @Test(
    arguments: [
      ("unit:web.service@1000", 1_000), ("unit:cron.service:1000", 1_000), ("container:0123abcd@1000", 1_000),
      ("unit:cron.service", nil), ("unit:getty@1000.service", nil), ("container:42", nil), ("user:1000", nil),
      ("org.example@7", nil), ("unit:getty@1.service:7", 7),
    ] as [(Text, UInt32?)])
  func `the owner of an app without a manifest is the user in its name`(app: Text, owner: UInt32?) {
    #expect(app.owner == owner)
  }
}

struct ClaimTests {
  private let ranges = UserRanges()

  private func entry(
    _ file: String, unit: Text? = nil, container: Text? = nil, users: [UInt32] = [], all: Bool = false
  ) -> ManifestSurvey.Entry {
    var manifest = Manifest("v", unit: unit)
    manifest.container = container
    manifest.users = all ? .everyone : users.isEmpty ? .unnamed : .named(users.map { Text("u\($0)") })
    return .init(file: file, manifest: manifest, userIDs: users)
  }

  @Test func `two manifests for one unit are reported with both files, and neither applies`() {
    var claims = AppClaims()
    let (refused, faults) = claims.insert([
      "a": entry("/etc/a.app", unit: "p.service"), "b": entry("/usr/b.app", unit: "p.service"),
      "c": entry("/usr/c.app", unit: "q.service"),
    ])
    #expect(refused == ["a", "b"])
    #expect(
      faults == [
        "/etc/a.app and /usr/b.app both claim Unit=p.service: neither app is served until one manifest changes"
      ])
    #expect(claims.app(unit: "p.service", userID: 0, ranges) == nil)
    #expect(claims.app(unit: "q.service", userID: 0, ranges) == "c")
  }

  @Test func `manifests for the same user, the same unit and users, or one container conflict`() {
    for (first, second, said) in [
      (entry("/a", users: [7]), entry("/b", users: [6, 7]), "User=7"),
      (entry("/a", unit: "p.service", users: [7, 8]), entry("/b", unit: "p.service", users: [8, 7]), nil),
      (
        entry("/a", unit: "p.service", all: true), entry("/b", unit: "p.service", all: true),
        "Unit=p.service and User=*"
      ),
      (entry("/a", container: "box"), entry("/b", container: "box"), "Container=box"),
    ] as [(ManifestSurvey.Entry, ManifestSurvey.Entry, String?)] {
      var claims = AppClaims()
      let (refused, faults) = claims.insert(["a": first, "b": second])
      #expect(refused == ["a", "b"])
      #expect(faults.count == 1)
      if let said {
        #expect(faults == ["/a and /b both claim \(said): neither app is served until one manifest changes"])
      }
      #expect(claims == AppClaims())
    }
  }

  @Test func `manifests for one unit and different users are different apps`() {
    var claims = AppClaims()
    let entries =
      [
        "a": entry("/a", unit: "p.service"), "b": entry("/b", unit: "p.service", users: [1_000]),
        "c": entry("/c", unit: "p.service", users: [1_001, 33]), "d": entry("/d", unit: "p.service", all: true),
        "e": entry("/e", users: [1_000]),
      ] as [Text: ManifestSurvey.Entry]
    #expect(claims.insert(entries) == ([], []))
    for (user, app) in [(0, "a"), (1_000, "b"), (1_001, "c"), (33, "c"), (34, "a"), (1_002, "d")] as [(UInt32, Text)] {
      #expect(claims.app(unit: "p.service", userID: user, ranges) == app)
    }
  }

  @Test func `of three manifests for one unit none applies`() {
    var claims = AppClaims()
    let (refused, faults) = claims.insert([
      "a": entry("/a", unit: "p.service"), "b": entry("/b", unit: "p.service"), "c": entry("/c", unit: "p.service"),
    ])
    #expect(refused == ["a", "b", "c"])
    #expect(faults.count == 2)
  }

  @Test func `an app that is refused for one user has no claim on its other users`() {
    var claims = AppClaims()
    _ = claims.insert(["a": entry("/a", users: [7, 8]), "b": entry("/b", users: [7])])
    #expect(claims.app(userID: 8) == nil)
  }

  @Test func `a manifest that lists a user twice is no conflict`() {
    var claims = AppClaims()
    #expect(claims.insert(["a": entry("/a", users: [7, 7])]) == ([], []))
    #expect(claims.app(userID: 7) == "a")
  }

  @Test func `a manifest without a unit, container or known user claims nothing`() {
    var claims = AppClaims()
    #expect(claims.insert(["a": entry("/a"), "b": entry("/b")]) == ([], []))
    #expect(claims == AppClaims())
  }
}
