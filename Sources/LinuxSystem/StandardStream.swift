import Glibc

/// Standard output or standard error, written without a buffer.
package struct StandardStream: Sendable {
  private let number: Int32

  /// Descriptor 1.
  package static let output = StandardStream(number: 1)
  /// Descriptor 2.
  package static let error = StandardStream(number: 2)

  /// Whether a person reads along: it is a terminal.
  package var isTerminal: Bool { isatty(number) == 1 }

  /// Writes text whole.
  ///
  /// - Returns: false where nobody takes it: the stream is closed, or its disk is full.
  @discardableResult
  package func write(_ text: String) -> Bool { write(Array(text.utf8)) }

  /// Writes bytes whole.
  ///
  /// - Returns: false where nobody takes them.
  @discardableResult
  package func write(_ bytes: [UInt8]) -> Bool {
    var written = 0
    while written < bytes.count {
      let result = unsafe bytes.withUnsafeBytes { buffer in
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
        return attempt { unsafe Glibc.write(number, rest.baseAddress, rest.count) }
      }
      guard case .done(let count) = result else { return false }
      written += count
    }
    return true
  }
}
