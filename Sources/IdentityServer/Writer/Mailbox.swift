import LinuxSystem

/// A queue of values from one thread to another. The bell wakes the receiver once for any number of values.
final class Mailbox<Element: Sendable>: Sendable {
  private let elements = Locked<[Element]>([])
  private let bell: Wakeup

  /// The descriptor that is readable while the mailbox may have values.
  var descriptor: Int32 { bell.descriptor.number }

  /// Creates a mailbox. `blocking` says whether ``takeAll(waits:)`` waits for a value.
  init(blocking: Bool) throws(SystemError) { bell = try Wakeup(blocking: blocking) }

  /// Adds a value and wakes the receiver.
  func send(_ element: Element) { if put(element) { ring() } }

  /// Adds a value without waking the receiver.
  ///
  /// - Returns: whether the mailbox was empty, so that the receiver has to be woken. Otherwise the receiver is woken
  ///   for an earlier value, and takes all values together.
  func put(_ element: Element) -> Bool {
    elements.withLock { elements in
      elements.append(element)
      return elements.count == 1
    }
  }

  /// The number of values.
  var count: Int { elements.withLock { $0.count } }

  /// Wakes the receiver.
  func ring() { bell.ring() }

  /// Removes and returns all values.
  ///
  /// - Parameter waits: whether to wait for a value if there is none. A mailbox that does not block never waits.
  func takeAll(waits: Bool = true) -> [Element] {
    // Without `waits` the bell is not reset. The next wait then returns at once, perhaps without values, which
    // is harmless.
    if waits { bell.wait() }
    return elements.withLock { elements in
      let taken = elements
      elements = []
      return taken
    }
  }
}
