/// Values that leave in the order they came.
struct FirstInFirstOut<Element> {
  private var elements: [Element] = []
  /// How many at the front have left.
  private var left = 0

  var count: Int { elements.count - left }
  var first: Element? { left < elements.count ? elements[left] : nil }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard let first else { return nil }
    left += 1
    // What has left is thrown away when it is the greater part: each is moved once at most.
    if left * 2 > elements.count {
      elements.removeFirst(left)
      left = 0
    }
    return first
  }

  /// Puts values in front of all others, in this order.
  mutating func prepend(_ others: [Element]) {
    elements.replaceSubrange(..<left, with: others)
    left = 0
  }
}

extension FirstInFirstOut: Sendable where Element: Sendable {}
