/// A buffer of received bytes that are taken out line by line.
package struct ReceivedLines {
  private var bytes: [UInt8] = []

  package init() {}

  /// Returns the next line without its line feed.
  ///
  /// - Parameter more: waits for more bytes, and returns none at the end of the stream.
  /// - Returns: nil at the end of the stream.
  package mutating func next(_ more: () throws -> some Collection<UInt8>) rethrows -> String? {
    while true {
      if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
        defer { bytes.removeSubrange(...end) }
        return String(decoding: bytes[..<end], as: UTF8.self)
      }
      let chunk = try more()
      if chunk.isEmpty { return nil }
      bytes += chunk
    }
  }
}
