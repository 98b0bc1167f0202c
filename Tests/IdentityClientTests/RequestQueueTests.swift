import Testing

@testable import IdentityClient

struct RequestQueueTests {
  private typealias Queue = RequestQueue<String>

  /// Enters a question of this caller, or a change if the caller's name begins with `change`.
  private func enter(_ queue: inout Queue, _ caller: String, until deadline: UInt64? = nil) -> UInt64 {
    let ticket = queue.announce()
    let line: RequestLine = caller.hasPrefix("change") ? .change(caller) : .question(caller)
    let isTaken = queue.enter(ticket, line, until: deadline, caller)
    #expect(isTaken)
    return ticket
  }

  /// Takes all unsent requests and returns their tickets.
  private func sent(_ queue: inout Queue) -> [UInt64] {
    var tickets: [UInt64] = []
    while let next = queue.takeUnsent() { tickets.append(next.ticket) }
    return tickets
  }

  @Test func `requests are sent in order, and each caller is answered once`() {
    var queue = Queue()
    let tickets = ["a", "b", "c"].map { enter(&queue, $0) }
    #expect(sent(&queue) == tickets)
    #expect(queue.finish(tickets[1]) == "b")
    #expect(queue.finish(tickets[1]) == nil)
    #expect(queue.cancel(tickets[1]) == nil)
    #expect(queue.finish(tickets[0]) == "a")
    #expect(!queue.isEmpty)
    #expect(queue.finish(tickets[2]) == "c")
    #expect(queue.isEmpty)
  }

  @Test func `a request that is cancelled before it is sent is not sent, and late answers are dropped`() {
    var queue = Queue()
    let tickets = ["a", "b"].map { enter(&queue, $0) }
    #expect(queue.cancel(tickets[0]) == "a")
    #expect(sent(&queue) == [tickets[1]])
    #expect(queue.cancel(tickets[1]) == "b")
    #expect(queue.finish(tickets[1]) == nil)
  }

  @Test func `a caller that is cancelled before it enters does not enter`() {
    var queue = Queue()
    let ticket = queue.announce()
    #expect(queue.cancel(ticket) == nil)
    let isTaken = queue.enter(ticket, .question("a"), until: nil, "a")
    #expect(!isTaken)
    #expect(queue.isEmpty)
    #expect(sent(&queue) == [])
  }

  @Test func `each deadline expires at its time, and only for callers that still wait`() {
    var queue = Queue()
    let tickets = [10, 20, 30].map { (moment: UInt64) in enter(&queue, "q\(moment)", until: moment) }
    let first = queue.nextDeadline()
    #expect(first == 10)
    #expect(queue.finish(tickets[0]) == "q10")
    let second = queue.nextDeadline()
    #expect(second == 20)
    #expect(queue.expire(at: 19) == [])
    #expect(queue.expire(at: 20) == ["q20"])
    #expect(queue.expire(at: 100) == ["q30"])
    let none = queue.nextDeadline()
    #expect(none == nil)
    #expect(sent(&queue) == [])
  }

  @Test func `a lost query is sent once more, before others, and a lost change is not`() {
    var queue = Queue()
    let tickets = ["a", "change", "b", "c"].map { enter(&queue, $0) }
    #expect(sent(&queue) == tickets)
    let later = enter(&queue, "later")
    #expect(queue.cancel(tickets[2]) == "b")
    #expect(queue.requeue(tickets, asksAgain: true) == ["change"])
    let hasMore = queue.hasUnsent()
    #expect(hasMore)
    #expect(sent(&queue) == [tickets[0], tickets[3], later])
    #expect(queue.requeue([tickets[0], tickets[3], later], asksAgain: true) == ["a", "c"], "one time more is enough")
    #expect(queue.requeue([later], asksAgain: false) == ["later"])
  }

  @Test func `if the daemon cannot be reached, all unsent requests fail`() {
    var queue = Queue()
    let first = enter(&queue, "a")
    let sent = queue.takeUnsent()
    #expect(sent?.ticket == first)
    _ = enter(&queue, "b")
    _ = enter(&queue, "c")
    let failed = queue.failUnsent()
    #expect(failed == ["b", "c"])
    let hasMore = queue.hasUnsent()
    #expect(!hasMore)
    #expect(queue.finish(first) == "a")
  }

  @Test func `random additions and removals keep the order`() {
    var queue = FirstInFirstOut<Int>()
    var plain: [Int] = []
    for step in 0..<1_000 {
      switch step % 7 {
      case 0, 1, 2, 5:
        queue.append(step)
        plain.append(step)
      case 6:
        queue.prepend([-step, step])
        plain = [-step, step] + plain
      default:
        let expected = plain.isEmpty ? nil : plain.removeFirst()
        let first = queue.popFirst()
        #expect(first == expected)
      }
      #expect((queue.count, queue.first) == (plain.count, plain.first))
    }
  }
}
