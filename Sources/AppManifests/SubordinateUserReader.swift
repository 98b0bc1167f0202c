package import IdentityCore
import LinuxSystem

/// Reads which users are subordinate to which: the ranges that newuidmap(1) lets a user take (subuid(5)).
package enum SubordinateUserReader {
  /// The file with the ranges.
  package static let path = "/etc/subuid"
  /// The file that tells whether there is another source.
  private static let switchPath = "/etc/nsswitch.conf"
  /// The longest file that is read, in bytes: some 30,000 users.
  private static let longest = 1 << 20

  /// Reads the file, and asks the name service where nsswitch.conf(5) names it as the source of `subid`.
  ///
  /// A directory service tells the ranges of one owner at a time: SSSD has no answer to who the owner of a number is.
  ///
  /// - Parameter owners: the users whose ranges the name service is asked for.
  /// - Returns: the ranges, nil where the file cannot be read; and what is wrong, each with its line.
  package static func read(owners: Set<UInt32>) -> (users: SubordinateUsers?, faults: [String]) {
    do {
      var (ranges, faults) = try readFile()
      let isByOwner = try hasNameService()
      if isByOwner {
        do { ranges += try ask(owners) } catch { faults.append("\(switchPath): subid: \(error); \(path) alone counts") }
      }
      var users = SubordinateUsers(ranges)
      users.isByOwner = isByOwner
      return (users, faults)
    } catch {
      return (nil, ["\(error): subordinate users are charged as they were before"])
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

  /// Reads the lines of a file: `OWNER:FIRST:COUNT`, the owner by name or number.
  ///
  /// A range of a name without a user is nobody's: nobody can take it. A line of another form is told and left out.
  ///
  /// - Parameter look: the number of a user; nil where there is no such user.
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
        // A number first: newuidmap(1) takes both.
        guard let owner = try UInt32(parts[0]) ?? known[parts[0]] ?? look(String(parts[0])) else { continue }
        known[parts[0]] = owner
        if let range = SubordinateUsers.Range(first: first, count: count, owner: owner) {
          ranges.append(range)
        } else if count > 0 {
          faults.append("\(path):\(number + 1): the range goes beyond the last user; it is ignored")
        }
      } catch {
        faults.append("\(path):\(number + 1): \(error)")
      }
    }
    return (ranges, faults)
  }
}
