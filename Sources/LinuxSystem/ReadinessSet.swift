import CLinux

/// Descriptors watched together (epoll(7)), each under a token of the caller's choice.
package struct ReadinessSet: ~Copyable {
  /// What is waited for, and what came.
  package struct Interest: OptionSet, Sendable {
    /// The bits of epoll_ctl(2).
    package let rawValue: UInt32
    /// Takes epoll's bits.
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    /// There is something to read, or the end of the stream.
    package static let read = Interest(rawValue: 0x001)
    /// There are bytes out of band: reading stops in front of them, with more behind.
    package static let urgent = Interest(rawValue: 0x002)
    /// There is room to write.
    package static let write = Interest(rawValue: 0x004)
    /// The connection broke, or both sides have ended it; always reported.
    package static let failed = Interest(rawValue: 0x008 | 0x010)
    /// The other side sends nothing more.
    package static let ended = Interest(rawValue: 0x2000)
    /// Report what is new, and not again what was reported already (EPOLLET).
    package static let once = Interest(rawValue: 1 << 31)
    /// What a connection has to tell whenever it is new.
    package static let news = Interest(
      rawValue: read.rawValue | ended.rawValue | urgent.rawValue | once.rawValue)
    /// The same, and that there is room.
    package static let newsAndRoom = Interest(rawValue: news.rawValue | write.rawValue)
    /// Less may come than there is: it is read until nothing comes.
    package static let exceptional = Interest(rawValue: failed.rawValue | ended.rawValue | urgent.rawValue)

    /// Whether any of these is among it.
    package func hasAny(of other: Interest) -> Bool { rawValue & other.rawValue != 0 }
  }

  /// One descriptor that is ready.
  package struct Ready: Sendable {
    /// The token it was added under.
    package let token: UInt64
    /// What it is ready for.
    package let interest: Interest
  }

  /// How many are told of at a time.
  package static let room = 256

  private let descriptor: Descriptor
  /// What the last wait found.
  private var found = [clinux_readiness](repeating: clinux_readiness(), count: room)

  /// Makes an empty set.
  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try system("epoll_create1") { clinux_epoll_create() })
  }

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
  package mutating func wait(_ waits: Bool) throws(SystemError) -> Int {
    let set = descriptor.number
    let result = unsafe found.withUnsafeMutableBufferPointer { found in
      attempt { Int(unsafe clinux_epoll_wait(set, found.baseAddress, Int32(found.count), waits ? -1 : 0)) }
    }
    return try result.available(as: "epoll_wait") ?? 0
  }

  /// What the last wait found, by its place from 0 on.
  package subscript(_ place: Int) -> Ready {
    Ready(token: found[place].token, interest: Interest(rawValue: found[place].events))
  }
}
