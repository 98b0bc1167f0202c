import FleetCore
import LinuxSystem
import Systemd

/// Deadlines, each with a name, on one timer of the loop.
final class Deadlines<Name: Hashable> {
  private var moments: [Name: UInt64] = [:]
  private var timer: EventSource?
  /// The moment for which the timer is set; nil if none.
  private var armed: UInt64?
  private var generator = SystemRandomNumberGenerator()

  /// Creates the timer. Before, deadlines may be set, but none passes.
  ///
  /// - Parameter passed: called with the deadlines that have passed and are no more, earliest first.
  func start(_ loop: EventLoop, passed: @escaping ([Name]) -> Void) throws(SystemdError) {
    timer = try loop.timer(after: 0, accuracy: 1_000) { [unowned self] in
      armed = nil
      passed(takePassed())
      arm()
    }
  }

  /// Sets a deadline after a random duration, in place of its earlier one. Returns the duration in milliseconds.
  @discardableResult func set(_ deadline: Name, after delay: Delay) -> Int {
    let duration = Int.random(in: delay, using: &generator)
    moments[deadline] = Clock.monotonicMicroseconds + UInt64(duration) * 1_000
    return duration
  }

  /// Returns whether there is a deadline.
  func isSet(_ deadline: Name) -> Bool { moments[deadline] != nil }

  /// Forgets a deadline.
  func cancel(_ deadline: Name) { moments[deadline] = nil }

  /// Forgets all deadlines.
  func cancelAll() { moments = [:] }

  private func takePassed() -> [Name] {
    let now = Clock.monotonicMicroseconds
    let passed = moments.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
    for deadline in passed { moments[deadline] = nil }
    return passed
  }

  /// Sets the timer for the earliest deadline.
  ///
  /// A timer that is set for that moment stays as it is. In libsystemd, a timer that is set anew is no longer due,
  /// so inputs in each run of the loop would put off a deadline that has passed.
  func arm() {
    let next = moments.values.min()
    guard next != armed else { return }
    armed = next
    guard let next else {
      timer?.disable()
      return
    }
    let now = Clock.monotonicMicroseconds
    timer?.arm(after: next > now ? next - now : 0)
  }
}
