/// The party whose action causes a change or an entry of the log.
package enum Originator: Hashable, Sendable {
  /// The daemon itself: its start, its stop, its timers, the disk, or the manifests that root installs.
  case daemon
  /// An admin. Entries about admins are never limited.
  case admin
  /// Any other peer, by the principal that is charged.
  case principal(Principal)
  /// A peer whose principal is unknown, because the peer could not be attested.
  case stranger

  package init(_ peer: Peer, _ principal: Principal) { self = peer.isAdmin ? .admin : .principal(principal) }
}
