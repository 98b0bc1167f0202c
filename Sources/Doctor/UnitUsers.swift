import LinuxSystem

/// The users that services run as, as far as `/proc` shows them.
enum UnitUsers {
  /// The maximum number of processes examined.
  private static let most = 65_536

  /// Examines every process.
  ///
  /// - Parameter units: The names of services.
  /// - Returns: For each service that runs, the effective users of its processes in ascending order.
  static func running(in units: Set<String>) -> [String: [UInt32]] {
    guard !units.isEmpty, let names = try? ConfigurationAccess.names(in: "/proc") else { return [:] }
    var users: [String: Set<UInt32>] = [:]
    for name in names.lazy.filter({ $0.first?.isNumber == true }).prefix(most) {
      guard let group = text("/proc/\(name)/cgroup"), let unit = unit(in: group), units.contains(unit),
        let user = text("/proc/\(name)/status").flatMap(effectiveUser)
      else { continue }
      users[unit, default: []].insert(user)
    }
    return users.mapValues { $0.sorted() }
  }

  /// Returns the system service of a process, from the content of `/proc/PID/cgroup` (cgroups(7)).
  ///
  /// Only the first unit below slices counts, because the names below it prove nothing. Services of a user's manager do
  /// not count, because that user chooses their names.
  static func unit(in group: String) -> String? {
    for line in group.split(separator: "\n") {
      // The number of the hierarchy and the names of its controllers precede the path.
      let path = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
      guard let unit = path.split(separator: "/").first(where: { !$0.hasSuffix(".slice") }) else { continue }
      if unit.hasSuffix(".service") { return unit.hasPrefix("user@") ? nil : String(unit) }
    }
    return nil
  }

  /// Returns the effective user, the second number after `Uid:` (proc_pid_status(5)).
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
