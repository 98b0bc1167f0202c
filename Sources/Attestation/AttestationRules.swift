package import IdentityCore
package import LinuxSystem
import Systemd

/// The settings of an administrator about peers.
package struct AttestationSettings: Equatable, Sendable {
  /// The group ID of `AdminGroup=`; nil if there is none.
  package var adminGroup: UInt32?
  /// The group ID of `MonitorGroup=`; nil if there is none.
  package var monitorGroup: UInt32?
  /// The policy for containers that no manifest admits.
  package var containers = ContainerPolicy.own
  /// The ranges of user IDs of regular users and of services.
  package var ranges = UserRanges()

  package init() {}
}

/// The facts and settings by which peers are attested. A class, because a copy would cost each connection too much.
package final class AttestationRules {
  /// The user ID that the kernel reports for every user without an ID in the daemon's user namespace;
  /// see ``UserNamespace``.
  ///
  /// A peer with this user ID is refused, because the ID stands for many users. Nil if every user has an ID.
  package let unnamedUser: UInt32?
  /// The settings in force.
  package var settings: AttestationSettings { didSet { latest = nil } }
  /// The daemon's own user, who can read the state itself and so may monitor the daemon.
  let ownUser = Accounts.ownUserID
  /// The claims of the manifests.
  package var claims = AppClaims() { didSet { latest = nil } }
  /// The ranges of subordinate users.
  package var subordinates = SubordinateUsers() { didSet { latest = nil } }
  /// The peer that connected last, which is most often the one that connects now; nil if a rule has changed since.
  package var latest: AttestedPeer?
  /// The cache of services and containers by cgroup.
  let groups: PeerGroups
  /// The namespaces of the daemon.
  let namespaces: ProcessNamespaces

  /// Reads the daemon's own user namespace, cgroup and other namespaces, and applies settings.
  package init(_ settings: AttestationSettings) throws(SystemError) {
    unnamedUser = try UserNamespace.unnamedUser()
    groups = PeerGroups(atMost: Bound.peerGroups, own: try ProcessFacts.controlGroup(ofProcess: "self"))
    namespaces = try ProcessNamespaces()
    self.settings = settings
  }

  /// Returns a peer with the principal that is charged, and its right to the reserve.
  package func held(_ peer: Peer) -> HeldPeer {
    HeldPeer(
      peer, Principal(of: peer, subordinates),
      usesReserve: !peer.place.isContained && settings.ranges.isForServices(peer.userID))
  }

  /// Returns the peer that the main process of a peer's service is, for the user that the service runs as. It has no rights
  /// of an admin.
  package func mainProcess(of peer: Peer, userID: UInt32) -> Peer {
    Peer(
      userID: userID, groupID: peer.groupID, processID: peer.processID, place: peer.place, session: peer.session,
      isAdmin: false, claims: claims, ranges: settings.ranges, subordinates: subordinates)
  }

  /// Whether the daemon's own user is a regular user, who started a daemon of his own and administers it.
  var isOwnUserAdmin: Bool { isRegular(ownUser) && !UserRanges.unmapped.contains(ownUser) }

  /// Returns whether a user is a regular user.
  package func isRegular(_ user: UInt32) -> Bool { !settings.ranges.isForServices(user) }
}
