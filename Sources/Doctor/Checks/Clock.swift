import IdentityCore
import LinuxSystem

/// The clock, and the facts that show whether it can be right.
struct ClockFacts: Sendable {
  /// The time of the wall clock.
  let now: Timestamp
  /// Whether a time source keeps the clock synchronized; nil if this process may not ask the kernel.
  let isSynchronized: Bool?
  /// The time of the last event; nil if there is none, or if this user is not an admin.
  let lastEvent: Timestamp?

  /// The tolerated lag of the clock behind the last event, in milliseconds. A time server may set the clock
  /// back a little.
  static let toleranceMilliseconds: Int64 = 60_000

  /// Creates facts for a test.
  init(now: Timestamp, isSynchronized: Bool?, lastEvent: Timestamp?) {
    self.now = now
    self.isSynchronized = isSynchronized
    self.lastEvent = lastEvent
  }

  /// Gathers the facts.
  init(_ examination: Examination) {
    self.init(
      now: Timestamp(milliseconds: Clock.realtimeMilliseconds), isSynchronized: Clock.isSynchronized,
      lastEvent: examination.answers?.lastEvent)
  }

  /// The judgement of the facts.
  var finding: Finding {
    var found: [Finding.Fault] = []
    let keep = Remedy.root("timedatectl", "set-ntp", "true")
    if let lastEvent, now.milliseconds + Self.toleranceMilliseconds < lastEvent.milliseconds {
      found.append(.failure("the clock shows \(now), but the last event happened at \(lastEvent)", keep))
    }
    if let released = Timestamp(parsing: Text("\(Version.released)T00:00:00.000Z")), now < released {
      found.append(.warning("the clock shows \(now), but this release is from \(Version.released)", keep))
    }
    if found.isEmpty, isSynchronized == false {
      found.append(.warning("the clock is not synchronized", keep))
    }
    return Finding(
      found,
      facts: facts(
        ("now", "\(now)"), ("released", Version.released), ("last-event", lastEvent.map { "\($0)" }),
        ("synchronized", isSynchronized.map { $0 ? "yes" : "no" })))
  }
}
