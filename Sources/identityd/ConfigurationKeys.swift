import ConfigurationFiles
import IdentityCore
import IdentityServer
import IdentityStore

extension Configuration: ProgramConfiguration {
  /// The settings of `identityd.conf`: the complete table, which the manual is tested against. An empty MonitorGroup=
  /// means no group.
  static let keys: [ConfigurationKey<Configuration>] = [
    .choice("Device", "OnMachineChange", \.onMachineChange),
    .choice("Device", "OnHardwareChange", \.onHardwareChange),
    ConfigurationKey(section: "Apps", name: "Directories", allowed: "absolute paths, separated by spaces") {
      result, value in
      let paths = value.split(separator: " ").map(String.init)
      guard paths.allSatisfy({ $0.utf8.first == UInt8(ascii: "/") }) else { return false }
      // A list grows with each line, and an empty value clears it (systemd.syntax(7)).
      result.appDirectories = paths.isEmpty ? [] : result.appDirectories + paths
      return true
    },
    .number("Apps", "ForgetUnused", 0...100_000, \.forgetUnusedDays),
    .number("Apps", "ForgetSuspended", 0...100_000, \.forgetSuspendedDays),
    ConfigurationKey(section: "Access", name: "AdminGroup", allowed: "the name of a group") { result, value in
      result.adminGroup = value.isEmpty ? nil : value
      return !value.contains(" ")
    },
    ConfigurationKey(section: "Access", name: "MonitorGroup", allowed: "the name of a group") { result, value in
      // Unlike elsewhere, an empty value is not the default: it is the way to have no monitors at all.
      result.monitorGroup = value.isEmpty ? nil : value
      return !value.contains(" ")
    },
    .choice("Access", "Containers", \.containers),
    .choice("Credentials", "Missing", \.missingCredential),
    ConfigurationKey(
      section: "Proof", name: "Issuer", allowed: "an https address or a URN, with %d in place of the device identifier"
    ) { result, value in
      result.proofs.issuer = value.isEmpty ? nil : Text(value)
      return value.isEmpty || value.isIssuer
    },
    ConfigurationKey(
      section: "Proof", name: "TrustDomain", allowed: "lower-case letters, digits, '.', '-' and '_', at most 255"
    ) { result, value in
      result.proofs.trustDomain = value.isEmpty ? nil : Text(value)
      return value.isEmpty || value.isTrustDomain
    },
    .choice("Proof", "Key", \.proofs.place),
    .number("Proof", "Overlap", 0...31_536_000, \.proofOverlap),
    ConfigurationKey(
      section: "Proof", name: "Audience",
      allowed: "a name and an audience, then a lifetime of 60 to 3600 seconds or nothing, at most 64 times"
    ) { result, value in
      // A list grows with each line, and an empty value clears it (systemd.syntax(7)).
      guard !value.isEmpty else {
        result.proofs.audiences = [:]
        return true
      }
      let words = value.split(separator: " ").map(String.init)
      let lifetime = words.count > 2 ? Int64(words[2]) : ProofRequest.standardLifetime
      guard (2...3).contains(words.count), let lifetime, ProofRequest.lifetimes.contains(lifetime),
        words[1].utf8.count <= Bound.nameLength
      else { return false }
      result.proofs.audiences[Text(words[0])] = ProofRequest(audience: Text(words[1]), lifetime: lifetime)
      return result.proofs.audiences.count <= Bound.proofAudiences
    },
    .number("Limits", "Connections", 32...1_000_000, \.limits.connections.total),
    .number("Limits", "ConnectionsPerUser", 1...1_000_000, \.limits.connections.perUser),
    .number("Limits", "ReservedConnections", 1...1_000, \.limits.connections.reserved),
    .number("Limits", "Reserve", 0...50, \.limits.reservePercent),
    .size("Limits", "LineLength", 4_096...98_304, "4K to 96K", \.limits.lineLength),
    .number("Limits", "ChangesPerConnection", 1...1_000_000, \.limits.changesPerConnection),
    .number("Limits", "ChangesPerUser", 1...1_000_000, \.limits.changesPerUser),
    .number("Limits", "ChangesPerCommit", 1...1_000_000, \.limits.changesPerCommit),
    .size("Limits", "OutputPerConnection", 4_096...1_073_741_824, "4K to 1G", \.limits.outputPerConnection),
    .size("Limits", "OutputPerUser", 4_096...1_073_741_824, "4K to 1G", \.limits.outputPerUser),
    .number("Limits", "Subscribers", 0...1_000_000, \.limits.subscribers),
    .number("Limits", "SubscribersPerUser", 0...1_000_000, \.limits.subscribersPerUser),
    .number("Limits", "Items", 0...100_000_000, \.limits.items.total.items),
    .size("Limits", "ItemBytes", 1_024...1_099_511_627_776, "1K to 1024G", \.limits.items.total.bytes),
    .number("Limits", "ItemsPerApp", 1...1_000_000, \.limits.items.perApp.items),
    .size("Limits", "ItemBytesPerApp", 1_024...1_073_741_824, "1K to 1G", \.limits.items.perApp.bytes),
    .number("Limits", "ItemsPerUser", 1...1_000_000, \.limits.items.perUser.items),
    .size("Limits", "ItemBytesPerUser", 1_024...1_073_741_824, "1K to 1G", \.limits.items.perUser.bytes),
    .number("Limits", "Apps", 0...1_000_000, \.limits.apps),
    .number("Limits", "AppsPerUser", 1...1_000_000, \.limits.appsPerUser),
    .number("Limits", "History", 64...10_000_000, \.limits.history),
    .number("Limits", "HistoryPerUser", 8...1_000_000, \.limits.historyPerUser),
    .size("Store", "CheckpointSize", 65_536...1_073_741_824, "64K to 1G", \.store.checkpointSize),
    .number("Loop", "PollMicroseconds", 0...1_000, \.pollMicroseconds),
    ConfigurationKey(section: "Log", name: "Level", allowed: LogLevel.allCases.map(\.name).joined(separator: ", ")) {
      result, value in
      guard let level = value.isEmpty ? Configuration().logLevel : LogLevel(name: value) else { return false }
      result.logLevel = level
      return true
    },
  ]
}

extension String {
  /// Whether the text may be the issuer of proofs: a URI of printable ASCII that needs no escape in JSON. Relying parties
  /// fetch the configuration below an https address (OpenID Connect Discovery 1.0, section 4).
  fileprivate var isIssuer: Bool {
    (hasPrefix("https://") || hasPrefix("urn:")) && utf8.count <= 255 && Text(self).isPlainInJSON
  }

  /// Whether the text is a trust domain (SPIFFE-ID, section 2.1).
  fileprivate var isTrustDomain: Bool {
    utf8.count <= 255
      && utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
          UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
