import CLinux
import Glibc

/// A bell between two threads (eventfd(2)). Any number of rings wakes the other thread once.
@usableFromInline package struct Wakeup: ~Copyable, Sendable {
  /// The descriptor, which is readable after a ring.
  package let descriptor: Descriptor

  /// Creates a bell. `blocking` says whether ``wait()`` waits.
  package init(blocking: Bool) throws(SystemError) {
    descriptor = Descriptor(adopting: try system("eventfd") { clinux_eventfd(blocking ? 0 : 1) })
  }

  /// Rings the bell. EAGAIN is no failure, because a full counter also wakes the other thread.
  @usableFromInline package func ring() {
    var one: UInt64 = 1
    let number = descriptor.number
    _ = attempt { unsafe Glibc.write(number, &one, 8) }
  }

  /// Waits for a ring and resets the bell. A non-blocking bell does not wait.
  @usableFromInline package func wait() {
    var count: UInt64 = 0
    let number = descriptor.number
    _ = attempt { unsafe Glibc.read(number, &count, 8) }
  }
}
