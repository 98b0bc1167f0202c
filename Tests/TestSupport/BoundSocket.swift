package import Glibc
package import LinuxSystem

/// Creates a Unix socket bound to a path.
///
/// `UnixSocket.listen` is unsuitable: it sets the umask of the whole process for a moment, and tests of file modes may
/// run at the same time.
package func boundSocket(_ kind: __socket_type, to path: String) throws -> Descriptor {
  let kind = Int32(kind.rawValue | SOCK_CLOEXEC.rawValue)
  let socket = Descriptor(adopting: try system("socket") { Glibc.socket(AF_UNIX, kind, 0) })
  let number = socket.number
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
    throw SystemError(call: "bind \(path)", code: ENAMETOOLONG)
  }
  unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
  let length = socklen_t(MemoryLayout<sockaddr_un>.size)
  _ = unsafe try withUnsafePointer(to: &address) { pointer in
    try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
      try system("bind") { unsafe bind(number, address, length) }
    }
  }
  return socket
}
