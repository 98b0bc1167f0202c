import IdentityCore
import LinuxSystem

/// What the clock says, and what tells whether that can be.
struct ClockFacts: Sendable {
  /// The wall clock.
  let now: Timestamp
  /// Whether something keeps it right; nil where that may not be asked.
  let isSynchronized: Bool?
  /// When the last event happened; nil where there is none, or it is not for this peer.
  let lastEvent: Timestamp?

  /// How far behind the last event the clock may be: a time server moves it a little.
  static let toleranceMilliseconds: Int64 = 60_000

  /// Takes what a test made up.
  init(now: Timestamp, isSynchronized: Bool?, lastEvent: Timestamp?) {
    self.now = now
    self.isSynchronized = isSynchronized
    self.lastEvent = lastEvent
  }

  /// Looks.
  init(_ examination: Examination) {
    self.init(
      now: Timestamp(milliseconds: Clock.realtimeMilliseconds), isSynchronized: Clock.isSynchronized,
      lastEvent: examination.answers?.lastEvent)
  }

  /// What that means.
  var finding: Finding {
    var found: [Finding.Fault] = []
    let keep = Remedy.root("timedatectl", "set-ntp", "true")
    if let lastEvent, now.milliseconds + Self.toleranceMilliseconds < lastEvent.milliseconds {
      found.append(.failure("the clock says \(now), and the last event happened at \(lastEvent)", keep))
    }
    if let released = Timestamp(parsing: Text("\(Version.released)T00:00:00.000Z")), now < released {
      found.append(.warning("the clock says \(now), and this release is of \(Version.released)", keep))
    }
    if found.isEmpty, isSynchronized == false {
      found.append(.warning("nothing keeps the clock right: it is not synchronized", keep))
    }
    return Finding(
      found,
      facts: facts(
        ("now", "\(now)"), ("released", Version.released), ("last-event", lastEvent.map { "\($0)" }),
        ("synchronized", isSynchronized.map { $0 ? "yes" : "no" })))
  }
}
