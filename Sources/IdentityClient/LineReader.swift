import LinuxSystem

/// Splits received data into lines.
///
/// Consumed bytes are overwritten, because a line may hold a secret.
struct LineReader {
  /// The maximum length of a line in bytes. The longest line of identityd is far shorter: an item with a secret of 64
  /// KiB in Base64, its label and its attributes.
  private static let longestLine = 1 << 24

  private var received: [UInt8] = []
  /// The number of consumed bytes, and the end of the range that is known to hold no further line feed.
  private var consumed = 0
  private var searched = 0
  private var chunk = [UInt8](repeating: 0, count: 65_536)

  /// Receives the data that have arrived.
  ///
  /// - Returns: The number of bytes; 0 at the end of the stream, nil if nothing has arrived.
  mutating func receive(from socket: borrowing Descriptor) throws(SystemError) -> Int? {
    guard let count = try socket.receive(into: &chunk) else { return nil }
    // The chunk is swapped out, because exclusive access rules out a span into `self` while `self` is modified.
    var bytes: [UInt8] = []
    swap(&bytes, &chunk)
    append(bytes.span.extracting(..<count))
    swap(&bytes, &chunk)
    chunk.wipe(first: count)
    return count
  }

  /// Appends received bytes.
  mutating func append(_ bytes: borrowing Span<UInt8>) {
    discardConsumed()
    received.appendWiping(bytes)
  }

  /// Returns the next line without its line feed; nil if no line is complete. The caller must wipe a line that may
  /// hold a secret.
  mutating func next() -> [UInt8]? {
    guard let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = received.count
      return nil
    }
    let line = Array(received[consumed..<end])
    // Wiped at once, because more data may never arrive.
    for index in consumed..<end { received[index] = 0 }
    consumed = end + 1
    searched = consumed
    return line
  }

  /// The beginning of an overlong line; nil if there is none. No more lines can be read after an overlong line.
  var overlong: [UInt8]? {
    received.count - consumed > Self.longestLine ? Array(received[consumed...].prefix(1_024)) : nil
  }

  private mutating func discardConsumed() {
    guard consumed > 0 else { return }
    var rest = Array(received[consumed...])
    defer { rest.wipe() }
    received.wipe()
    received.removeAll(keepingCapacity: true)
    received += rest
    searched -= consumed
    consumed = 0
  }
}
