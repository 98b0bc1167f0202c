import LinuxSystem

/// Confidential bytes, such as a password, a token or a key.
///
/// The bytes are overwritten when the last copy of the value is released. Copies share one buffer. Printing, dumping
/// and debugging a value do not show the bytes. The caller must protect any bytes that it copies in ``withBytes(_:)``.
/// The system may still write the memory to swap, and a core dump of the program contains it.
public struct Secret: Sendable {
  private let memory: Memory

  /// Creates a secret from a copy of the bytes. The original bytes are not wiped.
  public init(_ bytes: borrowing Span<UInt8>) {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for index in bytes.indices { copy.append(bytes[index]) }
    memory = Memory(copy)
  }

  /// Creates a secret from the UTF-8 bytes of a text. The text is not wiped.
  ///
  /// Prefer the initializer for bytes if the secret arrives as bytes.
  public init(_ text: String) { memory = Memory(Array(text.utf8)) }

  /// The number of bytes.
  public var count: Int { memory.bytes.count }

  /// Calls `body` with the bytes, which are valid only during the call.
  ///
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`.
  public func withBytes<Outcome, Failure: Error>(
    _ body: (borrowing Span<UInt8>) throws(Failure) -> Outcome
  ) throws(Failure) -> Outcome {
    let bytes = memory.bytes
    return try body(bytes.span)
  }

  private final class Memory: @unchecked Sendable {
    // Sendable: only `deinit` changes the bytes, and at that time there is no other owner.
    fileprivate private(set) var bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    deinit { bytes.wipe() }
  }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The text `Secret`, without any of the bytes.
  public var description: String { "Secret" }
  /// The text `Secret`, without any of the bytes.
  public var debugDescription: String { "Secret" }
  /// A mirror without children, so that `dump(_:)` and debuggers show no bytes.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
