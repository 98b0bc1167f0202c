import IdentityCore
import IdentityWire

/// The refusal of a whole connection, as opposed to that of a request.
struct ConnectionRefusal: Error {
  /// The reason of a refusal. The raw values appear in `stats`.
  enum Reason: String, CaseIterable {
    /// All connections are in use.
    case connections
    /// The principal has as many connections as it may have now.
    case principal
    /// The daemon is out of descriptors or memory.
    case resources
    /// The peer is in a container that is not served.
    case denied
    /// The daemon cannot tell who the peer is.
    case unattested
  }

  let reason: Reason
  /// The answer to the peer.
  let refusal: Refusal
  /// The principal of the peer; nil if unknown.
  let principal: Principal?

  init(_ reason: Reason, _ refusal: Refusal, of principal: Principal?) {
    self.reason = reason
    self.refusal = refusal
    self.principal = principal
  }

  /// Creates the refusal of a peer whose attestation failed; see ``PeerAttestation``.
  init(failedAttestation refusal: Refusal, of principal: Principal?) {
    reason =
      switch refusal {
      case .busy: .resources
      case .denied: .denied
      default: .unattested
      }
    self.refusal = refusal
    self.principal = principal
  }
}
