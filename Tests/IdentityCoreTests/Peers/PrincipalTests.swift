import IdentityCore
import Testing

/// The principals that limits and turns are charged to.
struct PrincipalTests {
  private static let subordinates = SubordinateUsers(
    [
      SubordinateUsers.Range(first: 100_000, count: 65_536, owner: 1_000),
      SubordinateUsers.Range(first: 165_536, count: 65_536, owner: 1_001),
      SubordinateUsers.Range(first: 165_540, count: 10, owner: 1_002),
      SubordinateUsers.Range(first: 4_294_967_290, count: 5, owner: 1_003),
    ].compactMap(\.self))

  @Test(
    arguments: [
      (0, 0), (1_000, 1_000), (99_999, 99_999), (100_000, 1_000), (165_535, 1_000), (165_536, 1_001), (165_545, 1_001),
      (231_071, 1_001), (231_072, 231_072), (4_294_967_289, 4_294_967_289), (4_294_967_290, 1_003),
      (4_294_967_294, 1_003),
    ] as [(UInt32, UInt32)])
  func `a subordinate user belongs to its owner, and any other user to itself`(user: UInt32, owner: UInt32) {
    #expect(Self.subordinates.owner(of: user) == owner)
    #expect(SubordinateUsers().owner(of: user) == user)
  }

  @Test func `a range must lie within the valid user IDs`() {
    #expect(SubordinateUsers.Range(first: 5, count: 0, owner: 1) == nil)
    #expect(SubordinateUsers.Range(first: 4_294_967_295, count: 2, owner: 1) == nil)
    #expect(SubordinateUsers.Range(first: 4_294_967_295, count: 1, owner: 1) != nil)
  }

  @Test(
    arguments: [
      (PeerPlace(), 1_000, .user(1_000)), (PeerPlace(), 100_007, .user(1_000)), (PeerPlace(), 0, .user(0)),
      (PeerPlace(unit: "cron.service"), 1_000, .user(1_000)),
      (PeerPlace(unit: "web.service", owner: 1_000), 1_000, .user(1_000)),
      (PeerPlace(unit: nil, container: "box"), 0, .container("box")),
      (PeerPlace(unit: nil, container: "box"), 1_000, .container("box")),
      // All of a user's own containers are charged to the user.
      (PeerPlace(unit: nil, owner: 1_000, container: "box"), 1_000, .user(1_000)),
      (PeerPlace(unit: nil, owner: 1_000, container: "box"), 100_007, .user(1_000)),
      // Root in a container is not the principal root.
      (PeerPlace(unit: "box.service", hasOtherNamespaces: true), 0, .container("box.service")),
      (PeerPlace(unit: nil, hasOtherNamespaces: true), 0, .container("root")),
      (PeerPlace(unit: "box.service", hasOtherNamespaces: true), 100_007, .user(1_000)),
    ] as [(PeerPlace, UInt32, Principal)])
  func `a principal is a user, the owner of a subordinate user, or a container`(
    place: PeerPlace, user: UInt32, principal: Principal
  ) {
    let peer = Peer(
      userID: user, groupID: 0, processID: 2, place: place, isAdmin: user == 0, subordinates: Self.subordinates)
    #expect(Principal(of: peer, Self.subordinates) == principal)
    #expect(principal.isTrusted == (principal == .user(0)))
  }

  @Test(arguments: [(100, 0, 0, 50), (100, 40, 1, 20), (100, 100, 3, 0), (100, 150, 1, 0), (7, 0, 2, 1)])
  func `a share is the free part divided by the number of principals plus one`(
    total: Int, used: Int, others: Int, most: Int
  ) {
    #expect(FairShare.most(of: total, usedByOthers: used, others: others) == most)
  }
}
