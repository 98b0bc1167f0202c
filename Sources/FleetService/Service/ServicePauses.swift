import FleetCore
import IdentityCore
import LinuxSystem
import Systemd

// Actions of the service after a pause of its own, besides the deadlines of the rules.
extension Service {
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
    /// The proof keys of this device are read.
    case proofKeys
    /// The trial of the brokers ends, because its client has gone.
    case trial
  }

  /// A day, in milliseconds.
  private static let day = 86_400_000
  /// The pause between two looks for proof keys, in milliseconds. The time at which a former key leaves the set, and
  /// another issuer of the configuration, have no events.
  static let proofKeysPause = 300_000

  /// Begins a pause of some milliseconds, in place of the earlier one before the same action.
  func wait(for pause: Pause, _ length: Int) {
    pauses?.set(pause, after: length...length)
    pauses?.arm()
  }

  /// Acts after a pause.
  func act(after pause: Pause) throws(DaemonFault) {
    switch pause {
    case .start: try connect()
    case .storing: retryStoring()
    case .date: try tellDate()
    case .proofKeys: try readProofKeys()
    case .trial: trial = nil
    case .network:
      switch fleet.phase {
      case .waiting, .refused: break
      case .noAccount, .noKeys, .connecting, .reading, .joining, .live, .ended: return
      }
      network.noteAttempt()
      try take(.reconsider)
    }
  }

  /// Tells the rules the time, now and once a day.
  func tellDate() throws(DaemonFault) {
    wait(for: .date, Self.day)
    try take(.dated(Timestamp(milliseconds: Clock.realtimeMilliseconds)))
  }
}

/// The news of networks. The kernel also tells of addresses that are only refreshed, so attempts because of a network
/// have pauses between them.
struct NetworkNews {
  /// The shortest time between two attempts, in milliseconds.
  private static let pause: UInt64 = 60_000

  /// Nil if the system refuses it, and then a pause before an attempt to connect takes its time.
  private let networks = try? NetworkWatch()
  private var source: EventSource?
  /// The end of the pause after an attempt, in microseconds.
  private var pauseEnd: UInt64 = 0

  /// Starts to watch.
  ///
  /// - Parameter appeared: called when a network has appeared.
  mutating func watch(_ loop: EventLoop, appeared: @escaping () -> Void) throws(SystemdError) {
    source = try networks.map { networks throws(SystemdError) in
      try loop.watch(readable: networks.descriptor.number) { if networks.hasAppeared() { appeared() } }
    }
  }

  /// The time in milliseconds until an attempt is allowed.
  var rest: Int {
    let now = Clock.monotonicMicroseconds
    return Int((max(pauseEnd, now) - now) / 1_000)
  }

  /// Notes an attempt because of a network.
  mutating func noteAttempt() { pauseEnd = Clock.monotonicMicroseconds + Self.pause * 1_000 }
}
