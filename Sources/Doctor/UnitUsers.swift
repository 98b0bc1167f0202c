import LinuxSystem

/// The users that services run as, as far as `/proc` shows them.
enum UnitUsers {
  /// The most processes that are looked at.
  private static let most = 65_536

  /// Looks at every process.
  ///
  /// - Parameter units: the names of services.
  /// - Returns: for each that runs the users of its processes, in order.
  static func running(in units: Set<String>) -> [String: [UInt32]] {
    guard !units.isEmpty, let names = try? ConfigurationAccess.names(in: "/proc") else { return [:] }
    var users: [String: Set<UInt32>] = [:]
    for name in names.lazy.filter({ UInt32($0) != nil }).prefix(most) {
      guard let group = text("/proc/\(name)/cgroup"), let unit = unit(in: group), units.contains(unit),
        let user = text("/proc/\(name)/status").flatMap(effectiveUser)
      else { continue }
      users[unit, default: []].insert(user)
    }
    return users.mapValues { $0.sorted() }
  }

  /// The system service that a control group is in, or below (cgroups(7)). A user's manager is none: below it the names are
  /// that user's choice.
  static func unit(in group: String) -> String? {
    for line in group.split(separator: "\n") {
      for part in line.split(separator: "/") where part.hasSuffix(".service") {
        return part.hasPrefix("user@") ? nil : String(part)
      }
    }
    return nil
  }

  /// The second number behind `Uid:` (proc_pid_status(5)).
  static func effectiveUser(in status: String) -> UInt32? {
    let line = status.split(separator: "\n").first { $0.hasPrefix("Uid:") }
    let numbers = line?.split { $0 == "\t" || $0 == " " }.dropFirst().compactMap { UInt32($0) } ?? []
    return numbers.count > 1 ? numbers[1] : nil
  }

  private static func text(_ path: String) -> String? {
    guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}
