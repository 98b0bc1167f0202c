import CLinux
import Glibc

/// A wait that ends at a deadline (poll(2)).
package enum TimedWait {
  /// The reason why a wait ended.
  package enum End: Equatable, Sendable {
    /// Data, or the end of the stream, can be read.
    case readable
    /// There is room to write.
    case room
    /// The bell was rung.
    case rung
    /// Standard output has no reader any more.
    case outputClosed
    /// The deadline has passed.
    case timeUp
  }

  /// Waits until a descriptor is ready, the bell rings, standard output loses its reader, or the deadline passes.
  ///
  /// - Parameters:
  ///   - number: the descriptor to read from; nil to wait without a descriptor.
  ///   - wantsRoom: whether room to write to the descriptor ends the wait as well.
  ///   - watchesOutput: whether the wait ends as well when standard output has no reader any more. A file and a
  ///     terminal always have a reader.
  ///   - bell: the descriptor of a ``Wakeup`` that ends the wait when the bell rings. The wait does not reset the bell.
  ///   - deadline: a time of ``Clock/monotonicMicroseconds``; nil to wait without limit.
  /// - Returns: the reason. Of several, a closed output comes first, then the bell.
  package static func wait(
    for number: Int32?, wantsRoom: Bool = false, watchesOutput: Bool = false, bell: Int32? = nil,
    until deadline: UInt64?
  ) throws(SystemError) -> End {
    // poll(2) ignores a negative descriptor, and reports a broken pipe without being asked.
    let events = Int16(wantsRoom ? POLLIN | POLLOUT : POLLIN)
    let input = pollfd(fd: number ?? -1, events: events, revents: 0)
    let output = pollfd(fd: watchesOutput ? STDOUT_FILENO : -1, events: 0, revents: 0)
    let rings = pollfd(fd: bell ?? -1, events: Int16(POLLIN), revents: 0)
    while true {
      var watched: InlineArray<3, pollfd> = [input, output, rings]
      var span = watched.mutableSpan
      let limit = milliseconds(until: deadline)
      let count = unsafe span.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 3, limit) }
      let code = errno
      if count == -1, code != EINTR { throw SystemError(call: "poll", code: code) }
      if count > 0 {
        if watched[1].revents != 0 { return .outputClosed }
        if watched[2].revents != 0 { return .rung }
        return watched[0].revents == Int16(POLLOUT) ? .room : .readable
      }
      if let deadline, Clock.monotonicMicroseconds >= deadline { return .timeUp }
    }
  }

  /// Returns the remaining time in milliseconds for poll(2), rounded up to avoid a busy loop at the end.
  private static func milliseconds(until deadline: UInt64?) -> Int32 {
    guard let deadline else { return -1 }
    let now = Clock.monotonicMicroseconds
    guard deadline > now else { return 0 }
    let left = deadline - now
    return Int32(clamping: left / 1_000 + (left % 1_000 == 0 ? 0 : 1))
  }
}

extension UnixSocket {
  /// Connects without waiting. The descriptor is non-blocking.
  ///
  /// - Returns: nil if the listener's backlog is full.
  package static func connectAtOnce(to path: String) throws(SystemError) -> Descriptor? {
    let socket = Descriptor(adopting: try system("socket") { clinux_unix_stream(1) })
    let number = socket.number
    do {
      try system("connect \(path)") { unsafe path.withCString { unsafe clinux_connect_path(number, $0) } }
    } catch  where error.code == EAGAIN {
      return nil
    }
    return socket
  }
}
