import Glibc

/// A file descriptor with one owner, closed when the owner lets go of it.
package struct Descriptor: ~Copyable, Sendable {
  /// The number, for calls that borrow it. It must not be closed or kept.
  package let number: Int32

  /// Takes over an open descriptor.
  package init(adopting number: Int32) { self.number = number }

  deinit {
    // Linux frees the number whatever close() returns, EINTR included, so there is nothing to try again.
    _ = close(number)
  }

  /// Gives the number away; whoever takes it closes it.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }

  /// Reads at most `bytes.count` bytes into the front of the array.
  ///
  /// - Returns: how many; 0 at the end of the stream, nil when nothing is there now (EAGAIN).
  package func read(into bytes: inout [UInt8]) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeMutableBytes { buffer in
      attempt { unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
    }
    return try result.available(as: "read")
  }

  /// Writes as much of the bytes from `start` on as is taken now.
  ///
  /// - Returns: how many; nil when nothing is taken now (EAGAIN).
  package func write(_ bytes: [UInt8], from start: Int = 0) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeBytes { buffer in
      let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[start...])
      return attempt { unsafe Glibc.write(number, rest.baseAddress, rest.count) }
    }
    return try result.available(as: "write")
  }
}

extension Descriptor {
  /// Fills the array with what the file has from `offset` on.
  ///
  /// - Returns: how many bytes there were; fewer than there is room for at the end of the file alone.
  package func read(into bytes: inout [UInt8], at offset: Int) throws(SystemError) -> Int {
    let number = number
    var filled = 0
    while filled < bytes.count {
      let got = try system("pread") {
        unsafe bytes.withUnsafeMutableBytes { buffer in
          let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
          return unsafe pread(number, rest.baseAddress, rest.count, off_t(offset + filled))
        }
      }
      guard got > 0 else { break }
      filled += got
    }
    return filled
  }

  /// Writes the bytes over what the file has from `offset` on, whole.
  package func overwrite(with bytes: [UInt8], at offset: Int = 0) throws(SystemError) {
    let number = number
    var written = 0
    while written < bytes.count {
      written += try system("pwrite") {
        unsafe bytes.withUnsafeBytes { buffer in
          let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
          return unsafe pwrite(number, rest.baseAddress, rest.count, off_t(offset + written))
        }
      }
    }
  }
}

/// The outcome of a system call that may have to wait.
enum Attempt {
  case done(Int)
  case failed(Int32)

  /// The count; nil where the call would have had to wait.
  func available(as name: String) throws(SystemError) -> Int? {
    switch self {
    case .done(let count): return count
    case .failed(let code) where code == EAGAIN || code == EWOULDBLOCK: return nil
    case .failed(let code): throw SystemError(call: name, code: code)
    }
  }
}

/// Runs a call until no signal interrupts it.
func attempt(_ body: () -> Int) -> Attempt {
  while true {
    let count = body()
    if count >= 0 { return .done(count) }
    let code = errno
    if code != EINTR { return .failed(code) }
  }
}
