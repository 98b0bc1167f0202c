package import IdentityCore

/// The peers that are told of a row of `status`, or of a metric of `stats`.
///
/// A total tells one peer of the others: it grew by the length of another app's secret. So a row is for monitors unless its
/// declaration says otherwise.
package enum RowAudience: CaseIterable, Sendable {
  /// Every peer: the daemon's health, and the protocol.
  case everybody
  /// Peers that may monitor the daemon; see ``Peer/mayMonitor``.
  case monitors
  /// Those of them whose app shares the device identifier: the row tells which machine this is.
  case sharingMonitors

  /// Whether a peer is told.
  ///
  /// - Parameter sharesDevice: whether its app shares the device identifier; an admin counts as if it did.
  package func includes(_ peer: Peer, sharesDevice: Bool) -> Bool {
    switch self {
    case .everybody: true
    case .monitors: peer.mayMonitor
    case .sharingMonitors: peer.mayMonitor && sharesDevice
    }
  }
}
