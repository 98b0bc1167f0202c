import CLinux
public import Glibc

/// A buffer of fixed size in memory of its own, which avoids Swift's exclusivity checks.
///
/// Swift checks each access to an array that an object holds for exclusivity, which costs more than the operations of
/// this type. The buffer needs no such check: it calls no other code while bytes change, and the bytes that
/// ``withBytes(first:_:)`` lends out do not change meanwhile.
@safe @usableFromInline
package struct ByteBuffer: ~Copyable {
  @usableFromInline let start: UnsafeMutableRawPointer
  /// The size of the buffer, in bytes.
  @usableFromInline package let count: Int
  @usableFromInline let isLent: UnsafeMutablePointer<Bool>

  /// Creates a buffer of zeros. Pages that are never used take no memory.
  package init(count: Int) {
    precondition(count > 0)
    // Not from the heap, because reused heap memory would have to be overwritten with zeros completely.
    let start = unsafe mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let start = unsafe start, unsafe start != MAP_FAILED else { abort() }
    unsafe self.start = start
    self.count = count
    unsafe isLent = .allocate(capacity: 1)
    unsafe isLent.initialize(to: false)
  }

  deinit {
    unsafe munmap(start, count)
    unsafe isLent.deallocate()
  }

  /// Returns the address of bytes that are to be changed. Traps if the range is out of bounds or bytes are lent out.
  @inlinable @inline(__always)
  func address(of first: Int, count length: Int) -> UnsafeMutableRawPointer {
    precondition(first >= 0 && length >= 0 && length <= count - first)
    precondition(unsafe !isLent.pointee)
    return unsafe start + first
  }

  /// Lends the first bytes to `body`, which must not use the buffer itself.
  @inlinable @inline(__always)
  package func withBytes<Result>(first length: Int, _ body: (borrowing Span<UInt8>) -> Result) -> Result {
    let bytes = unsafe UnsafeBufferPointer(
      start: address(of: 0, count: length).assumingMemoryBound(to: UInt8.self), count: length)
    unsafe isLent.pointee = true
    defer { unsafe isLent.pointee = false }
    return body(unsafe bytes.span)
  }

  /// Overwrites the first bytes with zeros. The compiler cannot remove the call (explicit_bzero(3)).
  @inlinable @inline(__always)
  package func wipe(first length: Int) { unsafe explicit_bzero(address(of: 0, count: length), length) }

  /// Copies bytes into the buffer, from an index on.
  package func replace(from first: Int, with bytes: borrowing Span<UInt8>) {
    let target = unsafe address(of: first, count: bytes.count)
    unsafe bytes.withUnsafeBytes { source in
      if let base = source.baseAddress { unsafe target.copyMemory(from: base, byteCount: source.count) }
    }
  }

  /// Copies bytes of another buffer into this buffer, from an index on.
  @inlinable @inline(__always)
  package func replace(from first: Int, with other: borrowing ByteBuffer, from start: Int, count length: Int) {
    unsafe memcpy(address(of: first, count: length), other.address(of: start, count: length), length)
  }

  /// Returns whether the bytes from an index on equal the given bytes.
  @inlinable @inline(__always)
  package func isEqual(to bytes: borrowing Span<UInt8>, at first: Int) -> Bool {
    let own = unsafe address(of: first, count: bytes.count)
    return unsafe bytes.withUnsafeBytes { others in
      guard let base = others.baseAddress else { return true }
      return unsafe memcmp(own, base, others.count) == 0
    }
  }
}

extension Descriptor {
  /// Receives available bytes from a socket into the front of the buffer, as ``read(into:)`` does.
  ///
  /// For a socket that has called ``refuseDescriptors()``. If descriptors come with bytes all the same, the
  /// read ends after those bytes.
  package func receive(into buffer: borrowing ByteBuffer, atMost limit: Int) throws(SystemError) -> Int? {
    let number = number
    let length = min(limit, buffer.count)
    let address = unsafe buffer.address(of: 0, count: length)
    let result = attempt { unsafe clinux_receive(number, address, length) }
    return try result.available(as: "recv")
  }

  /// Receives available bytes from a socket into the front of the buffer, as ``read(into:)`` does,
  /// and discards descriptors.
  ///
  /// - Parameter isCut: set to whether descriptors came with the bytes. The read ends after those bytes, so
  ///   more bytes may be available.
  package func receive(
    into buffer: borrowing ByteBuffer, atMost limit: Int, isCut: inout Bool
  ) throws(SystemError) -> Int? {
    let number = number
    var cut: Int32 = 0
    let length = min(limit, buffer.count)
    let address = unsafe buffer.address(of: 0, count: length)
    let result = attempt { unsafe clinux_receive_message(number, address, length, &cut) }
    isCut = cut != 0
    return try result.available(as: "recvmsg")
  }

  /// Sends as many of the first bytes as the socket takes now, as ``send(_:from:to:)`` does.
  package func send(_ buffer: borrowing ByteBuffer, first length: Int) throws(SystemError) -> Int? {
    let number = number
    let address = unsafe buffer.address(of: 0, count: length)
    let result = attempt { unsafe clinux_send(number, address, length) }
    return try result.available(as: "send")
  }
}
