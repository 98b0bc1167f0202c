import IdentityCore

/// The rate at which each payer may have proofs: ``Bound/proofsPerSecond``, with ``Bound/proofsAtOnce`` at once.
///
/// The rate is kept as the time at which the last proof would have been due at a constant rate (the generic cell rate
/// algorithm of ITU-T I.371).
struct ProofRates {
  /// The party that a proof is charged to.
  enum Payer: Hashable {
    case principal(Principal)
    /// A service of the system before its start. All of them are requested by root, and many start at once.
    case unit(Text)
  }

  private var due: [Payer: UInt64] = [:]
  private static let interval = 1_000_000 / UInt64(Bound.proofsPerSecond)
  private static let burst = interval * UInt64(Bound.proofsAtOnce - 1)

  /// Returns the time until a payer may have a proof, in microseconds.
  ///
  /// - Parameter now: the time in microseconds of the monotonic clock.
  func wait(of payer: Payer, at now: UInt64) -> UInt64 {
    let last = max(due[payer] ?? 0, now)
    return last - now > Self.burst ? last - now - Self.burst : 0
  }

  /// Charges a payer with a proof.
  mutating func charge(_ payer: Payer, at now: UInt64) {
    if due.count >= Bound.proofRates { due = due.filter { $0.value > now } }
    due[payer] = max(due[payer] ?? 0, now) + Self.interval
  }
}
