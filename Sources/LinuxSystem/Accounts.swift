import Glibc

/// Look-ups of users and groups through the name service switch.
///
/// A look-up throws if the name service cannot answer. An unknown account is not an error.
package enum Accounts {
  /// The path of the file of local users (passwd(5)). Other sources of the name service switch have no file to watch.
  package static let file = "/etc/passwd"

  /// Returns the ID of a group, or nil if there is no such group (getgrnam_r(3)).
  package static func groupID(named name: String) throws(SystemError) -> UInt32? {
    try unsafe look(
      "getgrnam \(name)", group(),
      { record, room, count, found in unsafe getgrnam_r(name, record, room, count, found) },
      { record -> UInt32 in unsafe record.gr_gid })
  }

  /// Returns the ID of a user, or nil if there is no such user (getpwnam_r(3)).
  package static func userID(named name: String) throws(SystemError) -> UInt32? {
    try unsafe look(
      "getpwnam \(name)", passwd(),
      { record, room, count, found in unsafe getpwnam_r(name, record, room, count, found) },
      { record -> UInt32 in unsafe record.pw_uid })
  }

  /// Returns the name of a user, or nil if there is no such user (getpwuid_r(3)).
  package static func userName(of number: UInt32) throws(SystemError) -> String? {
    try unsafe look(
      "getpwuid \(number)", passwd(),
      { record, room, count, found in unsafe getpwuid_r(number, record, room, count, found) },
      { record -> String? in unsafe record.pw_name.map { unsafe String(cString: $0) } }) ?? nil
  }

  /// Returns the first ID of a regular user: `UID_MIN` of login.defs(5), or 1000 if no file sets `UID_MIN`.
  package static func firstRegularUser() throws(SystemError) -> UInt32 {
    // Distributions that keep their own settings below /usr have an empty /etc.
    for path in ["/etc/login.defs", "/usr/etc/login.defs"] {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 1 << 20) else { continue }
      // As bytes, because a string costs a start more than the whole store: most of the file is comments.
      for line in bytes.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
        let words = line.split(maxSplits: 2) { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        if words.count > 1, words[0].elementsEqual("UID_MIN".utf8),
          let number = UInt32(String(decoding: words[1], as: UTF8.self))
        {
          return number
        }
      }
    }
    return 1_000
  }

  /// The effective user of this process.
  package static var ownUserID: UInt32 { geteuid() }

  /// Runs a reentrant look-up, and enlarges the buffer up to 1 MiB until the record fits.
  ///
  /// - Parameters:
  ///   - record: an empty record. Its strings point into the buffer, so `take` copies them before the buffer is freed.
  /// - Returns: nil if there is no such account.
  private static func look<Record, Value>(
    _ call: @autoclosure () -> String, _ record: Record,
    _ find: (
      UnsafeMutablePointer<Record>, UnsafeMutablePointer<CChar>, Int,
      UnsafeMutablePointer<UnsafeMutablePointer<Record>?>
    ) -> Int32,
    _ take: (Record) -> Value
  ) throws(SystemError) -> Value? {
    var room = 4_096
    while true {
      var record = record
      var code: Int32 = 0
      var buffer = [CChar](repeating: 0, count: room)
      let value: Value? = unsafe buffer.withUnsafeMutableBufferPointer { buffer in
        var found: UnsafeMutablePointer<Record>?
        guard let start = buffer.baseAddress else { return nil }
        code = unsafe find(&record, start, buffer.count, &found)
        return unsafe code == 0 && found != nil ? take(record) : nil
      }
      if code == ERANGE, room < 1 << 20 {
        room *= 4
        continue
      }
      // POSIX allows these codes for an unknown account as well (getpwnam(3), getgrnam(3)).
      if [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) { return value }
      throw SystemError(call: call(), code: code)
    }
  }
}
