import CLinux
import Glibc

/// Waiting for bytes, but not for ever (poll(2)).
package enum TimedWait {
  /// What ended a wait.
  package enum End: Equatable, Sendable {
    /// There is something to read, or the end of the stream.
    case readable
    /// There is room to write.
    case room
    /// The bell was rung.
    case rung
    /// Nobody reads standard output any more.
    case outputClosed
    /// The time is up.
    case timeUp
  }

  /// Waits.
  ///
  /// - Parameters:
  ///   - number: a descriptor that there may be something to read from; nil to let time pass.
  ///   - wantsRoom: whether the wait ends as well when there is room to write to that descriptor.
  ///   - watchesOutput: whether the wait ends as well when nobody reads standard output any more. A file and a terminal
  ///     always have a reader.
  ///   - bell: the descriptor of a ``Wakeup`` that ends the wait when it is rung; it is not reset.
  ///   - deadline: a moment of ``Clock/monotonicMicroseconds``; nil to wait for as long as it takes.
  /// - Returns: what ended it; of several at once, a closed output first, then the bell.
  package static func wait(
    for number: Int32?, wantsRoom: Bool = false, watchesOutput: Bool = false, bell: Int32? = nil,
    until deadline: UInt64?
  ) throws(SystemError) -> End {
    // A negative number is passed over; a broken pipe is told without being asked for.
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

  /// What is left, in the unit of poll(2) and rounded up, so that the last part is not spent in a busy loop.
  private static func milliseconds(until deadline: UInt64?) -> Int32 {
    guard let deadline else { return -1 }
    let now = Clock.monotonicMicroseconds
    guard deadline > now else { return 0 }
    let left = deadline - now
    return Int32(clamping: left / 1_000 + (left % 1_000 == 0 ? 0 : 1))
  }
}

extension UnixSocket {
  /// Connects where that takes no waiting; the descriptor does not block.
  ///
  /// - Returns: nil where as many wait to be accepted as the listener has room for.
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
