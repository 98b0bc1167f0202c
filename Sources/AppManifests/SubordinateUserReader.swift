package import IdentityCore
import LinuxSystem

/// Reads which users are subordinate to which: the ranges that newuidmap(1) lets a user take (subuid(5)).
package enum SubordinateUserReader {
  /// The file with the ranges.
  package static let path = "/etc/subuid"
  /// The longest file that is read, in bytes: some 30,000 users.
  private static let longest = 1 << 20

  /// Reads the file.
  ///
  /// - Returns: the ranges, nil where the file cannot be read; and what is wrong, each with its line.
  package static func read(path: String = path) -> (users: SubordinateUsers?, faults: [String]) {
    do {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: longest) else {
        return (SubordinateUsers(), [])
      }
      return parse(String(decoding: bytes, as: UTF8.self), of: path, look: Accounts.userID(named:))
    } catch {
      return (nil, ["\(error): subordinate users are charged as they were before"])
    }
  }

  /// Reads the lines of a file: `OWNER:FIRST:COUNT`, the owner by name or number.
  ///
  /// A range of a name without a user is nobody's: nobody can take it. A line of another form is told and left out.
  ///
  /// - Parameter look: the number of a user; nil where there is no such user.
  static func parse(
    _ text: String, of path: String, look: (String) throws(SystemError) -> UInt32?
  ) -> (users: SubordinateUsers, faults: [String]) {
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
    return (SubordinateUsers(ranges), faults)
  }
}
