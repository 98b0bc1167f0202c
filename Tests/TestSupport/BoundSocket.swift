package import Glibc
package import LinuxSystem

/// Creates a Unix socket bound to a path, or to an abstract name, which begins with a NUL (unix(7)).
///
/// `UnixSocket.listen` is unsuitable: it sets the umask of the whole process for a moment, and tests of file modes may
/// run at the same time.
package func boundSocket(_ kind: __socket_type, to path: String) throws -> Descriptor {
  let kind = Int32(kind.rawValue | SOCK_CLOEXEC.rawValue)
  let socket = Descriptor(adopting: try system("socket") { Glibc.socket(AF_UNIX, kind, 0) })
  let number = socket.number
  try unsafe withAddress(of: path) { address, length in try system("bind") { unsafe bind(number, address, length) } }
  return socket
}

/// Connects a socket to a path.
package func connect(_ socket: borrowing Descriptor, to path: String) throws {
  let number = socket.number
  try unsafe withAddress(of: path) { address, length in
    try system("connect \(path)") { unsafe Glibc.connect(number, address, length) }
  }
}

private func withAddress(
  of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Int32
) throws {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
    throw SystemError(call: "address \(path)", code: ENAMETOOLONG)
  }
  unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
  // An abstract name has a length. A path ends with a NUL.
  let isAbstract = path.utf8.first == 0
  let length = isAbstract ? MemoryLayout<sa_family_t>.size + path.utf8.count : MemoryLayout<sockaddr_un>.size
  _ = unsafe try withUnsafePointer(to: &address) { pointer in
    try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
      try unsafe body(address, socklen_t(length))
    }
  }
}
