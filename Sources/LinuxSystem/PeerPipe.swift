import Glibc

/// Writing into a descriptor that another program has passed.
package enum PeerPipe {
  /// Writes into a pipe or socket as much as it takes now. A file would let its file system hold up the caller.
  ///
  /// Other programs that share the open file see that it does not block (open(2), O_NONBLOCK).
  ///
  /// - Returns: the number of bytes; 0 if there is no room.
  /// - Throws: EINVAL if the descriptor is neither a pipe nor a socket; EPIPE if nobody reads.
  package static func write(_ bytes: borrowing Span<UInt8>, to number: Int32) throws(SystemError) -> Int {
    var status = stat()
    try system("fstat") { unsafe fstat(number, &status) }
    guard [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT) else {
      throw SystemError(call: "write to a file that is no pipe", code: EINVAL)
    }
    let flags = try system("fcntl F_GETFL") { fcntl(number, F_GETFL) }
    try system("fcntl F_SETFL") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
    let result = unsafe bytes.withUnsafeBytes { buffer in
      attempt { unsafe Glibc.write(number, buffer.baseAddress, buffer.count) }
    }
    return try result.available(as: "write") ?? 0
  }
}
