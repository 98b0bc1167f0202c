/// The bytes on their way through a connection. They take memory only while there are any.
struct ConnectionBuffers {
  /// Bytes with a stored answer to whether there are any, because a check of the array would cost as much as all other
  /// checks of a request together.
  struct Pending {
    private(set) var bytes: [UInt8] = []
    private(set) var isEmpty = true

    /// Removes and returns all bytes. The array is then referenced only by the caller, and its use needs none of Swift's
    /// exclusivity checks, which cost more than most operations on it.
    mutating func take() -> [UInt8] {
      defer { bytes = [] }
      return bytes
    }

    /// Puts bytes in the place of those that were taken.
    mutating func put(_ new: consuming [UInt8]) {
      isEmpty = new.isEmpty
      bytes = new
    }
  }

  /// Input that was received and not carried out yet.
  var input = Pending()
  /// Output to be sent.
  var output = Pending()
  /// The number of bytes of the output that are sent.
  var sent = 0

  /// Whether the socket has not taken all output.
  var hasUnsentOutput: Bool { !output.isEmpty && sent < output.bytes.count }
}
