import Glibc

// Bytes that may hold a secret are overwritten before their memory is freed, because freed memory is used again.
extension [UInt8] {
  /// Overwrites the first bytes with zeros. The compiler cannot remove the call (explicit_bzero(3)).
  ///
  /// The array must be the only reference to its storage. Otherwise the array gets a copy, and the
  /// shared storage keeps the bytes.
  package mutating func wipe(first count: Int) {
    unsafe withUnsafeMutableBytes { buffer in
      if let start = buffer.baseAddress { unsafe explicit_bzero(start, Swift.min(count, buffer.count)) }
    }
  }

  /// Overwrites all bytes with zeros.
  package mutating func wipe() { wipe(first: count) }

  /// Appends bytes. If the array needs larger storage, the old storage is wiped.
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
