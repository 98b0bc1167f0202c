/// A FIFO queue.
struct FirstInFirstOut<Element> {
  private var elements: [Element] = []
  /// The number of removed elements at the front of the array.
  private var left = 0

  var count: Int { elements.count - left }
  var first: Element? { left < elements.count ? elements[left] : nil }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard let first else { return nil }
    left += 1
    // Compacting only when more than half of the array is removed keeps the amortized cost constant.
    if left * 2 > elements.count {
      elements.removeFirst(left)
      left = 0
    }
    return first
  }

  /// Inserts values in front of all others, in this order.
  mutating func prepend(_ others: [Element]) {
    elements.replaceSubrange(..<left, with: others)
    left = 0
  }
}

extension FirstInFirstOut: Sendable where Element: Sendable {}
