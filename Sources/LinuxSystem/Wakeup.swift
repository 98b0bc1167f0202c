import CLinux
import Glibc

/// A bell between two threads (eventfd(2)): rung any number of times, it wakes the other side once.
package struct Wakeup: ~Copyable, Sendable {
  /// Readable once the bell was rung.
  package let descriptor: Descriptor

  /// Makes a bell; `blocking` says whether ``wait()`` waits.
  package init(blocking: Bool) throws(SystemError) {
    descriptor = Descriptor(adopting: try system("eventfd") { clinux_eventfd(blocking ? 0 : 1) })
  }

  /// Rings. A counter that is full already wakes all the same, so EAGAIN is no failure.
  package func ring() {
    var one: UInt64 = 1
    let number = descriptor.number
    _ = attempt { unsafe Glibc.write(number, &one, 8) }
  }

  /// Waits for the bell, or returns at once where it does not block, and resets it.
  package func wait() {
    var count: UInt64 = 0
    let number = descriptor.number
    _ = attempt { unsafe Glibc.read(number, &count, 8) }
  }
}
