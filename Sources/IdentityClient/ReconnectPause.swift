/// How long to wait between two attempts to reach a daemon that is gone: longer each time, and never quite the same, so
/// that many clients do not come back all at once.
struct ReconnectPause {
  /// The first, in microseconds: a restart takes about as long.
  static let shortest: UInt64 = 20_000
  /// The longest: nobody should notice by the clock that the daemon is back.
  static let longest: UInt64 = 1_000_000

  private var next = shortest

  /// The pause before the next attempt, in microseconds: half of it is left to chance.
  mutating func take(using generator: inout some RandomNumberGenerator) -> UInt64 {
    defer { next = min(next * 2, Self.longest) }
    return UInt64.random(in: (next / 2)...next, using: &generator)
  }

  /// Begins anew: the daemon was there.
  mutating func reset() { next = Self.shortest }
}
