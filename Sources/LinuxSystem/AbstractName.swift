import Glibc

extension Descriptor {
  /// Returns the abstract name that the peer of a connected Unix socket has bound, without the NUL before it (unix(7)).
  ///
  /// Any process can bind any abstract name that is free, so the name alone proves nothing.
  ///
  /// - Returns: at most 107 bytes; nil if the peer's socket has no abstract name.
  package func abstractNameOfPeer() throws(SystemError) -> [UInt8]? {
    var address = sockaddr_un()
    var length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let number = number
    try system("getpeername") {
      unsafe withUnsafeMutablePointer(to: &address) {
        unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getpeername(number, $0, &length) }
      }
    }
    let count = Int(length) - MemoryLayout<sa_family_t>.size
    return unsafe withUnsafeBytes(of: address.sun_path) { path in
      guard count > 1, count <= path.count, unsafe path.first == 0 else { return nil }
      return unsafe Array(path[1..<count])
    }
  }
}
