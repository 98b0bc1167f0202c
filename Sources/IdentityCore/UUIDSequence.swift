/// The versions of UUID that can be asked for.
package enum UUIDVersion: UInt64, Sendable {
  /// All random (RFC 9562, section 5.4).
  case random = 4
  /// Milliseconds since 1970, then random; sorts by time (RFC 9562, section 5.7).
  case timeOrdered = 7
}

/// Hands out version 7 UUIDs that strictly ascend over all callers, whatever the clock does.
///
/// The order comes from 48 bits of time, which never step back, and from an 18-bit counter behind them: "fixed bit-length
/// dedicated counter" of RFC 9562, section 6.2, method 1. The other 56 bits are random each time, so a caller cannot compute
/// the UUIDs that another one got beside its own.
package struct UUIDSequence: Sendable {
  /// The counter: the 12 bits behind the version, and the first bits behind the variant.
  private static let counterBits: UInt64 = 18
  private static let lowCounterBits = counterBits - 12
  private static let randomBits = 62 - lowCounterBits

  private var milliseconds: UInt64 = 0
  private var counter: UInt64 = 0
  private var last = UUID.zero

  /// Starts a sequence: its first UUID has the time of the first call.
  package init() {}

  /// Goes on behind a UUID that an earlier run handed out, whatever the clock says now.
  package mutating func resume(after uuid: UUID) {
    guard uuid != .zero, last == .zero || (last.high, last.low) < (uuid.high, uuid.low) else { return }
    last = uuid
    milliseconds = max(milliseconds, uuid.high >> 16)
    let low = uuid.low >> Self.randomBits & (1 << Self.lowCounterBits - 1)
    counter = (uuid.high & 0xfff) << Self.lowCounterBits | low
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
      // The lower half: 131,072 more fit into this millisecond.
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
