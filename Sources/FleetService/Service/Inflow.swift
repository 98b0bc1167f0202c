/// The messages that arrive in a connection, of which only so many are opened in a second.
///
/// The others wait in the connection's mailbox, and once that is full, TCP holds the broker back.
package struct Inflow {
  /// The treatment of the next message.
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
  /// How many seconds a broker may fill. The messages of the largest account fill 17.
  private static let patience: UInt64 = 60

  /// The beginning of the present second.
  private var began: UInt64 = 0
  private var taken = 0
  /// The number of full seconds, less those with room since.
  private var full: UInt64 = 0

  package init() {}

  /// Returns what to do about the next message.
  ///
  /// - Parameter now: the present time, in microseconds.
  package mutating func next(at now: UInt64) -> Verdict {
    let passed = (now - began) / Self.second
    if passed > 0 {
      full -= min(full, taken < Self.most ? passed : passed - 1)
      (began, taken) = (now, 0)
    }
    guard taken < Self.most else { return full <= Self.patience ? .wait(began + Self.second - now) : .flood }
    taken += 1
    if taken == Self.most { full += 1 }
    return .open
  }
}
