import Glibc

/// Standard output or standard error, written without a buffer.
package struct StandardStream: Sendable {
  private let number: Int32

  /// Descriptor 1.
  package static let output = StandardStream(number: 1)
  /// Descriptor 2.
  package static let error = StandardStream(number: 2)

  /// Takes the places of the standard streams that are closed, so that no file or socket ever gets their numbers.
  ///
  /// What is written there still fails, and so does reading.
  package static func reserve() throws(SystemError) {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
      let flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY
      try system("open /dev/null") { unsafe Glibc.open("/dev/null", flags) }
    }
  }

  /// Whether a person reads along: it is a terminal.
  package var isTerminal: Bool { isatty(number) == 1 }

  /// Writes text whole.
  ///
  /// - Returns: false where nobody takes it: the stream is closed, or its disk is full.
  @discardableResult
  package func write(_ text: String) -> Bool { write(Array(text.utf8)) }

  /// Writes bytes whole.
  ///
  /// - Parameter waits: whether a stream that somebody else has set not to block is waited for when it is full.
  /// - Returns: false where nobody takes them.
  @discardableResult
  package func write(_ bytes: [UInt8], waits: Bool = false) -> Bool {
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

  /// Writes text where that takes no waiting.
  ///
  /// A pipe that has room has room for a page, and a socket that has room has room for a quarter of its buffer.
  ///
  /// - Parameter length: what is beyond that many bytes is left out.
  package func writeAtOnce(_ text: String, length: Int = 4_096) {
    if waitForRoom(milliseconds: 0) { write(Array(text.utf8.prefix(length))) }
  }

  private func waitForRoom(milliseconds: Int32 = -1) -> Bool {
    var watched = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
    guard case .done(1) = attempt({ Int(unsafe poll(&watched, 1, milliseconds)) }) else { return false }
    return true
  }
}
