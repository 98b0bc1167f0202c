import CLinux

/// Descriptors watched together (epoll(7)), each under a token of the caller's choice.
@safe @usableFromInline
package struct ReadinessSet: ~Copyable {
  /// What is waited for, and what came.
  @usableFromInline package struct Interest: OptionSet, Sendable {
    /// The bits of epoll_ctl(2).
    @usableFromInline package let rawValue: UInt32
    /// Takes epoll's bits.
    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }
    /// There is something to read, or the end of the stream.
    @inlinable package static var read: Interest { Interest(rawValue: 0x001) }
    /// There are bytes out of band: reading stops in front of them, with more behind.
    @inlinable package static var urgent: Interest { Interest(rawValue: 0x002) }
    /// There is room to write.
    @inlinable package static var write: Interest { Interest(rawValue: 0x004) }
    /// The connection broke, or both sides have ended it; always reported.
    @inlinable package static var failed: Interest { Interest(rawValue: 0x008 | 0x010) }
    /// The other side sends nothing more.
    @inlinable package static var ended: Interest { Interest(rawValue: 0x2000) }
    /// Report what is new, and not again what was reported already (EPOLLET).
    @inlinable package static var once: Interest { Interest(rawValue: 1 << 31) }
    /// What a connection has to tell whenever it is new.
    @inlinable package static var news: Interest { [read, ended, urgent, once] }
    /// The same, and that there is room.
    @inlinable package static var newsAndRoom: Interest { [news, write] }
    /// Less may come than there is: it is read until nothing comes.
    @inlinable package static var exceptional: Interest { [failed, ended, urgent] }
    /// Whatever makes it worth reading.
    @inlinable package static var input: Interest { [read, exceptional] }

    /// Whether any of these is among it.
    @inlinable package func hasAny(of other: Interest) -> Bool { rawValue & other.rawValue != 0 }
  }

  /// One descriptor that is ready.
  @usableFromInline package struct Ready: Sendable {
    /// The token it was added under.
    @usableFromInline package let token: UInt64
    /// What it is ready for.
    @usableFromInline package let interest: Interest
  }

  /// How many are told of at a time.
  @inlinable package static var room: Int { 256 }

  private let descriptor: Descriptor
  /// What the last wait found. No array: see ``ByteBuffer``.
  private let found: UnsafeMutablePointer<epoll_event>

  /// Makes an empty set.
  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try system("epoll_create1") { clinux_epoll_create() })
    unsafe found = .allocate(capacity: Self.room)
    unsafe found.initialize(repeating: epoll_event(), count: Self.room)
  }

  deinit { unsafe found.deallocate() }

  /// Watches one more descriptor.
  package func add(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(1, number, interest, token)
  }

  /// Changes what a descriptor is watched for. What it is ready for now is reported anew.
  package func modify(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(3, number, interest, token)
  }

  /// Watches a descriptor no longer.
  package func remove(_ number: Int32) throws(SystemError) { try control(2, number, [], 0) }

  private func control(_ operation: Int32, _ number: Int32, _ interest: Interest, _ token: UInt64) throws(SystemError) {
    let set = descriptor.number
    try system("epoll_ctl") { clinux_epoll_control(set, operation, number, interest.rawValue, token) }
  }

  /// Looks what is ready.
  ///
  /// - Parameter waits: whether to wait until something is.
  /// - Returns: how many are, at most ``room``; each is then to be had by its place.
  package func wait(_ waits: Bool) throws(SystemError) -> Int {
    let (set, found) = unsafe (descriptor.number, found)
    let result = attempt { Int(unsafe clinux_epoll_wait(set, found, Int32(Self.room), waits ? -1 : 0)) }
    return try result.available(as: "epoll_wait") ?? 0
  }

  /// What the last wait found, by its place from 0 on.
  package subscript(_ place: Int) -> Ready {
    precondition(place >= 0 && place < Self.room)
    return unsafe Ready(token: clinux_epoll_token(found + place), interest: Interest(rawValue: found[place].events))
  }
}
