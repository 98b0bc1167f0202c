import FleetCore
import IdentityCore

extension FleetConfiguration {
  /// The durations for the rules.
  var settings: Settings {
    Settings(spread: spread * 1_000, heartbeat: heartbeat * 1_000, resync: resync * 1_000, presence: presence)
  }

  /// The settings that a connection depends on. The presence is among them, because the connection has a will for it.
  var access: FleetConfiguration {
    var access = FleetConfiguration()
    (access.brokers, access.user, access.keepAlive, access.presence) = (brokers, user, keepAlive, presence)
    (access.authorities, access.certificate, access.certificateKey) = (authorities, certificate, certificateKey)
    return access
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
