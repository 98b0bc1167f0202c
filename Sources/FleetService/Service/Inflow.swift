/// The messages that arrive in a connection, of which only so many are opened in a second.
///
/// The others wait in the connection's mailbox, and once that is full, TCP holds the broker back.
package struct Inflow {
  /// What to do about the next message.
  package enum Verdict: Equatable, Sendable {
    /// Open it.
    case open
    /// Let it wait for so many microseconds.
    case wait(UInt64)
    /// End the connection, because the broker does not stop.
    case flood
  }

  /// The greatest number of messages in a second.
  package static let most = 2_000
  private static let second: UInt64 = 1_000_000
  /// How long a broker may send more than that. The messages of the largest account take a quarter of it.
  private static let patience = 60 * second

  /// The beginning of the present second.
  private var began: UInt64 = 0
  private var taken = 0
  /// The beginning of the first of the seconds in a row in which messages had to wait; nil if none had to.
  private var flooded: UInt64?

  /// Creates an inflow without messages.
  package init() {}

  /// Returns what to do about the next message.
  ///
  /// - Parameter now: the present time, in microseconds.
  package mutating func next(at now: UInt64) -> Verdict {
    if now >= began + Self.second {
      if taken < Self.most { flooded = nil }
      (began, taken) = (now, 0)
    }
    guard taken >= Self.most else {
      taken += 1
      return .open
    }
    let start = flooded ?? began
    flooded = start
    return now - start < Self.patience ? .wait(began + Self.second - now) : .flood
  }
}
