import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

// The way of bytes: received, cut into lines, answered, sent.
extension Server {
  /// The client is gone in both directions. The kernel would say so again and again, so it is asked no more; what the
  /// client sent before is still carried out.
  func hangUp(_ connection: Connection) {
    guard !connection.isHungUp else { return }
    connection.isHungUp = true
    do {
      try connection.user.readiness.remove(connection.descriptor.number)
    } catch {
      drop(connection, "\(error)")
    }
  }

  /// Reads once and carries out what came. What is left comes with the next turn: the kernel reports it again.
  func receive(_ connection: Connection) {
    if connection.isDraining { return drain(connection) }
    guard !isStopping, connection.wantsInput else { return advance(connection) }
    hold(connection)
    do {
      // A client that is gone sends nothing later, so nothing now is the end.
      let arrived =
        try connection.descriptor.receive(into: &received, atMost: connections.turn.readLength)
        ?? (connection.isHungUp ? 0 : nil)
      guard let arrived else { return advance(connection) }
      let count = min(arrived, connection.left ?? arrived)
      connection.left? -= count
      if arrived == 0 {
        connection.hasEnded = true
      } else if connection.input.isEmpty {
        // Taken out meanwhile, so that it is the only one with these bytes when they are wiped.
        var bytes: [UInt8] = []
        swap(&bytes, &received)
        let used = carryOut(bytes.span.extracting(first: count), connection)
        keep(bytes[used..<count], connection)
        swap(&bytes, &received)
      } else {
        connection.input.appendWiping(received[..<count])
      }
      // A secret may have been among them.
      received.wipe(first: arrived)
    } catch {
      return drop(connection, "\(error)")
    }
    advance(connection)
  }

  /// Goes on with a connection as far as it can go now: its requests, its output, its end.
  func advance(_ connection: Connection) {
    guard !connection.isParked else { return }
    hold(connection)
    if !connection.input.isEmpty {
      var bytes: [UInt8] = []
      swap(&bytes, &connection.input)
      let used = carryOut(bytes.span, connection)
      if used > 0 || connection.isClosing {
        keep(bytes[used...], connection)
        bytes.wipe()
      } else {
        swap(&bytes, &connection.input)
      }
    }
    // It is not watched any more, so the rest is fetched here, up to the end of the stream.
    if connection.isHungUp, !isStopping, connection.wantsInput { return receive(connection) }
    finishTurn(connection)
  }

  private func finishTurn(_ connection: Connection) {
    defer { countOutput(of: connection) }
    do {
      takeEvents(connection)
      try flush(connection)
      if connection.wantsPiece {
        appendPiece(to: connection)
        try flush(connection)
        // The others come between.
        if connection.wantsPiece { waitForTurn(connection) }
      }
      if connection.output.isEmpty, connection.wantsEvents(events) { waitForTurn(connection) }
      // Requests that had to wait for output to be read, which it is now; of a client that is gone the kernel does not
      // tell again.
      if connection.canGoOn || (connection.isHungUp && connection.wantsInput && !isStopping) { waitForTurn(connection) }
      let hasMore = connection.isWaitingForTurn && !connection.isClosing
      if connection.isOrphaned, connection.isIdle, !hasMore { try sayOrphaned(connection) }
      let isDone = connection.isClosing || connection.hasEnded || connection.left == 0 || (isStopping && !handsOver)
      if isDone, connection.isIdle, !hasMore { return end(connection) }
      // Nobody could say how far it came.
      if isStopping, handsOver, isHandoverDue, connection.outgoing != nil { return close(connection) }
      if isStopping, handsOver, connection.isIdle || (isHandoverDue && connection.inFlight == 0) {
        return park(connection)
      }
      try watch(connection)
      rest(connection)
    } catch {
      drop(connection, "\(error)")
    }
  }

  /// Keeps what was not carried out yet.
  private func keep(_ rest: ArraySlice<UInt8>, _ connection: Connection) {
    connection.input = connection.isClosing ? [] : Array(rest)
    connection.searched = 0
  }

  /// Carries out the requests at the front of the bytes.
  ///
  /// - Returns: how many bytes they took.
  private func carryOut(_ bytes: borrowing Span<UInt8>, _ connection: Connection) -> Int {
    if connection.output.isEmpty { swap(&connection.output, &spareOutput) }
    var start = 0
    var budget = connections.turn.requests
    let limit = connection.user.limits.lineLength
    while connection.hasRoom {
      guard let end = lineEnd(in: bytes, from: max(start, connection.searched)) else {
        connection.searched = start == 0 ? bytes.count : 0
        if bytes.count - start >= limit { refuseLongLine(connection) }
        break
      }
      connection.searched = 0
      guard end - start < limit else {
        refuseLongLine(connection)
        break
      }
      guard budget > 0 else {
        waitForTurn(connection)
        break
      }
      let hasReturn = end > start && bytes[end - 1] == UInt8(ascii: "\r")
      let line = bytes.extracting(start..<(hasReturn ? end - 1 : end))
      guard answer(line, connection) else { break }
      start = end + 1
      budget -= 1
      if connection.holdsSecret { sendSecret(connection) }
    }
    return start
  }

  private func lineEnd(in bytes: borrowing Span<UInt8>, from start: Int) -> Int? {
    var index = start
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "\n") { return index }
      index += 1
    }
    return nil
  }

  /// The answer comes behind those that are under way; nothing more is read.
  private func refuseLongLine(_ connection: Connection) {
    guard connection.inFlight == 0 else { return }
    Refusal.tooLong(limit: connection.user.limits.lineLength).append(to: &connection.output)
    connection.isClosing = true
  }

  // MARK: Output

  /// An open secret does not wait for the end of the turn. As long as it does for the client, nothing follows it.
  private func sendSecret(_ connection: Connection) {
    do {
      try flush(connection)
      if connection.output.isEmpty { swap(&connection.output, &spareOutput) }
    } catch {
      // The connection is of no use any more, which its next turn finds out.
      connection.isClosing = true
    }
  }

  /// Sends what is there, as far as the client takes it.
  func flush(_ connection: Connection) throws(SystemError) {
    while connection.sent < connection.output.count {
      do {
        guard let count = try connection.descriptor.send(connection.output, from: connection.sent) else { return }
        connection.sent += count
      } catch  where error.code == EPIPE {
        // Nobody listens. What was asked before that is carried out all the same, as far as it came.
        connection.sent = connection.output.count
        connection.outgoing = nil
        connection.isBackedUp = false
        endSubscription(of: connection)
      }
    }
    connection.sent = 0
    if connection.holdsSecret {
      connection.output.wipe()
      connection.holdsSecret = false
    }
    connection.output.removeAll(
      keepingCapacity: connection.output.capacity <= connection.user.limits.outputPerConnection)
    // One buffer goes from connection to connection, so that an idle one holds none.
    if connection.output.capacity > spareOutput.capacity { swap(&connection.output, &spareOutput) }
    connection.output = []
  }

  /// Has the kernel tell of what can go on, and of nothing else.
  func watch(_ connection: Connection) throws(SystemError) {
    guard !connection.isHungUp else { return }
    var interest: ReadinessSet.Interest = []
    if connection.sent < connection.output.count, !connection.isParked { interest.insert(.write) }
    if connection.isDraining || (connection.wantsInput && !isStopping) { interest.insert(.read) }
    guard interest != connection.interest else { return }
    try connection.user.readiness.modify(connection.descriptor.number, interest, token: connection.token.rawValue)
    connection.interest = interest
  }
}
