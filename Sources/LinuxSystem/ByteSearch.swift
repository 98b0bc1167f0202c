public import Glibc

// What glibc does many bytes at a time, and a loop in Swift one by one. Inlinable: these run once a request.
extension Span<UInt8> {
  /// The place of the first byte like this one, from a place on (memchr(3)); nil where there is none.
  @inlinable @inline(__always)
  package func firstIndex(of byte: UInt8, from start: Int) -> Int? {
    precondition(start >= 0)
    return unsafe withUnsafeBytes { bytes -> Int? in
      guard start < bytes.count, let base = bytes.baseAddress,
        let found = unsafe memchr(base + start, Int32(byte), bytes.count - start)
      else { return nil }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  /// A number that tells most spans apart: its first and its last eight bytes, and how many there are.
  @inlinable @inline(__always)
  package var mark: UInt64 {
    var mark = UInt64(count)
    guard count >= 8 else {
      for index in indices { mark = mark << 8 | UInt64(self[index]) }
      return mark
    }
    unsafe withUnsafeBytes { bytes in
      let first = unsafe bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
      let last = unsafe bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
      mark = (mark ^ first) &* 0x9e37_79b9_7f4a_7c15 ^ last
    }
    return mark
  }
}
