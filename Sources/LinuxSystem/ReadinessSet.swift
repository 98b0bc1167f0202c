import CLinux

/// A set of descriptors that are watched together (epoll(7)), each with a token that the caller chooses.
@safe @usableFromInline
package final class ReadinessSet {
  /// The conditions to wait for, or the conditions that occurred.
  @usableFromInline package struct Interest: OptionSet, Sendable {
    /// The event bits of epoll_ctl(2).
    @usableFromInline package let rawValue: UInt32
    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Data, or the end of the stream, can be read.
    @inlinable package static var read: Interest { Interest(rawValue: 0x001) }
    /// There is out-of-band data. A read stops in front of that data, although more bytes follow.
    @inlinable package static var urgent: Interest { Interest(rawValue: 0x002) }
    /// There is room to write.
    @inlinable package static var write: Interest { Interest(rawValue: 0x004) }
    /// The connection failed, or both sides have ended it. Always reported.
    @inlinable package static var failed: Interest { Interest(rawValue: 0x008 | 0x010) }
    /// The peer sends nothing more.
    @inlinable package static var ended: Interest { Interest(rawValue: 0x2000) }
    /// Edge-triggered: a condition is reported once, when it is new (EPOLLET).
    @inlinable package static var once: Interest { Interest(rawValue: 1 << 31) }
    /// The conditions of a connection without output to send, edge-triggered.
    @inlinable package static var news: Interest { [read, ended, urgent, once] }
    /// The conditions of ``news``, and room to write.
    @inlinable package static var newsAndRoom: Interest { [news, write] }
    /// The conditions under which a read may return fewer bytes than are available. The caller must read
    /// until a read returns no bytes.
    @inlinable package static var exceptional: Interest { [failed, ended, urgent] }
    /// All conditions that make a read worthwhile.
    @inlinable package static var input: Interest { [read, exceptional] }

    /// Returns whether the value contains any of the given conditions.
    @inlinable package func hasAny(of other: Interest) -> Bool { rawValue & other.rawValue != 0 }
  }

  /// A descriptor that is ready.
  @usableFromInline package struct Ready: Sendable {
    /// The token that the descriptor was added with.
    @usableFromInline package let token: UInt64
    /// The conditions that occurred.
    @usableFromInline package let interest: Interest
  }

  /// The largest number of descriptors that one wait reports.
  @inlinable package static var room: Int { 256 }

  private let descriptor: Descriptor
  /// The result of the last wait. Not an array, to avoid exclusivity checks; see ``ByteBuffer``.
  private let found: UnsafeMutablePointer<epoll_event>

  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try system("epoll_create1") { clinux_epoll_create() })
    unsafe found = .allocate(capacity: Self.room)
    unsafe found.initialize(repeating: epoll_event(), count: Self.room)
  }

  deinit { unsafe found.deallocate() }

  /// Adds a descriptor to the set.
  package func add(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(1, number, interest, token)
  }

  /// Changes the conditions of a descriptor. Conditions that hold now are reported again.
  package func modify(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(3, number, interest, token)
  }

  /// Removes a descriptor from the set.
  package func remove(_ number: Int32) throws(SystemError) { try control(2, number, [], 0) }

  private func control(_ operation: Int32, _ number: Int32, _ interest: Interest, _ token: UInt64) throws(SystemError) {
    let set = descriptor.number
    try system("epoll_ctl") { clinux_epoll_control(set, operation, number, interest.rawValue, token) }
  }

  /// Finds the descriptors that are ready.
  ///
  /// - Parameter waits: whether to wait until a descriptor is ready.
  /// - Returns: the number of ready descriptors, at most ``room``. The subscript returns each of them.
  package func wait(_ waits: Bool) throws(SystemError) -> Int {
    let (set, found) = unsafe (descriptor.number, found)
    let result = attempt { Int(unsafe clinux_epoll_wait(set, found, Int32(Self.room), waits ? -1 : 0)) }
    return try result.available(as: "epoll_wait") ?? 0
  }

  /// A ready descriptor of the last wait, by its index from 0.
  package subscript(_ index: Int) -> Ready {
    precondition(index >= 0 && index < Self.room)
    return unsafe Ready(token: clinux_epoll_token(found + index), interest: Interest(rawValue: found[index].events))
  }
}
