import CEpoll
import Glibc

/// The sockets of all simulated devices, of which few have something to read at a time (epoll(7)).
@safe final class Poller {
  private let descriptor: Int32
  // Only the numbers of the events are used, of the union that they are in.
  private var found = unsafe [epoll_event](repeating: epoll_event(), count: 1_024)

  init() throws {
    descriptor = epoll_create1(0)
    guard descriptor >= 0 else { throw BenchError.system("epoll_create1") }
  }

  deinit { close(descriptor) }

  /// Watches a socket for data, and also for room to write if some bytes wait.
  ///
  /// - Parameters:
  ///   - number: returned by ``wait(milliseconds:)``.
  ///   - isNew: whether the socket was not watched before.
  func watch(_ socket: Int32, as number: UInt64, writes: Bool, isNew: Bool) throws {
    var event = unsafe epoll_event(
      events: EPOLLIN.rawValue | (writes ? EPOLLOUT.rawValue : 0), data: epoll_data_t(u64: number))
    guard unsafe epoll_ctl(descriptor, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event) == 0 else {
      throw BenchError.system("epoll_ctl")
    }
  }

  /// Returns the numbers of the sockets that are ready, after a time at most. Closed sockets are not watched any more.
  func wait(milliseconds: Int32) throws -> [UInt64] {
    let count = unsafe epoll_wait(descriptor, &found, Int32(found.count), milliseconds)
    guard count >= 0 || errno == EINTR else { throw BenchError.system("epoll_wait") }
    return unsafe found.prefix(Int(max(count, 0))).map { unsafe $0.data.u64 }
  }
}

/// The reason why a measurement failed.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// The failure of a system call, from `errno`.
  static func system(_ call: String) -> BenchError {
    unsafe BenchError("\(call): \(String(cString: strerror(errno)))")
  }
}
