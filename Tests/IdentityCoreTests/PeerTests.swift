import IdentityCore
import Testing

@Suite struct PeerTests {
  /// Claims on `player.service` for one app and on user 1000 for another.
  private var claims: AppClaims {
    var claims = AppClaims()
    var user = Manifest("org.user")
    user.user = "alice"
    _ = claims.take([
      "org.unit": .init(file: "a", manifest: Manifest("org.unit", unit: "player.service")),
      "org.user": .init(file: "b", manifest: user, userID: 1_000),
    ])
    return claims
  }

  private func app(unit: Text?, owner: UInt32? = nil, user: UInt32, _ claims: AppClaims = AppClaims()) -> Text {
    Peer(
      userID: user, groupID: 0, processID: 2, unit: unit, unitOwner: owner, isAdmin: false, claims: claims
    ).app
  }

  @Test(
    arguments: [
      ("player.service", nil, 998, "unit:player.service"), ("web.service", 1_000, 1_000, "unit:web.service@1000"),
      (nil, nil, 1_000, "user:1000"), (nil, nil, 0, "user:0"), (nil, nil, 4_294_967_294, "user:4294967294"),
      ("web.service", 4_294_967_294, 1, "unit:web.service@4294967294"),
      ("getty@1000.service", nil, 0, "unit:getty@1000.service"),
    ] as [(Text?, UInt32?, UInt32, Text)])
  func `without a manifest a service of the system, a user's service and a user are three kinds of app`(
    unit: Text?, owner: UInt32?, user: UInt32, expected: Text
  ) {
    #expect(app(unit: unit, owner: owner, user: user) == expected)
    #expect(expected.isUnclaimedApp)
  }

  @Test(
    arguments: [
      ("player.service", nil, 998, "org.unit"), (nil, nil, 1_000, "org.user"),
      ("other.service", nil, 1_000, "org.user"), ("player.service", nil, 1_000, "org.unit"),
      ("Player.service", nil, 998, "unit:Player.service"), (nil, nil, 998, "user:998"),
    ] as [(Text?, UInt32?, UInt32, Text)])
  func `a manifest claims its unit before one claims the user`(
    unit: Text?, owner: UInt32?, user: UInt32, expected: Text
  ) {
    #expect(app(unit: unit, owner: owner, user: user, claims) == expected)
  }

  @Test func `a user's own service has never the claim on a unit, only the one on its user`() {
    #expect(app(unit: "player.service", owner: 1_001, user: 1_001, claims) == "unit:player.service@1001")
    #expect(app(unit: "player.service", owner: 1_000, user: 1_000, claims) == "org.user")
  }

  @Test(
    arguments: [
      (nil, nil, "uid:1000"), ("player.service", nil, "unit:player.service"),
      ("web.service", 1_000, "unit:web.service@1000"),
    ] as [(Text?, UInt32?, Text)])
  func `the history names a service by its unit and anybody else by the user, whatever the app`(
    unit: Text?, owner: UInt32?, author: Text
  ) {
    let peer = Peer(
      userID: 1_000, groupID: 0, processID: 2, unit: unit, unitOwner: owner, isAdmin: false, claims: claims)
    #expect(peer.author == author)
  }

  @Test func `a peer that was handed over is who it was`() {
    let peer = Peer(
      app: "org.unit", userID: 998, groupID: 997, processID: 5, unit: "player.service", unitOwner: nil,
      session: .process(5, start: 77), isAdmin: false)
    let before = Peer(
      userID: 998, groupID: 997, processID: 5, unit: "player.service", session: .process(5, start: 77), isAdmin: false,
      claims: claims)
    #expect(peer == before)
  }
}

@Suite struct ClaimTests {
  private func entry(_ file: String, unit: Text? = nil, user: UInt32? = nil) -> ManifestSurvey.Entry {
    .init(file: file, manifest: Manifest("v", unit: unit), userID: user)
  }

  @Test func `two manifests for one unit are named with both files, and neither is served`() {
    var claims = AppClaims()
    let (refused, faults) = claims.take([
      "a": entry("/etc/a.app", unit: "p.service"), "b": entry("/usr/b.app", unit: "p.service"),
      "c": entry("/usr/c.app", unit: "q.service"),
    ])
    #expect(refused == ["a", "b"])
    #expect(faults == ["/etc/a.app and /usr/b.app both say Unit=p.service: neither is served"])
    #expect(claims.app(unit: "p.service", userID: 7) == nil)
    #expect(claims.app(unit: "q.service", userID: 7) == "c")
  }

  @Test func `two manifests for one user are named with both files, and neither is served`() {
    var claims = AppClaims()
    let (refused, faults) = claims.take(["a": entry("/a.app", user: 7), "b": entry("/b.app", user: 7)])
    #expect(refused == ["a", "b"])
    #expect(faults == ["/a.app and /b.app both say User=7: neither is served"])
    #expect(claims.app(unit: nil, userID: 7) == nil)
  }

  @Test func `of three manifests for one unit none is served`() {
    var claims = AppClaims()
    let (refused, faults) = claims.take([
      "a": entry("/a", unit: "p.service"), "b": entry("/b", unit: "p.service"), "c": entry("/c", unit: "p.service"),
    ])
    #expect(refused == ["a", "b", "c"])
    #expect(faults.count == 2)
  }

  @Test func `an app that is refused for its unit has no claim on its user either`() {
    var claims = AppClaims()
    _ = claims.take(["a": entry("/a", unit: "p.service", user: 7), "b": entry("/b", unit: "p.service")])
    #expect(claims.app(unit: nil, userID: 7) == nil)
  }

  @Test func `a unit that one app claims and a user that another claims are no conflict`() {
    var claims = AppClaims()
    #expect(claims.take(["a": entry("/a", unit: "p.service"), "b": entry("/b", user: 7)]) == ([], []))
  }

  @Test func `a manifest without a unit and a known user claims nothing`() {
    var claims = AppClaims()
    #expect(claims.take(["a": entry("/a"), "b": entry("/b")]) == ([], []))
    #expect(claims == AppClaims())
  }
}
