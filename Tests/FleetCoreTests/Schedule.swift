/// Events in the order of their times. Events of the same time keep the order in which they were added.
struct Schedule<Event> {
  private struct Entry {
    let time: Int
    let number: Int
    let event: Event

    static func < (left: Entry, right: Entry) -> Bool { (left.time, left.number) < (right.time, right.number) }
  }

  /// A binary heap: each entry comes before its two children.
  private var heap: [Entry] = []
  private var added = 0
  /// The time of the last event that was taken, in milliseconds.
  private(set) var now = 0

  mutating func add(_ event: Event, after delay: Int) {
    heap.append(Entry(time: now + max(0, delay), number: added, event: event))
    added += 1
    var child = heap.count - 1
    while child > 0, heap[child] < heap[(child - 1) / 2] {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Takes the next event up to a time; nil if there is none.
  mutating func next(until end: Int) -> Event? {
    guard let first = heap.first, first.time <= end else {
      now = max(now, end)
      return nil
    }
    now = first.time
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first.event }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child] < heap[least] {
        least = child
      }
      guard least != parent else { return first.event }
      heap.swapAt(least, parent)
      parent = least
    }
  }
}
