/// Bytes that came, to be taken out line by line.
package struct ReceivedLines {
  private var bytes: [UInt8] = []

  package init() {}

  /// The next line without its end.
  ///
  /// - Parameter more: waits for what comes next; nothing at the end of the stream.
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
