import LinuxSystem

/// Bytes that are nobody else's business: a password, a token, a key.
///
/// Their memory is overwritten when the last copy of this value is gone, and nothing that prints a value shows them. Copies
/// share one memory. What ``withBytes(_:)`` hands out is the caller's to keep safe. The system may still write memory to
/// swap, and a core dump of the program holds it.
public struct Secret: Sendable {
  private let memory: Memory

  /// Copies the bytes. Those that were given stay where they are.
  public init(_ bytes: borrowing Span<UInt8>) {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for index in bytes.indices { copy.append(bytes[index]) }
    memory = Memory(copy)
  }

  /// Copies the bytes of a text in UTF-8. The text stays where it is: what comes as bytes is better kept as bytes.
  public init(_ text: String) { memory = Memory(Array(text.utf8)) }

  /// How many bytes there are.
  public var count: Int { memory.bytes.count }

  /// Hands the bytes to `body`, for as long as it runs.
  public func withBytes<Outcome, Failure: Error>(
    _ body: (borrowing Span<UInt8>) throws(Failure) -> Outcome
  ) throws(Failure) -> Outcome {
    let bytes = memory.bytes
    return try body(bytes.span)
  }

  private final class Memory: @unchecked Sendable {
    // Sendable: the bytes are changed by nobody but the last owner, at its end.
    fileprivate private(set) var bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    deinit { bytes.wipe() }
  }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Says that it is a secret, and nothing of it.
  public var description: String { "Secret" }
  /// Says that it is a secret, and nothing of it.
  public var debugDescription: String { "Secret" }
  /// Has no children: `dump(_:)` and debuggers show nothing.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
