import Glibc

// Bytes that may hold a secret are overwritten before their memory goes back: freed memory is handed to whoever asks next.
extension [UInt8] {
  /// Overwrites the first bytes with zeros, in a way that no compiler leaves out (explicit_bzero(3)).
  ///
  /// The array has to be the only one with these bytes: where another shares them, it gets its own, and they stay there.
  package mutating func wipe(first count: Int) {
    unsafe withUnsafeMutableBytes { buffer in
      if let start = buffer.baseAddress { unsafe explicit_bzero(start, Swift.min(count, buffer.count)) }
    }
  }

  /// Overwrites all of it.
  package mutating func wipe() { wipe(first: count) }

  /// Appends bytes. Where that takes other memory, what was in the old is wiped.
  package mutating func appendWiping(_ bytes: borrowing Span<UInt8>) {
    if capacity - count < bytes.count {
      var grown: [UInt8] = []
      grown.reserveCapacity(Swift.max(2 * capacity, count + bytes.count))
      grown += self
      wipe()
      self = grown
    }
    unsafe bytes.withUnsafeBytes { bytes in unsafe append(contentsOf: bytes) }
  }
}
