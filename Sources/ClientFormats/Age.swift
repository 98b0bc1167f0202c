import IdentityCore

/// The time since an event, in the largest unit that fits: `now`, `5min ago`, `3h ago`, `12d ago` or `2y ago`.
enum Age {
  /// Returns the age of a time; nil for a time in the future, such as that of another device with a wrong clock.
  static func text(of time: Timestamp, at now: Timestamp) -> String? {
    let (milliseconds, overflows) = now.milliseconds.subtractingReportingOverflow(time.milliseconds)
    guard !overflows, milliseconds >= 0 else { return nil }
    let minutes = milliseconds / 60_000
    return switch minutes {
    case 0: "now"
    case ..<60: "\(minutes)min ago"
    case ..<1_440: "\(minutes / 60)h ago"
    case ..<525_600: "\(minutes / 1_440)d ago"
    default: "\(minutes / 525_600)y ago"
    }
  }
}
