/// The unanswered requests of all callers of one client, with their deadlines.
///
/// The queue is a value without I/O. `Caller` is a handle that receives the outcome later, such as a continuation.
struct RequestQueue<Caller: Sendable>: Sendable {
  /// An unanswered request and its caller.
  private struct Waiting: Sendable {
    let line: RequestLine
    let deadline: UInt64?
    let caller: Caller
    var wasSentBefore = false
  }

  private var nextTicket: UInt64 = 0
  /// Tickets that were announced and not entered yet.
  private var announced: Set<UInt64> = []
  /// Tickets that were cancelled after `announce()` and before `enter(_:_:until:_:)`.
  private var cancelledEarly: Set<UInt64> = []
  private var waiting: [UInt64: Waiting] = [:]
  /// Unsent tickets, in order. Tickets without a waiting caller are skipped.
  private var unsent = FirstInFirstOut<UInt64>()
  /// Deadlines in ascending order, because all requests have the same time limit.
  private var deadlines = FirstInFirstOut<(ticket: UInt64, moment: UInt64)>()

  /// Whether no caller waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Returns a ticket for a caller that is about to enter, so that the caller can be cancelled from now on.
  mutating func announce() -> UInt64 {
    nextTicket += 1
    announced.insert(nextTicket)
    return nextTicket
  }

  /// Adds a request.
  ///
  /// - Returns: False if the ticket was cancelled before.
  mutating func enter(_ ticket: UInt64, _ line: RequestLine, until deadline: UInt64?, _ caller: Caller) -> Bool {
    announced.remove(ticket)
    guard cancelledEarly.remove(ticket) == nil else { return false }
    waiting[ticket] = Waiting(line: line, deadline: deadline, caller: caller)
    unsent.append(ticket)
    if let deadline { deadlines.append((ticket, deadline)) }
    return true
  }

  /// Cancels a request.
  ///
  /// - Returns: The caller, if it has no outcome yet.
  mutating func cancel(_ ticket: UInt64) -> Caller? {
    if announced.contains(ticket) { cancelledEarly.insert(ticket) }
    return finish(ticket)
  }

  /// Ends the wait for an answer.
  ///
  /// - Returns: The caller; nil if it does not wait any more.
  mutating func finish(_ ticket: UInt64) -> Caller? { waiting.removeValue(forKey: ticket)?.caller }

  /// Removes and returns the next request to send.
  mutating func takeUnsent() -> (ticket: UInt64, line: RequestLine)? {
    while let ticket = unsent.popFirst() {
      if let line = waiting[ticket]?.line { return (ticket, line) }
    }
    return nil
  }

  /// Whether a request is unsent.
  mutating func hasUnsent() -> Bool {
    while let ticket = unsent.first {
      if waiting[ticket] != nil { return true }
      _ = unsent.popFirst()
    }
    return false
  }

  /// The earliest deadline of a waiting caller.
  mutating func nextDeadline() -> UInt64? {
    while let first = deadlines.first {
      if waiting[first.ticket] != nil { return first.moment }
      _ = deadlines.popFirst()
    }
    return nil
  }

  /// Removes and returns the callers whose deadline has passed.
  mutating func expire(at now: UInt64) -> [Caller] {
    var expired: [Caller] = []
    while let moment = nextDeadline(), moment <= now, let first = deadlines.popFirst() {
      if let caller = finish(first.ticket) { expired.append(caller) }
    }
    return expired
  }

  /// Queues the repeatable ones among the unanswered requests of a connection that ended, in front of all others and
  /// once each.
  ///
  /// - Parameter asksAgain: Whether another connection may succeed; if false, no request is queued again.
  /// - Returns: The callers of the other requests, in order.
  mutating func requeue(_ tickets: [UInt64], asksAgain: Bool) -> [Caller] {
    var again: [UInt64] = []
    var lost: [Caller] = []
    for ticket in tickets {
      guard let request = waiting[ticket] else { continue }
      if asksAgain, request.line.isQuestion, !request.wasSentBefore {
        waiting[ticket]?.wasSentBefore = true
        again.append(ticket)
      } else if let caller = finish(ticket) {
        lost.append(caller)
      }
    }
    unsent.prepend(again)
    return lost
  }

  /// Gives up all unsent requests, because the client cannot connect.
  ///
  /// - Returns: The callers of the unsent requests, in order.
  mutating func failUnsent() -> [Caller] {
    var failed: [Caller] = []
    while let (ticket, _) = takeUnsent() {
      if let caller = finish(ticket) { failed.append(caller) }
    }
    return failed
  }
}
