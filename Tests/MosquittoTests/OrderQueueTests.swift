import Testing

@testable import Mosquitto

/// The bounds of the mailbox for orders.
struct OrderQueueTests {
  private func publication(_ topic: String, _ count: Int = 1) -> Publication {
    Publication(topic: topic, payload: Array(repeating: 7, count: count), isRetained: true)
  }

  private func orders(of queue: OrderQueue) -> [OrderQueue.Order] {
    var queue = queue
    var orders: [OrderQueue.Order] = []
    while let order = queue.next() { orders.append(order) }
    return orders
  }

  @Test func `a newer message replaces an older one of its topic`() {
    var queue = OrderQueue()
    queue.publish(publication("a"))
    queue.subscribe(to: "s")
    queue.publish(publication("b"))
    queue.publish(publication("a", 2))
    #expect(orders(of: queue) == [.publish(publication("a", 2)), .subscribe("s"), .publish(publication("b"))])
  }

  @Test func `a subscription waits once`() {
    var queue = OrderQueue()
    for filter in ["a", "b", "a"] { queue.subscribe(to: filter) }
    #expect(orders(of: queue) == [.subscribe("a"), .subscribe("b")])
  }

  @Test func `64 messages wait, and the next ones are dropped`() {
    var queue = OrderQueue()
    for number in 0..<100 { queue.publish(publication("\(number)")) }
    queue.publish(publication("7", 3))
    let waiting = orders(of: queue)
    #expect(waiting.count == OrderQueue.mostPublications)
    #expect(waiting[7] == .publish(publication("7", 3)))
    #expect(waiting.last == .publish(publication("63")))
  }

  @Test func `messages of a mebibyte wait`() {
    var queue = OrderQueue()
    queue.publish(publication("a", OrderQueue.mostBytes / 2))
    queue.publish(publication("b", OrderQueue.mostBytes / 2))
    queue.publish(publication("c", 9))
    queue.publish(publication("a", OrderQueue.mostBytes))
    #expect(orders(of: queue) == [.publish(publication("a", OrderQueue.mostBytes / 2)), .publish(publication("c", 9))])
    // Room comes back with each order that is taken.
    while queue.next() != nil {}
    queue.publish(publication("b", OrderQueue.mostBytes / 2))
    #expect(queue.next() != nil)
  }

  @Test func `subscriptions have a bound`() {
    var queue = OrderQueue()
    for number in 0..<1_000 { queue.subscribe(to: "\(number)") }
    queue.publish(publication("a"))
    #expect(orders(of: queue).count == OrderQueue.mostSubscriptions + 1)
  }
}
