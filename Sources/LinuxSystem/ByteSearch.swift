public import Glibc

// glibc handles many bytes at a time, but a loop in Swift only one. Inlinable, because every request runs this code.
extension Span<UInt8> {
  /// Returns the index of the first byte equal to `byte`, from `start` on (memchr(3)), or nil if there is none.
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

  /// A fast hash of the first eight bytes, the last eight bytes and the length, which tells most spans apart.
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
