import Glibc

/// A file descriptor with a single owner, closed at the end of the value's lifetime.
package struct Descriptor: ~Copyable, Sendable {
  /// The number, for calls that borrow the descriptor. Callers must neither close nor keep the number.
  package let number: Int32

  /// Takes ownership of an open descriptor.
  package init(adopting number: Int32) { self.number = number }

  deinit {
    // Linux frees the number whatever close() returns, EINTR included, so close() must not be repeated.
    _ = close(number)
  }

  /// Releases ownership of the descriptor. The caller must close it.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }

  /// Reads at most `bytes.count` bytes into the front of the array.
  ///
  /// - Returns: the number of bytes; 0 at the end of the stream, nil if nothing is available now (EAGAIN).
  package func read(into bytes: inout [UInt8]) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeMutableBytes { buffer in
      attempt { unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
    }
    return try result.available(as: "read")
  }

  /// Writes as many bytes from `start` on as the descriptor takes now.
  ///
  /// - Returns: the number of bytes; nil if the descriptor takes nothing now (EAGAIN).
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
  /// Fills the array with the bytes of the file from `offset` on.
  ///
  /// - Returns: the number of bytes read. Fewer than the array has room for only at the end of the file.
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

  /// Writes all of the bytes to the file, from `offset` on.
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

/// The outcome of a system call that can fail because it would block.
enum Attempt {
  case done(Int)
  case failed(Int32)

  /// Returns the count, or nil if the call would have blocked.
  func available(as name: String) throws(SystemError) -> Int? {
    switch self {
    case .done(let count): return count
    case .failed(let code) where code == EAGAIN || code == EWOULDBLOCK: return nil
    case .failed(let code): throw SystemError(call: name, code: code)
    }
  }
}

/// Runs a call, and repeats it as long as a signal interrupts it.
func attempt(_ body: () -> Int) -> Attempt {
  while true {
    let count = body()
    if count >= 0 { return .done(count) }
    let code = errno
    if code != EINTR { return .failed(code) }
  }
}
