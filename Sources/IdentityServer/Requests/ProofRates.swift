import IdentityCore

/// The rate at which each principal may have proofs: ``Bound/proofsPerSecond``, with ``Bound/proofsAtOnce`` at once.
///
/// The rate is kept as the time at which the last proof would have been due at a constant rate (the generic cell rate
/// algorithm of ITU-T I.371).
struct ProofRates {
  private var due: [Principal: UInt64] = [:]
  private static let interval = 1_000_000 / UInt64(Bound.proofsPerSecond)
  private static let burst = interval * UInt64(Bound.proofsAtOnce - 1)

  /// Charges a principal with a proof.
  ///
  /// - Parameter now: the time in microseconds of the monotonic clock.
  /// - Throws: `unavailable`, with the time to wait.
  mutating func charge(_ principal: Principal, at now: UInt64) throws(Refusal) {
    let last = max(due[principal] ?? 0, now)
    guard last - now <= Self.burst else {
      let wait = (last - now - Self.burst + 999) / 1_000
      throw .unavailable(
        "\(principal) has had \(Bound.proofsPerSecond) proofs a second; try again in \(wait) ms, or keep a proof until it "
          + "expires")
    }
    if due.count >= Bound.proofRates { due = due.filter { $0.value > now } }
    due[principal] = last + Self.interval
  }
}
