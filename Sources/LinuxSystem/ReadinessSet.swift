import CLinux

/// Descriptors watched together (epoll(7), level-triggered), each under a token of the caller's choice.
package struct ReadinessSet: ~Copyable {
  /// What is waited for, and what came.
  package struct Interest: OptionSet, Sendable {
    /// The bits of epoll_ctl(2).
    package let rawValue: UInt32
    /// Takes epoll's bits.
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    /// There is something to read, or the end of the stream.
    package static let read = Interest(rawValue: 0x001)
    /// There is room to write.
    package static let write = Interest(rawValue: 0x004)
    /// The connection broke; always reported.
    package static let failed = Interest(rawValue: 0x008 | 0x010)
  }

  /// One descriptor that is ready.
  package struct Ready: Sendable {
    /// The token it was added under.
    package let token: UInt64
    /// What it is ready for.
    package let interest: Interest
  }

  /// The set's own descriptor: readable when something in it is ready.
  package let descriptor: Descriptor

  /// Makes an empty set.
  package init() throws(SystemError) {
    descriptor = Descriptor(adopting: try system("epoll_create1") { clinux_epoll_create() })
  }

  /// Watches one more descriptor.
  package func add(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(1, number, interest, token)
  }

  /// Changes what a descriptor is watched for.
  package func modify(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(3, number, interest, token)
  }

  /// Watches a descriptor no longer.
  package func remove(_ number: Int32) throws(SystemError) { try control(2, number, [], 0) }

  private func control(_ operation: Int32, _ number: Int32, _ interest: Interest, _ token: UInt64) throws(SystemError) {
    let set = descriptor.number
    try system("epoll_ctl") { clinux_epoll_control(set, operation, number, interest.rawValue, token) }
  }

  /// What is ready now, at most 256 a call; does not wait.
  package func ready(into list: inout [Ready], atMost limit: Int = 256) throws(SystemError) {
    let set = descriptor.number
    list.removeAll(keepingCapacity: true)
    var found = InlineArray<256, clinux_readiness>(repeating: clinux_readiness())
    var span = found.mutableSpan
    let count = Int32(max(1, min(limit, 256)))
    let filled = try system("epoll_wait") {
      unsafe span.withUnsafeMutableBufferPointer { unsafe clinux_epoll_wait(set, $0.baseAddress, count, 0) }
    }
    for index in 0..<Int(filled) {
      list.append(Ready(token: found[index].token, interest: Interest(rawValue: found[index].events)))
    }
  }
}
