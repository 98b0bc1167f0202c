import FleetCore
import IdentityCore

extension FleetConfiguration {
  /// The durations for the rules.
  var settings: Settings {
    Settings(spread: spread * 1_000, heartbeat: heartbeat * 1_000, resync: resync * 1_000, presence: presence)
  }
}

extension TwinWatch.Copy {
  /// The answer for identityd to the question whether this machine is the copy.
  var verdict: CopyVerdict {
    switch self {
    case .yes: .yes
    case .no: .no
    case .unknown: .unknown
    }
  }
}
