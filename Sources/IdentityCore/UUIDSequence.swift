/// The versions of UUID that a client can request.
package enum UUIDVersion: UInt64, Sendable {
  /// All random (RFC 9562, section 5.4).
  case random = 4
  /// Milliseconds since 1970, then random bits. Sorts by time (RFC 9562, section 5.7).
  case timeOrdered = 7
}

/// Generates version 7 UUIDs that strictly ascend across all callers, even if the clock steps back.
///
/// The order comes from 48 bits of time, which never step back, and an 18-bit counter: the "fixed bit-length dedicated
/// counter" of RFC 9562, section 6.2, method 1. The other 56 bits are random in each UUID, so that a caller cannot
/// compute the UUIDs of other callers from its own.
package struct UUIDSequence: Sendable {
  /// The counter takes the 12 bits after the version and the first 6 bits after the variant.
  private static let counterBits: UInt64 = 18
  private static let lowCounterBits = counterBits - 12
  private static let randomBits = 62 - lowCounterBits

  private var milliseconds: UInt64 = 0
  private var counter: UInt64 = 0
  private var last = UUID.zero

  /// Creates a sequence. The first UUID has the time of the first call.
  package init() {}

  /// Continues after a UUID that an earlier run handed out, independently of the clock.
  package mutating func resume(after uuid: UUID) {
    guard uuid != .zero, last == .zero || (last.high, last.low) < (uuid.high, uuid.low) else { return }
    last = uuid
    milliseconds = max(milliseconds, uuid.high >> 16)
    let low = uuid.low >> Self.randomBits & (1 << Self.lowCounterBits - 1)
    counter = (uuid.high & 0xfff) << Self.lowCounterBits | low
  }

  /// The last UUID handed out; all zeros before the first.
  package var lastHandedOut: UUID { last }

  /// Sets a lower bound for the time in all further UUIDs.
  package mutating func resume(notBefore time: Timestamp) {
    milliseconds = max(milliseconds, UInt64(clamping: time.milliseconds) & 0xffff_ffff_ffff)
  }

  /// Returns the next UUID, which is greater than every earlier one.
  ///
  /// - Parameters:
  ///   - now: the clock's time. If the last UUID has a later time, the later time is used.
  ///   - random: 128 fresh random bits.
  package mutating func next(now: Timestamp, random: UUID) -> UUID {
    let clock = UInt64(clamping: now.milliseconds) & 0xffff_ffff_ffff
    if clock > milliseconds || last == .zero {
      milliseconds = max(clock, milliseconds)
      // Starts in the lower half of the counter's range, so that at least 131,072 more UUIDs fit in the millisecond.
      counter = random.high & (1 << (Self.counterBits - 1) - 1)
    } else {
      counter += 1
      if counter >> Self.counterBits != 0 {
        milliseconds += 1
        counter = 0
      }
    }
    let low = counter << Self.randomBits | random.low & (1 << Self.randomBits - 1)
    last = UUID(high: milliseconds << 16 | counter >> Self.lowCounterBits, low: low).stamped(version: 7)
    return last
  }
}
