/// The versions of UUID that can be asked for.
package enum UUIDVersion: UInt64, Sendable {
  /// All random (RFC 9562, section 5.4).
  case random = 4
  /// Milliseconds since 1970, then random; sorts by time (RFC 9562, section 5.7).
  case timeOrdered = 7
}

/// Hands out version 7 UUIDs that strictly ascend over all callers, whatever the clock does.
///
/// The 48 bits of time never step back, and within one value of them the 74 random bits count up by a random step:
/// "monotonic random" of RFC 9562, section 6.2, method 2.
package struct UUIDSequence: Sendable {
  private var milliseconds: UInt64 = 0
  private var last = UUID.zero

  /// Starts a sequence: its first UUID has the time of the first call.
  package init() {}

  /// Goes on behind a UUID that an earlier run handed out, whatever the clock says now.
  package mutating func resume(after uuid: UUID) {
    guard uuid != .zero, last == .zero || (last.high, last.low) < (uuid.high, uuid.low) else { return }
    last = uuid
    milliseconds = max(milliseconds, uuid.high >> 16)
  }

  /// The last one; all zeros before the first.
  package var lastHandedOut: UUID { last }

  /// Hands out nothing that looks older than this moment.
  package mutating func resume(notBefore time: Timestamp) {
    milliseconds = max(milliseconds, UInt64(clamping: time.milliseconds) & 0xffff_ffff_ffff)
  }

  /// The next UUID, greater than every one before it.
  ///
  /// - Parameters:
  ///   - now: the clock's time. Where it is not later than the last one used, the last one stays in force.
  ///   - random: 128 fresh random bits.
  package mutating func next(now: Timestamp, random: UUID) -> UUID {
    let clock = UInt64(clamping: now.milliseconds) & 0xffff_ffff_ffff
    if clock > milliseconds || last == .zero {
      milliseconds = max(clock, milliseconds)
      last = assembled(random: random)
    } else {
      last = incremented(by: random.low & 0xffff_ffff | 1)
    }
    return last
  }

  private func assembled(random: UUID) -> UUID {
    // The top random bit starts at 0, so that a millisecond has room for at least 2^41 steps.
    UUID(high: milliseconds << 16 | random.high & 0x7ff, low: random.low).stamped(version: 7)
  }

  /// Counts the 12 + 62 bits behind the time up; past their end the time itself moves on.
  private mutating func incremented(by step: UInt64) -> UUID {
    let low = (last.low & 0x3fff_ffff_ffff_ffff) + step
    var high = last.high & 0xfff
    if low >> 62 != 0 { high += 1 }
    if high >> 12 != 0 {
      milliseconds += 1
      high = 0
    }
    return UUID(high: milliseconds << 16 | high, low: low).stamped(version: 7)
  }
}
