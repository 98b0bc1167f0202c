/// A queue of values from one thread to another. The bell wakes the receiver once for any number of values.
@usableFromInline
package final class Mailbox<Element: Sendable>: Sendable {
  @usableFromInline let elements = Locked<[Element]>([])
  @usableFromInline let bell: Wakeup

  /// The descriptor that is readable while the mailbox may have values.
  package var descriptor: Int32 { bell.descriptor.number }

  /// Creates a mailbox. `blocking` says whether ``takeAll(waits:)`` waits for a value.
  package init(blocking: Bool) throws(SystemError) { bell = try Wakeup(blocking: blocking) }

  /// Adds a value and wakes the receiver.
  @inlinable package func send(_ element: Element) { if put(element) { ring() } }

  /// Adds a value without waking the receiver.
  ///
  /// - Returns: whether the mailbox was empty, so that the receiver has to be woken. Otherwise the receiver is woken
  ///   for an earlier value, and takes all values together.
  @inlinable package func put(_ element: Element) -> Bool {
    elements.withLock { elements in
      elements.append(element)
      return elements.count == 1
    }
  }

  /// The number of values.
  @inlinable package var count: Int { elements.withLock { $0.count } }

  /// Wakes the receiver.
  @inlinable package func ring() { bell.ring() }

  /// Removes and returns all values.
  ///
  /// - Parameter waits: whether to wait for a value if there is none. A mailbox that does not block never waits.
  @inlinable package func takeAll(waits: Bool = true) -> [Element] {
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
