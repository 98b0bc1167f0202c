/// The requests of all callers of one client that have no answer yet: who waits for what, and for how long.
///
/// It is a value that waits for nothing: a caller is whatever can be told later.
struct RequestQueue<Caller: Sendable>: Sendable {
  /// What one caller waits for.
  private struct Waiting: Sendable {
    let line: RequestLine
    let deadline: UInt64?
    let caller: Caller
    var wasSentBefore = false
  }

  private var nextTicket: UInt64 = 0
  /// Announced, and not entered yet.
  private var announced: Set<UInt64> = []
  /// Cancelled between the two.
  private var cancelledEarly: Set<UInt64> = []
  private var waiting: [UInt64: Waiting] = [:]
  /// Not sent yet, in order; those among them that nobody waits for any more are passed over.
  private var unsent = FirstInFirstOut<UInt64>()
  /// In the order of the moments, as all wait equally long.
  private var deadlines = FirstInFirstOut<(ticket: UInt64, moment: UInt64)>()

  /// Whether nobody waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Gives a number to a caller that is about to enter, so that it can be cancelled from here on.
  mutating func announce() -> UInt64 {
    nextTicket += 1
    announced.insert(nextTicket)
    return nextTicket
  }

  /// Takes a request.
  ///
  /// - Returns: false where it was cancelled before.
  mutating func enter(_ ticket: UInt64, _ line: RequestLine, until deadline: UInt64?, _ caller: Caller) -> Bool {
    announced.remove(ticket)
    guard cancelledEarly.remove(ticket) == nil else { return false }
    waiting[ticket] = Waiting(line: line, deadline: deadline, caller: caller)
    unsent.append(ticket)
    if let deadline { deadlines.append((ticket, deadline)) }
    return true
  }

  /// The caller waits no more.
  ///
  /// - Returns: the caller, where it has not been told anything yet.
  mutating func cancel(_ ticket: UInt64) -> Caller? {
    if announced.contains(ticket) { cancelledEarly.insert(ticket) }
    return finish(ticket)
  }

  /// The answer has come.
  ///
  /// - Returns: the caller; nil where it waits no more.
  mutating func finish(_ ticket: UInt64) -> Caller? { waiting.removeValue(forKey: ticket)?.caller }

  /// The next request that is to be sent.
  mutating func takeUnsent() -> (ticket: UInt64, line: RequestLine)? {
    while let ticket = unsent.popFirst() {
      if let line = waiting[ticket]?.line { return (ticket, line) }
    }
    return nil
  }

  /// Whether there is something to be sent.
  mutating func hasUnsent() -> Bool {
    while let ticket = unsent.first {
      if waiting[ticket] != nil { return true }
      _ = unsent.popFirst()
    }
    return false
  }

  /// When the next caller's time is up.
  mutating func nextDeadline() -> UInt64? {
    while let first = deadlines.first {
      if waiting[first.ticket] != nil { return first.moment }
      _ = deadlines.popFirst()
    }
    return nil
  }

  /// The callers whose time is up.
  mutating func expire(at now: UInt64) -> [Caller] {
    var expired: [Caller] = []
    while let moment = nextDeadline(), moment <= now, let first = deadlines.popFirst() {
      if let caller = finish(first.ticket) { expired.append(caller) }
    }
    return expired
  }

  /// A connection ended before these were answered: questions are to be asked once more, before all others.
  ///
  /// - Parameter asksAgain: whether another connection may do better.
  /// - Returns: the callers of all others, in order.
  mutating func takeBack(_ tickets: [UInt64], asksAgain: Bool) -> [Caller] {
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

  /// No connection can be had: nothing is to be sent any more.
  ///
  /// - Returns: the callers of what was not sent, in order.
  mutating func failUnsent() -> [Caller] {
    var failed: [Caller] = []
    while let (ticket, _) = takeUnsent() {
      if let caller = finish(ticket) { failed.append(caller) }
    }
    return failed
  }
}
