import Glibc

/// Users and groups by name, through the name service switch.
package enum Accounts {
  /// The number of a group; nil where there is no such group.
  ///
  /// - Throws: where the name service could not answer, which is not the same.
  package static func groupID(named name: String) throws(SystemError) -> UInt32? {
    var room = 4_096
    while true {
      var record = unsafe group()
      var found: UnsafeMutablePointer<group>?
      var buffer = [CChar](repeating: 0, count: room)
      let code = unsafe buffer.withUnsafeMutableBufferPointer { buffer in
        unsafe getgrnam_r(name, &record, buffer.baseAddress, buffer.count, &found)
      }
      if code == ERANGE, room < 1 << 20 {
        room *= 4
        continue
      }
      // POSIX lets an unknown name be told by these as well (getgrnam(3)).
      if [ENOENT, ESRCH, EBADF, EPERM].contains(code) { return nil }
      guard code == 0 else { throw SystemError(call: "getgrnam \(name)", code: code) }
      return unsafe found == nil ? nil : record.gr_gid
    }
  }

  /// The user this process runs as.
  package static var ownUserID: UInt32 { geteuid() }
}
