import Testing

@testable import IdentityCore

/// The names by which a service manager requests credentials, and the peers that may have them.
struct CredentialTests {
  private func parsed(_ name: String) -> CredentialRequest? { CredentialRequest(peerName: Array(name.utf8)) }

  @Test(arguments: [
    ("0465d1877c659a0e/unit/foo@bar.service/item.mail.alice", "foo@bar.service", "item.mail.alice"),
    ("0/unit/a\\x2db@c:d.service/x", "a\\x2db@c:d.service", "x"),
    ("f/unit/é.service/~", "é.service", "~"), ("f/unit/a.service/my secret", "a.service", "my secret"),
    ("f/unit/a.service/b\n", "a.service", "b\n"),
  ])
  func `a name has digits, the unit and the credential`(name: String, unit: String, credential: String) {
    #expect(parsed(name)?.unit == Text(unit) && parsed(name)?.name == Text(credential))
  }

  @Test(arguments: [
    "", "0", "0/unit/", "0/unit/a.service", "0/unit//b", "0/unit/a.service/", "0/unit/a/b/c", "/unit/a.service/b",
    "0F/unit/a.service/b", "g/unit/a.service/b", "00000000000000000/unit/a.service/b", "0/Unit/a.service/b",
  ])
  func `other names are no requests`(name: String) { #expect(parsed(name) == nil) }

  /// Without an answer, the unit would start.
  @Test func `bytes that are not UTF-8 are a request for nothing`() {
    let request = CredentialRequest(peerName: Array("0/unit/a.service/".utf8) + [0xff])
    #expect(request?.unit == "a.service" && request?.name == "\u{fffd}")
  }

  /// A peer, and whether it gets credentials of `web.service`.
  private struct Row {
    var user: UInt32 = 0
    var unit: Text? = "web.service"
    var owner: UInt32?
    var container: Text?
    var hasOtherNamespaces = false
    var isServed = false
  }

  @Test func `only the service manager, in the unit's cgroup, is served`() throws {
    let rows = [
      Row(isServed: true),
      Row(user: 1000), Row(user: 33), Row(unit: nil), Row(unit: "other.service"), Row(container: "box"),
      Row(hasOtherNamespaces: true),
      Row(user: 1000, owner: 1000, isServed: true),
      Row(user: 1000, unit: "other.service", owner: 1000),
      // Another user counts as outside of the service of its owner.
      Row(user: 1001, owner: 1000), Row(user: 0, owner: 1000),
      Row(user: 1000, owner: 1000, container: "box"), Row(user: 1000, owner: 1000, hasOtherNamespaces: true),
      Row(user: 0, owner: 0, isServed: true),
    ]
    let request = try #require(parsed("0/unit/web.service/b"))
    for row in rows {
      let place = PeerPlace(
        unit: row.unit, owner: row.owner, container: row.container, hasOtherNamespaces: row.hasOtherNamespaces)
      let peer = Peer(userID: row.user, groupID: 0, processID: 1, place: place, isAdmin: row.user == 0)
      #expect((try? request.content(for: peer)) == (row.isServed ? .secret : nil), "\(row)")
    }
  }

  @Test(arguments: ["identityd.service", "identityd-key.service", "identity-fleet.service"])
  func `units of identityd get none`(unit: String) throws {
    let peer = Peer(userID: 0, groupID: 0, processID: 1, place: PeerPlace(unit: Text(unit)), isAdmin: true)
    #expect(throws: Refusal.conflict("identityd gives no credentials to its own units")) {
      try #require(parsed("0/unit/\(unit)/b")).content(for: peer)
    }
  }

  @Test(arguments: [("web.service", nil), ("a@b.service", nil), ("a@b:c.service", nil), ("web.service", 1000)])
  func `a group tells its unit and owner`(unit: String, owner: UInt32?) {
    let found = CredentialRequest.unit(of: CredentialRequest.group(of: Text(unit), owner: owner))
    #expect(found?.unit == Text(unit) && found?.owner == owner)
  }

  @Test(arguments: ["user:1000", "org.example.player", "unit:cron.service:1000", "container:a@1000"])
  func `a group of another app has no unit`(group: String) {
    #expect(CredentialRequest.unit(of: Text(group)) == nil)
  }

  @Test func `reserved names stand for identifiers and proofs, or are refused`() throws {
    let peer = Peer(userID: 0, groupID: 0, processID: 1, place: PeerPlace(unit: "web.service"), isAdmin: true)
    func content(_ name: String) throws -> CredentialRequest.Content {
      try #require(parsed("0/unit/web.service/\(name)")).content(for: peer)
    }
    for identifier in CredentialRequest.Identifier.allCases {
      #expect(try content("identityd.\(identifier.rawValue)") == .identifier(identifier))
    }
    #expect(try content("identityd.proof.vault") == .proof(for: "vault"))
    #expect(try content("identityd.proof.https.example.org") == .proof(for: "https.example.org"))
    for name in ["", "key", "Device", "device.x", "proof.", "proof"].map({ "identityd.\($0)" }) {
      #expect(throws: Refusal.self, "\(name)") { try content(name) }
    }
    #expect(try content("identityd") == .secret)
    #expect(try content("x.identityd.device") == .secret)
  }
}
