import CLinux

/// Unicode's composed form of texts (NFC, Unicode Standard Annex #15).
package enum ComposedText {
  /// The most bytes of a composed form for each byte of the text (the annex, section 9).
  package static let mostGrowth = 3

  /// Composes a text without a copy in other memory than the caller's and this thread's stack, which is released.
  ///
  /// - Parameters:
  ///   - text: the bytes of the text.
  ///   - result: room for ``mostGrowth`` times as many bytes.
  /// - Returns: the number of bytes of the composed form; nil if the text is not UTF-8, or if the system has no
  ///   libunistring.
  package static func compose(
    _ text: UnsafeBufferPointer<UInt8>, into result: UnsafeMutableBufferPointer<UInt8>
  ) -> Int? {
    let count = unsafe clinux_compose(text.baseAddress, text.count, result.baseAddress, result.count)
    ProcessMemory.releaseStack()
    return count < 0 ? nil : count
  }
}
