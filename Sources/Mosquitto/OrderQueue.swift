/// The orders to a connection that wait, within bounds.
///
/// An order without room is dropped. The rules of the fleet notice that, because they read back what they publish, and
/// wait for the acknowledgement of their subscriptions.
struct OrderQueue: Sendable {
  enum Order: Equatable, Sendable {
    case subscribe(String)
    case publish(Publication)
  }

  /// The greatest number of publications that wait.
  static let mostPublications = 64
  /// The greatest size of all publications that wait, in bytes.
  static let mostBytes = 1 << 20
  /// The greatest number of subscriptions that wait.
  static let mostSubscriptions = 256

  private var waiting: [Order] = []
  private var publications = 0
  private var bytes = 0
  /// Whether the connection has to end.
  private(set) var isClosed = false
  /// Whether no order waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Adds a subscription, unless the same one waits already.
  mutating func subscribe(to filter: String) {
    let order = Order.subscribe(filter)
    guard waiting.count - publications < Self.mostSubscriptions, !waiting.contains(order) else { return }
    waiting.append(order)
  }

  /// Adds a message, in place of an earlier one with the same topic.
  mutating func publish(_ publication: Publication) {
    for (index, order) in waiting.enumerated() {
      guard case .publish(let earlier) = order, earlier.topic == publication.topic else { continue }
      let size = bytes - earlier.size + publication.size
      guard size <= Self.mostBytes else { return }
      bytes = size
      waiting[index] = .publish(publication)
      return
    }
    guard publications < Self.mostPublications, bytes + publication.size <= Self.mostBytes else { return }
    publications += 1
    bytes += publication.size
    waiting.append(.publish(publication))
  }

  /// Removes and returns the first order; nil if none waits.
  mutating func next() -> Order? {
    guard !waiting.isEmpty else { return nil }
    let order = waiting.removeFirst()
    if case .publish(let publication) = order {
      publications -= 1
      bytes -= publication.size
    }
    return order
  }

  /// Ends the connection. Of the orders that wait, only the publications are still of use.
  mutating func close() {
    isClosed = true
    waiting.removeAll { if case .subscribe = $0 { true } else { false } }
  }
}
