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
  /// The service that can keep the clock synchronized.
  let service: TimeService

  /// The tolerated lag of the clock behind the last event, in milliseconds. A time server may set the clock
  /// back a little.
  static let toleranceMilliseconds: Int64 = 60_000

  init(now: Timestamp, isSynchronized: Bool?, lastEvent: Timestamp?, service: TimeService = .installed) {
    self.now = now
    self.isSynchronized = isSynchronized
    self.lastEvent = lastEvent
    self.service = service
  }

  /// Gathers the facts.
  init(_ examination: Examination) {
    self.init(
      now: Timestamp(milliseconds: Clock.realtimeMilliseconds), isSynchronized: Clock.isSynchronized,
      lastEvent: examination.answers?.lastEvent, service: .present)
  }

  /// The judgement of the facts.
  var finding: Finding {
    var found: [Finding.Fault] = []
    if let lastEvent, now.milliseconds + Self.toleranceMilliseconds < lastEvent.milliseconds {
      found.append(fault(false, "the clock shows \(now), but the last event happened at \(lastEvent)"))
    }
    if let released = Timestamp(parsing: Text("\(Version.released)T00:00:00.000Z")), now < released {
      found.append(fault(true, "the clock shows \(now), but this release is from \(Version.released)"))
    }
    if found.isEmpty, isSynchronized == false {
      found.append(fault(true, "the clock is not synchronized"))
    }
    return Finding(
      found,
      facts: facts(
        ("now", "\(now)"), ("released", Version.released), ("last-event", lastEvent.map { "\($0)" }),
        ("synchronized", isSynchronized.map { $0 ? "yes" : "no" })))
  }

  private func fault(_ isWarning: Bool, _ cause: String) -> Finding.Fault {
    Finding.Fault(result: isWarning ? .warning : .failed, cause: cause + service.lack, mend: service.mend)
  }
}
