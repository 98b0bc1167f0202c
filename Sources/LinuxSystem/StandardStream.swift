import Glibc

/// Standard output or standard error, written without buffering.
package struct StandardStream: Sendable {
  private let number: Int32

  /// Standard output, descriptor 1.
  package static let output = StandardStream(number: 1)
  /// Standard error, descriptor 2.
  package static let error = StandardStream(number: 2)

  /// Opens closed standard streams on /dev/null, so that no file or socket gets their numbers.
  ///
  /// Writing to such a stream still fails, and so does reading, because /dev/null is opened for the other direction.
  package static func reserve() throws(SystemError) {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
      let flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY
      try system("open /dev/null") { unsafe Glibc.open("/dev/null", flags) }
    }
  }

  /// Whether the stream is a terminal, so that a person reads the output.
  package var isTerminal: Bool { isatty(number) == 1 }

  /// The size that the terminal of the stream reports.
  var terminalSize: WindowSize { WindowSize(ofDescriptor: number) }

  /// Writes all of a text.
  ///
  /// - Returns: false if the write fails, because the stream is closed or its disk is full.
  @discardableResult
  package func write(_ text: String) -> Bool { write(Array(text.utf8)) }

  /// Writes all of the bytes.
  ///
  /// - Parameter waits: whether to wait for room if another process has set the stream to be non-blocking.
  /// - Returns: false if the write fails.
  @discardableResult
  package func write(_ bytes: [UInt8], waits: Bool = false) -> Bool { write(bytes.span, waits: waits) }

  /// Writes all of the bytes, like ``write(_:waits:)-([UInt8],_)``.
  @discardableResult
  package func write(_ bytes: borrowing Span<UInt8>, waits: Bool = false) -> Bool {
    var written = 0
    while written < bytes.count {
      let result = unsafe bytes.withUnsafeBytes { buffer in
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
        return attempt { unsafe Glibc.write(number, rest.baseAddress, rest.count) }
      }
      switch result {
      case .done(let count): written += count
      case .failed(let code) where code == EAGAIN && waits: guard waitForRoom() else { return false }
      case .failed: return false
      }
    }
    return true
  }

  /// Writes text if that is possible without waiting.
  ///
  /// A pipe with room has room for a page, and a socket with room has room for a quarter of its buffer.
  ///
  /// - Parameter length: the largest number of bytes to write. The rest of the text is dropped.
  package func writeAtOnce(_ text: String, length: Int = 4_096) {
    if waitForRoom(milliseconds: 0) { write(Array(text.utf8.prefix(length))) }
  }

  private func waitForRoom(milliseconds: Int32 = -1) -> Bool {
    var watched = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
    guard case .done(1) = attempt({ Int(unsafe poll(&watched, 1, milliseconds)) }) else { return false }
    return true
  }
}
