import CLinux

/// The ranges of subordinate users, by shadow's libsubid: from the source that nsswitch.conf(5) names for `subid`.
package enum SubordinateRanges {
  /// The most ranges of one owner that are told.
  private static let most = 64

  /// The ranges of one owner, each with its first number and how many there are.
  ///
  /// - Parameter owner: the name of the user.
  /// - Returns: none also where the source did not answer: libsubid does not tell these apart.
  /// - Throws: `ENOSYS` where libsubid is not installed.
  package static func of(owner: String) throws(SystemError) -> [(first: UInt, count: UInt)] {
    var ranges = [clinux_user_range](repeating: clinux_user_range(), count: most)
    let count = try system("libsubid") {
      unsafe clinux_subordinate_ranges(owner, &ranges, Int32(most))
    }
    return ranges.prefix(Int(count)).map { (UInt($0.first), UInt($0.count)) }
  }

  /// Whether another source than `/etc/subuid` counts: what `subid:` of nsswitch.conf names first is not `files`.
  ///
  /// - Parameter configuration: the text of nsswitch.conf.
  package static func hasOtherSource(_ configuration: String) -> Bool {
    for line in configuration.split(separator: "\n") {
      let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
      // shadow looks for the name of the database at the beginning of a line, and takes the first source alone.
      if words.first == "subid:" { return words.count > 1 && words[1] != "files" }
    }
    return false
  }
}
