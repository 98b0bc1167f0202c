package import IdentityCore
import LinuxSystem

/// Reads the ranges of subordinate users that newuidmap(1) lets a user take (subuid(5)).
package enum SubordinateUserReader {
  /// The file with the ranges.
  package static let path = "/etc/subuid"
  /// The file that names other sources of ranges.
  private static let switchPath = "/etc/nsswitch.conf"
  /// The maximum length of these files, in bytes: room for about 30,000 users.
  private static let longest = 1 << 20

  /// Reads /etc/subuid, and asks the name service if nsswitch.conf(5) names one as the source of `subid`.
  ///
  /// A name service returns the ranges of one owner at a time. SSSD does not implement the look-up of the owner of a
  /// user ID.
  ///
  /// - Parameter owners: the users whose ranges are requested from the name service.
  /// - Returns: the ranges, or nil if a file cannot be read; and the faults, each with its line.
  package static func read(owners: Set<UInt32>) -> (users: SubordinateUsers?, faults: [String]) {
    do {
      var (ranges, faults) = try readFile()
      let isByOwner = try hasNameService()
      if isByOwner {
        do { ranges += try ask(owners) } catch { faults.append("\(switchPath): subid: \(error); only \(path) is used") }
      }
      var users = SubordinateUsers(ranges)
      users.isByOwner = isByOwner
      return (users, faults)
    } catch {
      return (nil, ["\(error): the previous subordinate users stay in force"])
    }
  }

  private static func readFile() throws(SystemError) -> (ranges: [SubordinateUsers.Range], faults: [String]) {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: longest) else { return ([], []) }
    return parse(String(decoding: bytes, as: UTF8.self), of: path, look: Accounts.userID(named:))
  }

  private static func hasNameService() throws(SystemError) -> Bool {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: switchPath, limit: longest) else { return false }
    return SubordinateRanges.hasOtherSource(String(decoding: bytes, as: UTF8.self))
  }

  private static func ask(_ owners: Set<UInt32>) throws(SystemError) -> [SubordinateUsers.Range] {
    var ranges: [SubordinateUsers.Range] = []
    for owner in owners {
      guard let name = try Accounts.userName(of: owner) else { continue }
      for (first, count) in try SubordinateRanges.of(owner: name) {
        guard let first = UInt32(exactly: first), let count = UInt32(exactly: count) else { continue }
        if let range = SubordinateUsers.Range(first: first, count: count, owner: owner) { ranges.append(range) }
      }
    }
    return ranges
  }

  /// Parses the lines of a file: `OWNER:FIRST:COUNT`, with the owner's name or user ID.
  ///
  /// A range with an unknown owner's name is skipped, because no user can take it. A line of another form is reported
  /// and skipped.
  ///
  /// - Parameter look: returns the ID of a user; nil if there is no such user.
  static func parse(
    _ text: String, of path: String, look: (String) throws(SystemError) -> UInt32?
  ) -> (ranges: [SubordinateUsers.Range], faults: [String]) {
    var ranges: [SubordinateUsers.Range] = []
    var faults: [String] = []
    var known: [Substring: UInt32] = [:]
    for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if line.isEmpty || line.hasPrefix("#") { continue }
      let parts = line.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 3, !parts[0].isEmpty, let first = UInt32(parts[1]), let count = UInt32(parts[2]) else {
        faults.append("\(path):\(number + 1): the line is not OWNER:FIRST:COUNT; it is ignored")
        continue
      }
      do {
        // Tries a number first, because newuidmap(1) accepts both forms.
        guard let owner = try UInt32(parts[0]) ?? known[parts[0]] ?? look(String(parts[0])) else { continue }
        known[parts[0]] = owner
        if let range = SubordinateUsers.Range(first: first, count: count, owner: owner) {
          ranges.append(range)
        } else if count > 0 {
          faults.append("\(path):\(number + 1): the range exceeds the largest user number; it is ignored")
        }
      } catch {
        faults.append("\(path):\(number + 1): \(error)")
      }
    }
    return (ranges, faults)
  }
}
