import IdentityCore
import IdentityServer
import IdentityStore

/// One setting of `identityd.conf`. ``all`` is the complete table, and the manual is tested against it.
struct ConfigurationKey: Sendable {
  /// The section, without brackets.
  let section: String
  /// The name, in systemd's spelling.
  let name: String
  /// The allowed values, as a text for people.
  let allowed: String
  /// Stores a value, and returns false if it is not allowed. An empty value means the default, except that an empty
  /// MonitorGroup= means no group.
  let set: @Sendable (inout Configuration, String) -> Bool

  static let all: [ConfigurationKey] = [
    choice("Device", "OnMachineChange", \.onMachineChange),
    choice("Device", "OnHardwareChange", \.onHardwareChange),
    ConfigurationKey(section: "Apps", name: "Directories", allowed: "absolute paths, separated by spaces") {
      result, value in
      let paths = value.split(separator: " ").map(String.init)
      guard paths.allSatisfy({ $0.utf8.first == UInt8(ascii: "/") }) else { return false }
      // A list grows with each line, and an empty value clears it (systemd.syntax(7)).
      result.appDirectories = paths.isEmpty ? [] : result.appDirectories + paths
      return true
    },
    number("Apps", "ForgetUnused", 0...100_000, \.forgetUnusedDays),
    ConfigurationKey(section: "Access", name: "AdminGroup", allowed: "the name of a group") { result, value in
      result.adminGroup = value.isEmpty ? nil : value
      return !value.contains(" ")
    },
    ConfigurationKey(section: "Access", name: "MonitorGroup", allowed: "the name of a group") { result, value in
      // Unlike elsewhere, an empty value is not the default: it is the way to have no monitors at all.
      result.monitorGroup = value.isEmpty ? nil : value
      return !value.contains(" ")
    },
    choice("Access", "Containers", \.containers),
    number("Limits", "Connections", 32...1_000_000, \.limits.connections),
    number("Limits", "ConnectionsPerUser", 1...1_000_000, \.limits.connectionsPerUser),
    number("Limits", "ReservedConnections", 1...1_000, \.limits.reservedConnections),
    number("Limits", "Reserve", 0...50, \.limits.reservePercent),
    size("Limits", "LineLength", 4_096...65_536, "4K to 64K", \.limits.lineLength),
    number("Limits", "ChangesPerConnection", 1...1_000_000, \.limits.changesPerConnection),
    number("Limits", "ChangesPerUser", 1...1_000_000, \.limits.changesPerUser),
    number("Limits", "ChangesPerCommit", 1...1_000_000, \.limits.changesPerCommit),
    size("Limits", "OutputPerConnection", 4_096...1_073_741_824, "4K to 1G", \.limits.outputPerConnection),
    size("Limits", "OutputPerUser", 4_096...1_073_741_824, "4K to 1G", \.limits.outputPerUser),
    number("Limits", "Subscribers", 0...1_000_000, \.limits.subscribers),
    number("Limits", "SubscribersPerUser", 0...1_000_000, \.limits.subscribersPerUser),
    number("Limits", "Items", 0...100_000_000, \.limits.items),
    size("Limits", "ItemBytes", 1_024...1_099_511_627_776, "1K to 1024G", \.limits.itemBytes),
    number("Limits", "ItemsPerApp", 1...1_000_000, \.limits.itemsPerApp),
    size("Limits", "ItemBytesPerApp", 1_024...1_073_741_824, "1K to 1G", \.limits.itemBytesPerApp),
    number("Limits", "ItemsPerUser", 1...1_000_000, \.limits.itemsPerUser),
    size("Limits", "ItemBytesPerUser", 1_024...1_073_741_824, "1K to 1G", \.limits.itemBytesPerUser),
    number("Limits", "Apps", 0...1_000_000, \.limits.apps),
    number("Limits", "AppsPerUser", 1...1_000_000, \.limits.appsPerUser),
    number("Limits", "History", 64...10_000_000, \.limits.history),
    number("Limits", "HistoryPerUser", 8...1_000_000, \.limits.historyPerUser),
    size("Store", "CheckpointSize", 65_536...1_073_741_824, "64K to 1G", \.store.checkpointSize),
    number("Loop", "PollMicroseconds", 0...1_000, \.pollMicroseconds),
    ConfigurationKey(section: "Log", name: "Level", allowed: LogLevel.allCases.map(\.name).joined(separator: ", ")) {
      result, value in
      guard let level = value.isEmpty ? Configuration().logLevel : LogLevel(name: value) else { return false }
      result.logLevel = level
      return true
    },
  ]

  private static func choice<Value: RawRepresentable<String> & CaseIterable & SendableMetatype>(
    _ section: String, _ name: String, _ path: any WritableKeyPath<Configuration, Value> & Sendable
  ) -> ConfigurationKey {
    let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
    return ConfigurationKey(section: section, name: name, allowed: allowed) { result, value in
      guard let choice = value.isEmpty ? Configuration()[keyPath: path] : Value(rawValue: value) else { return false }
      result[keyPath: path] = choice
      return true
    }
  }

  private static func number(
    _ section: String, _ name: String, _ range: ClosedRange<Int>,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable
  ) -> ConfigurationKey {
    ConfigurationKey(section: section, name: name, allowed: "\(range.lowerBound) to \(range.upperBound)") {
      result, value in
      guard let number = value.isEmpty ? Configuration()[keyPath: path] : decimal(value), range.contains(number) else {
        return false
      }
      result[keyPath: path] = number
      return true
    }
  }

  private static func size(
    _ section: String, _ name: String, _ range: ClosedRange<Int>, _ allowed: String,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable
  ) -> ConfigurationKey {
    ConfigurationKey(section: section, name: name, allowed: "\(allowed), in bytes or with K, M or G") { result, value in
      guard let size = value.isEmpty ? Configuration()[keyPath: path] : bytes(value), range.contains(size) else {
        return false
      }
      result[keyPath: path] = size
      return true
    }
  }

  /// Parses digits, without sign or white space.
  private static func decimal(_ text: String) -> Int? {
    text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") } ? Int(text) : nil
  }

  /// Parses a number of bytes. The suffixes K, M and G mean powers of 1,024, as in systemd.
  private static func bytes(_ text: String) -> Int? {
    let factor =
      switch text.utf8.last {
      case UInt8(ascii: "K"): 1_024
      case UInt8(ascii: "M"): 1_048_576
      case UInt8(ascii: "G"): 1_073_741_824
      default: 1
      }
    guard let number = decimal(factor == 1 ? text : String(text.dropLast())) else { return nil }
    let (product, overflows) = number.multipliedReportingOverflow(by: factor)
    return overflows ? nil : product
  }
}
