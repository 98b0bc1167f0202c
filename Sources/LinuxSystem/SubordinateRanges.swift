import CLinux

/// The ranges of subordinate users, which shadow's libsubid reads from the source that
/// nsswitch.conf(5) names for `subid`.
package enum SubordinateRanges {
  /// The largest number of ranges that are returned for one owner.
  private static let most = 64

  /// Returns the ranges of one owner, each with its first user ID and its length.
  ///
  /// - Parameter owner: the name of the user.
  /// - Returns: an empty array also if the source did not answer, because libsubid does not distinguish the two cases.
  /// - Throws: `ENOSYS` if libsubid is not installed.
  package static func of(owner: String) throws(SystemError) -> [(first: UInt, count: UInt)] {
    var ranges = [clinux_user_range](repeating: clinux_user_range(), count: most)
    let count = try system("libsubid") {
      unsafe clinux_subordinate_ranges(owner, &ranges, Int32(most))
    }
    return ranges.prefix(Int(count)).map { (UInt($0.first), UInt($0.count)) }
  }

  /// Returns whether a source other than `/etc/subuid` counts: the first source in the `subid:` line is not `files`.
  ///
  /// - Parameter configuration: the text of nsswitch.conf.
  package static func hasOtherSource(_ configuration: String) -> Bool {
    for line in configuration.split(separator: "\n") {
      let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
      // shadow looks for the database's name at the beginning of a line, and uses only the first source.
      if words.first == "subid:" { return words.count > 1 && words[1] != "files" }
    }
    return false
  }
}
