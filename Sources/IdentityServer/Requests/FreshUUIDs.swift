import IdentityCore
import LinuxSystem

/// The source of fresh UUIDs. Those of version 7 ascend strictly over all callers and over restarts of the daemon.
final class FreshUUIDs {
  private var entropy = Entropy()
  private var sequence = UUIDSequence()

  /// The last UUID of version 7.
  var lastHandedOut: UUID { sequence.lastHandedOut }

  /// Continues behind the last UUID that an earlier run handed out.
  func resume(after last: UUID) { sequence.resume(after: last) }

  /// Continues at a time that the clock may have left since.
  func resume(notBefore time: Timestamp) { sequence.resume(notBefore: time) }

  /// Forgets random bytes that another machine may have, too; see ``Entropy/forgetReserve()``.
  func forgetReserve() { entropy.forgetReserve() }

  /// Returns a new UUID.
  func next(_ version: UUIDVersion) throws(Refusal) -> UUID {
    do {
      let random = UUID(high: try entropy.next(), low: try entropy.next())
      switch version {
      case .random: return random.stamped(version: 4)
      case .timeOrdered:
        return sequence.next(now: Timestamp(milliseconds: Clock.realtimeMilliseconds), random: random)
      }
    } catch {
      throw .broken("no random bytes from the kernel: \(error)")
    }
  }
}
