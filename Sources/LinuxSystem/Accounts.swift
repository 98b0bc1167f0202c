import Glibc

/// Users and groups by name, through the name service switch.
///
/// Each look-up throws where the name service could not answer, which is not the same as an account that is not there.
package enum Accounts {
  /// The number of a group; nil where there is no such group (getgrnam_r(3)).
  package static func groupID(named name: String) throws(SystemError) -> UInt32? {
    try unsafe look(
      "getgrnam \(name)", group(),
      { record, room, count, found in unsafe getgrnam_r(name, record, room, count, found) },
      { record -> UInt32 in unsafe record.gr_gid })
  }

  /// The number of a user; nil where there is no such user (getpwnam_r(3)).
  package static func userID(named name: String) throws(SystemError) -> UInt32? {
    try unsafe look(
      "getpwnam \(name)", passwd(),
      { record, room, count, found in unsafe getpwnam_r(name, record, room, count, found) },
      { record -> UInt32 in unsafe record.pw_uid })
  }

  /// The name of a user; nil where there is no such user (getpwuid_r(3)).
  package static func userName(of number: UInt32) throws(SystemError) -> String? {
    try unsafe look(
      "getpwuid \(number)", passwd(),
      { record, room, count, found in unsafe getpwuid_r(number, record, room, count, found) },
      { record -> String? in unsafe record.pw_name.map { unsafe String(cString: $0) } }) ?? nil
  }

  /// The first number of a regular user: `UID_MIN` of login.defs(5); 1000 where nothing says so.
  package static func firstRegularUser() throws(SystemError) -> UInt32 {
    // Distributions that keep their own settings below /usr have an empty /etc.
    for path in ["/etc/login.defs", "/usr/etc/login.defs"] {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 1 << 20) else { continue }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
        let words = line.split { $0 == " " || $0 == "\t" }
        if words.count > 1, words[0] == "UID_MIN", let number = UInt32(words[1]) { return number }
      }
    }
    return 1_000
  }

  /// The user this process runs as.
  package static var ownUserID: UInt32 { geteuid() }

  /// Runs one of the reentrant look-ups with as much room as the record takes, up to a mebibyte.
  ///
  /// - Parameters:
  ///   - record: an empty one; its strings live in the room, so `take` reads it before the room goes.
  /// - Returns: nil where there is no such account.
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
      // POSIX lets an unknown account be told by these as well (getpwnam(3), getgrnam(3)).
      if [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) { return value }
      throw SystemError(call: call(), code: code)
    }
  }
}
