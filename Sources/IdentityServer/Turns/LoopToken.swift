/// The tokens of the readiness set for descriptors other than connections.
///
/// Their highest bit is set, which is never the case in a ``ConnectionToken``.
enum LoopToken {
  private static let mark: UInt64 = 1 << 63
  /// The listener: connections wait to be accepted.
  static let listener = mark | 1
  /// The outbox: the writer has reported.
  static let reports = mark | 2
  /// sd-event: one of its sources is due.
  static let sources = mark | 3
  /// The mounts: a file system was mounted or unmounted.
  static let mounts = mark | 4
  /// The signer: proofs are signed.
  static let proofs = mark | 5

  /// Returns the token of a watched process.
  ///
  /// A PID never reaches the highest bit and is never 0 (proc(5), pid_max), so the token differs from all others.
  static func process(_ key: PeerProcessTable.Key) -> UInt64 {
    mark | UInt64(UInt32(bitPattern: key.number)) << 32 | UInt64(key.userID)
  }

  /// Returns the process with a token; nil if the token is not that of a process.
  static func process(of token: UInt64) -> PeerProcessTable.Key? {
    let number = Int32(truncatingIfNeeded: (token & ~mark) >> 32)
    return number == 0 ? nil : .init(number: number, userID: UInt32(truncatingIfNeeded: token))
  }
}
