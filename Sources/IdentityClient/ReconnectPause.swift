/// Exponential back-off with jitter between attempts to reach a daemon that is gone.
///
/// The jitter keeps many clients from returning at the same moment.
struct ReconnectPause {
  /// The first pause in microseconds, about as long as a restart of the daemon.
  static let shortest: UInt64 = 20_000
  /// The longest pause in microseconds, short enough that the return of the daemon is noticed without delay.
  static let longest: UInt64 = 1_000_000

  /// The upper bound of the pause before the next attempt, in microseconds.
  private var bound = shortest

  /// Returns the pause before the next attempt in microseconds, and doubles the one after it. Half of the pause is
  /// random.
  mutating func next(using generator: inout some RandomNumberGenerator) -> UInt64 {
    defer { bound = min(bound * 2, Self.longest) }
    return UInt64.random(in: (bound / 2)...bound, using: &generator)
  }

  /// Starts again with the shortest pause, because the daemon was reached.
  mutating func reset() { bound = Self.shortest }
}
