import FleetSeal

/// The passwords of the account's epochs, as attempts to connect try them: a broker may have a former one.
///
/// An attempt tries a few in turn, since a broker may ban a user who tries many. The next attempt goes on with others.
struct PasswordAttempts {
  /// The greatest number of passwords in an attempt, besides the present one and the last accepted one.
  private static let mostInTurn = 3

  /// The epochs whose passwords the present attempt has not tried yet, the next one last.
  private var untried: [EpochKey] = []
  /// The number of the epoch whose password is in use; nil for none.
  private var inUse: UInt32?
  /// The number of the epoch whose password a broker has accepted last; nil if none has.
  private var accepted: UInt32?
  /// How many passwords were tried since one was accepted.
  private var tried = 0

  /// Starts an attempt with the passwords of some epochs, of which the first one is the present one.
  mutating func begin(_ epochs: [EpochKey]) {
    let former = epochs.dropFirst().filter { $0.number == accepted }
    let others = Array(epochs.dropFirst().filter { $0.number != accepted })
    let start = others.isEmpty ? 0 : tried % others.count
    let turn = (others[start...] + others[..<start]).prefix(Self.mostInTurn)
    tried += turn.count
    untried = (epochs.prefix(1) + former + turn).reversed()
  }

  /// Whether the present attempt has another password.
  var hasNext: Bool { !untried.isEmpty }

  /// Returns the epoch whose password is used now; nil for none.
  mutating func next() -> EpochKey? {
    let next = untried.popLast()
    inUse = next?.number
    return next
  }

  /// Notes that the broker has accepted the password in use.
  mutating func noteAccepted() { (accepted, tried, untried) = (inUse, 0, []) }

  /// Ends the attempt, and the use of its password.
  mutating func end() { (untried, inUse) = ([], nil) }

  /// Returns the one of some epochs whose password a broker has accepted last, or else the first one.
  func accepted(among epochs: [EpochKey]) -> EpochKey? { epochs.first { $0.number == accepted } ?? epochs.first }

  /// Returns whether the password in use is not that of an epoch.
  func isOther(than epoch: EpochKey) -> Bool { inUse.map { $0 != epoch.number } ?? false }
}
