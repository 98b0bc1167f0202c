import CLinux
public import Glibc

/// A fixed number of bytes in memory of their own.
///
/// An array that an object holds is looked at with each use, whether somebody else changes it just then. That costs more
/// than what is done here, and there is no need for it: nobody else is called while bytes are changed, and those that are
/// lent out by ``withBytes(first:_:)`` do not change meanwhile.
@safe @usableFromInline
package struct ByteBuffer: ~Copyable {
  @usableFromInline let start: UnsafeMutableRawPointer
  /// How many there are.
  @usableFromInline package let count: Int
  @usableFromInline let isLent: UnsafeMutablePointer<Bool>

  /// Makes one of zeros. What is never used takes no memory.
  package init(count: Int) {
    precondition(count > 0)
    // Not from the heap: memory that was used before would be overwritten with zeros, all of it.
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

  /// The place of some bytes that are to be changed.
  @inlinable @inline(__always)
  func place(of first: Int, count length: Int) -> UnsafeMutableRawPointer {
    precondition(first >= 0 && length >= 0 && length <= count - first)
    precondition(unsafe !isLent.pointee)
    return unsafe start + first
  }

  /// Lends out the bytes at the front.
  @inlinable @inline(__always)
  package func withBytes<Result>(first length: Int, _ body: (borrowing Span<UInt8>) -> Result) -> Result {
    let bytes = unsafe UnsafeBufferPointer(
      start: place(of: 0, count: length).assumingMemoryBound(to: UInt8.self), count: length)
    unsafe isLent.pointee = true
    defer { unsafe isLent.pointee = false }
    return body(unsafe bytes.span)
  }

  /// Overwrites the bytes at the front with zeros, in a way that no compiler leaves out (explicit_bzero(3)).
  @inlinable @inline(__always)
  package func wipe(first length: Int) { unsafe explicit_bzero(place(of: 0, count: length), length) }

  /// Puts bytes in the place of those from a place on.
  package func replace(from first: Int, with bytes: borrowing Span<UInt8>) {
    let target = unsafe place(of: first, count: bytes.count)
    unsafe bytes.withUnsafeBytes { source in
      if let base = source.baseAddress { unsafe target.copyMemory(from: base, byteCount: source.count) }
    }
  }

  /// Puts some bytes of another buffer in the place of those from a place on.
  @inlinable @inline(__always)
  package func replace(from first: Int, with other: borrowing ByteBuffer, from start: Int, count length: Int) {
    unsafe memcpy(place(of: first, count: length), other.place(of: start, count: length), length)
  }

  /// Whether the bytes from a place on are the same.
  @inlinable @inline(__always)
  package func isEqual(to bytes: borrowing Span<UInt8>, at first: Int) -> Bool {
    let own = unsafe place(of: first, count: bytes.count)
    return unsafe bytes.withUnsafeBytes { others in
      guard let base = others.baseAddress else { return true }
      return unsafe memcmp(own, base, others.count) == 0
    }
  }
}

extension Descriptor {
  /// Receives from a socket into the front of the buffer what has arrived, as ``read(into:)`` does.
  ///
  /// For a socket that ``refuseDescriptors()``: where some come with the bytes all the same, the kernel stops behind them.
  package func receive(into buffer: borrowing ByteBuffer, atMost limit: Int) throws(SystemError) -> Int? {
    let number = number
    let length = min(limit, buffer.count)
    let place = unsafe buffer.place(of: 0, count: length)
    let result = attempt { unsafe clinux_receive(number, place, length) }
    return try result.available(as: "recv")
  }

  /// Receives from a socket into the front of the buffer what has arrived, as ``read(into:)`` does.
  ///
  /// - Parameter isCut: becomes whether descriptors came with the bytes. They are thrown away, and the kernel stops behind
  ///   them, so there may be more.
  package func receive(
    into buffer: borrowing ByteBuffer, atMost limit: Int, isCut: inout Bool
  ) throws(SystemError) -> Int? {
    let number = number
    var cut: Int32 = 0
    let length = min(limit, buffer.count)
    let place = unsafe buffer.place(of: 0, count: length)
    let result = attempt { unsafe clinux_receive_message(number, place, length, &cut) }
    isCut = cut != 0
    return try result.available(as: "recvmsg")
  }

  /// Sends what is taken now of the bytes at the front, as ``send(_:from:to:)`` does.
  package func send(_ buffer: borrowing ByteBuffer, first length: Int) throws(SystemError) -> Int? {
    let number = number
    let place = unsafe buffer.place(of: 0, count: length)
    let result = attempt { unsafe clinux_send(number, place, length) }
    return try result.available(as: "send")
  }
}
