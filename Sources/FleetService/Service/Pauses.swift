import LinuxSystem
import Systemd

/// The pauses of the service before actions of its own, besides the deadlines of the rules.
///
/// The kernel also tells of addresses that are only refreshed, so attempts because of a network have pauses between them.
final class Pauses {
  /// A pause, named for the action after it. There is at most one of each.
  enum Pause {
    /// The connection with identityd is made if there is none, and the state is read.
    case start
    /// The messages that could not be stored are tried again.
    case storing
    /// The rules are told the time.
    case date
    /// The rules are told of a network.
    case network
    /// The proof keys of this device are read. The time at which a former key leaves the set, and another issuer of the
    /// configuration, have no events.
    case proofKeys

    /// The length in milliseconds, where it is the same each time.
    fileprivate var length: Int {
      switch self {
      case .start, .network: 0
      case .storing: 5_000
      case .date: 86_400_000
      case .proofKeys: 300_000
      }
    }
  }

  /// The shortest time between two attempts because of a network, in microseconds.
  private static let networkRest: UInt64 = 60_000_000

  private let deadlines = Deadlines<Pause>()
  /// Nil if the system refuses it, and then a pause before an attempt to connect takes its time.
  private let networks = try? NetworkWatch()
  private var source: EventSource?
  /// The end of the rest after an attempt because of a network, in microseconds.
  private var networkRestEnd: UInt64 = 0

  /// Starts the pauses, and the watch for networks.
  ///
  /// - Parameter passed: called with the pauses that are over, earliest first.
  func start(_ loop: EventLoop, passed: @escaping ([Pause]) -> Void) throws(SystemdError) {
    try deadlines.start(loop, passed: passed)
    source = try networks.map { networks throws(SystemdError) in
      try loop.watch(readable: networks.descriptor.number) { [unowned self] in
        guard networks.hasAppeared() else { return }
        let now = Clock.monotonicMicroseconds
        begin(.network, Int((max(networkRestEnd, now) - now) / 1_000))
      }
    }
  }

  /// Begins a pause, in place of the earlier one before the same action.
  ///
  /// - Parameter length: the length in milliseconds; nil for that of each such pause.
  func begin(_ pause: Pause, _ length: Int? = nil) {
    let length = length ?? pause.length
    deadlines.set(pause, after: length...length)
    deadlines.arm()
  }

  /// Begins a pause, unless there is one before the same action.
  func beginOnce(_ pause: Pause) { if !deadlines.isSet(pause) { begin(pause) } }

  /// Notes an attempt because of a network.
  func noteNetworkAttempt() { networkRestEnd = Clock.monotonicMicroseconds + Self.networkRest }
}
