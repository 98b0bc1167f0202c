package import IdentityCore
import LinuxSystem
import Systemd

/// An attested peer and the evidence for it.
package final class AttestedPeer {
  /// The evidence; nil if it does not suffice to recognize the peer: the kernel is too old to report all of it, or the
  /// cgroup is not cached.
  let facts: PeerFacts?
  /// The peer with the facts that follow from it.
  package var held: HeldPeer
  /// The user whose slice the peer is in, if any.
  package let sliceUser: UInt32?

  init(facts: PeerFacts?, held: HeldPeer, sliceUser: UInt32?) {
    self.facts = facts
    self.held = held
    self.sliceUser = sliceUser
  }
}

/// Facts gathered about a peer at connect time. Equal facts mean the same peer.
struct PeerFacts {
  let credentials: PeerCredentials
  /// The ID of the peer's cgroup, which is in the cache of ``PeerGroups``.
  let group: UInt64
  /// The inode number of the process's pidfd, which is unique within a boot. So the process is the one whose PID
  /// namespace was examined.
  let inode: UInt64
  /// The service of the cgroup, as it counts for the peer's user; see ``PeerPlace/counting(for:_:)``.
  let unit: PeerUnit?
  let session: SessionAnchor?
  let rights: PeerRights
}

/// The rights of a peer by its user and groups, unless it is contained.
struct PeerRights: Equatable {
  /// See ``Peer/isAdmin``.
  var isAdmin: Bool
  /// See ``Peer/isMonitor``.
  var isMonitor: Bool
}

/// A peer with the facts that follow from it, shared by the connections of a process.
package final class HeldPeer {
  package let peer: Peer
  /// The number of the peer in the cache of known answers; 0 before its first request.
  package var number: UInt64 = 0

  /// The principal that is charged. Stored separately, because a computation from the peer would copy the peer.
  package let principal: Principal
  /// Whether the principal may use the reserve; see ``Limits/reservePercent``.
  package let usesReserve: Bool
  /// The party to which log entries about the peer are attributed.
  package var originator: Originator { Originator(peer, principal) }

  package init(_ peer: Peer, _ principal: Principal, usesReserve: Bool = false) {
    self.peer = peer
    self.principal = principal
    self.usesReserve = usesReserve
  }
}
