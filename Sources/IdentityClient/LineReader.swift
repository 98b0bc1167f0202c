import LinuxSystem

/// What comes over a connection, line by line.
///
/// What was taken is overwritten: a line may hold a secret.
struct LineReader {
  /// No line of a daemon is nearly as long: an item of 32 KiB, in Base64, and all that is said of it.
  private static let longestLine = 1 << 24

  private var received: [UInt8] = []
  /// How much of it was taken, and how much of the rest is known to hold no end of a line.
  private var taken = 0
  private var searched = 0
  private var chunk = [UInt8](repeating: 0, count: 65_536)

  /// Receives what is there.
  ///
  /// - Returns: how many bytes; 0 at the end of the stream, nil when nothing is there now.
  mutating func receive(from socket: borrowing Descriptor) throws(SystemError) -> Int? {
    guard let count = try socket.receive(into: &chunk) else { return nil }
    // Taken out and put back: a span into this value is not to be had while this value is changed.
    var bytes: [UInt8] = []
    swap(&bytes, &chunk)
    append(bytes.span.extracting(..<count))
    swap(&bytes, &chunk)
    chunk.wipe(first: count)
    return count
  }

  /// Takes bytes as they come.
  mutating func append(_ bytes: borrowing Span<UInt8>) {
    discardTaken()
    received.appendWiping(bytes)
  }

  /// The next line without its end; nil when it is not whole yet. Whoever gets one that may hold a secret wipes it.
  mutating func next() -> [UInt8]? {
    guard let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = received.count
      return nil
    }
    let line = Array(received[taken..<end])
    // Not put off until more comes, which may be never.
    for place in taken..<end { received[place] = 0 }
    taken = end + 1
    searched = taken
    return line
  }

  /// The beginning of a line that is longer than any: nothing of use comes any more.
  var overlong: [UInt8]? { received.count - taken > Self.longestLine ? Array(received[taken...].prefix(1_024)) : nil }

  private mutating func discardTaken() {
    guard taken > 0 else { return }
    var rest = Array(received[taken...])
    defer { rest.wipe() }
    received.wipe()
    received.removeAll(keepingCapacity: true)
    received += rest
    searched -= taken
    taken = 0
  }
}
