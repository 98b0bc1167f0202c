import LinuxSystem

/// Hands values from one thread to another, in order. The bell wakes the receiver once for any number of them.
final class Mailbox<Element: Sendable>: Sendable {
  private let elements = Locked<[Element]>([])
  private let bell: Wakeup

  /// Readable while something may be in it.
  var descriptor: Int32 { bell.descriptor.number }

  /// Makes a mailbox; `blocking` says whether ``takeAll()`` waits for something to come.
  init(blocking: Bool) throws(SystemError) { bell = try Wakeup(blocking: blocking) }

  /// Puts a value in.
  func send(_ element: Element) { if put(element) { ring() } }

  /// Puts a value in without a sound.
  ///
  /// - Returns: whether the receiver has to be rung for. Whoever takes the elements takes all: for a mailbox that was not
  ///   empty somebody does that already.
  func put(_ element: Element) -> Bool {
    elements.withLock { elements in
      elements.append(element)
      return elements.count == 1
    }
  }

  /// How many values are in it.
  var count: Int { elements.withLock { $0.count } }

  /// Wakes the receiver.
  func ring() { bell.ring() }

  /// Takes everything out.
  ///
  /// - Parameter waits: whether to wait for something to come where nothing is there, if the mailbox blocks.
  func takeAll(waits: Bool = true) -> [Element] {
    // A bell that is left rung wakes the next that waits for nothing, which does no harm.
    if waits { bell.wait() }
    return elements.withLock { elements in
      let taken = elements
      elements = []
      return taken
    }
  }
}
