package import IdentityCore

/// The peers that may see a row of `status` or a metric of `stats`.
///
/// A total reveals something about other apps: it grows by the length of another app's secret. So only monitors may see
/// a row, unless the declaration of the row says otherwise.
package enum RowAudience: CaseIterable, Sendable {
  /// Every peer, for rows about the daemon's health and the protocol.
  case everybody
  /// Peers that may monitor the daemon; see ``Peer/mayMonitor``.
  case monitors
  /// Monitors whose app shares the device identifier, for rows that reveal the identity of the machine.
  case sharingMonitors

  /// Returns whether a peer may see the row.
  ///
  /// - Parameter sharesDevice: whether the peer's app shares the device identifier. True for an admin.
  package func includes(_ peer: Peer, sharesDevice: Bool) -> Bool {
    switch self {
    case .everybody: true
    case .monitors: peer.mayMonitor
    case .sharingMonitors: peer.mayMonitor && sharesDevice
    }
  }
}
