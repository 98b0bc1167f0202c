import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

// The path of bytes: receive, split into lines, answer, send.
extension Server {
  /// Serves a connection in its turn: reads its input if allowed, and carries out its requests.
  func goOn(_ connection: Connection) {
    if connection.session.isDraining { return drain(connection) }
    let isAtRest = connection.isAtRest
    if connection.mayHaveInput, isAtRest || connection.wantsInput, stop == .running {
      receive(connection, isAtRest: isAtRest)
    } else {
      advance(connection)
    }
  }

  /// Reads once and carries out the requests received. Further input is read in the next turn.
  ///
  /// - Parameter isAtRest: the value of ``Connection/isAtRest``.
  private func receive(_ connection: Connection, isAtRest: Bool) {
    hold(connection)
    do {
      // After a hang-up nothing more can arrive, so the absence of input is the end of the stream.
      let arrived =
        try connection.take(into: received, atMost: connections.turn.readLength)
        ?? (connection.session.reading == .final ? 0 : nil)
      guard let arrived else { return advance(connection) }
      if isAtRest, arrived == 0 {
        _ = connection.session.receive(0)
        return end(connection)
      }
      var known = 0
      if isAtRest, !connection.mayHaveInput {
        known = received.withBytes(first: arrived) { bytes in answerKnown(bytes, connection) }
        // Requests with cached answers contain no secret, so the buffer need not be wiped.
        if known == arrived, !connection.hasOutput { return rest(connection) }
      }
      let count = connection.session.receive(arrived)
      if count > 0, !connection.hasInput {
        received.withBytes(first: count) { bytes in
          let used = carryOut(bytes, from: known, connection)
          if used < count { keep(bytes.extracting(used...), connection) }
        }
      } else if count > 0 {
        received.withBytes(first: count) { bytes in connection.input.appendWiping(bytes) }
      }
      // The requests may have contained a secret.
      received.wipe(first: arrived)
    } catch {
      return drop(connection, "\(error)")
    }
    if connection.isAtRest, !connection.mayHaveInput, stop == .running { rest(connection) } else { advance(connection) }
  }

  /// Answers requests from the cache, up to the first request without a cached answer. The connection must be at rest.
  ///
  /// - Returns: the number of bytes that the answered requests took.
  private func answerKnown(_ bytes: borrowing Span<UInt8>, _ connection: Connection) -> Int {
    if connection.held.number == 0 { connection.held.number = known.number(of: connection.peer) }
    let (used, length, count) = known.answer(bytes, of: connection.held.number, atMost: connections.turn.requests)
    connection.requests &+= UInt64(truncatingIfNeeded: count)
    var sent = 0
    if used == bytes.count {
      // An error is ignored here, because it recurs when the rest is sent.
      sent = (try? connection.descriptor.send(known.output, first: length)) ?? 0
      if sent == length { return used }
    }
    if sent < length {
      known.output.withBytes(first: length) { connection.output.appendWiping($0.extracting(sent...)) }
    }
    return used
  }

  /// Advances a connection as far as possible: its pending requests, its output, its end.
  func advance(_ connection: Connection) {
    guard !connection.session.isParked else { return }
    hold(connection)
    if connection.hasInput {
      var bytes: [UInt8] = []
      swap(&bytes, &connection.input)
      let used = carryOut(bytes.span, from: 0, connection)
      if used > 0 || connection.session.isClosing {
        keep(bytes.span.extracting(used...), connection)
        bytes.wipe()
      } else {
        swap(&bytes, &connection.input)
      }
    }
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
        // The rest of the answer follows in later turns, so that other connections are served in between.
        if connection.wantsPiece { waitForTurn(connection) }
      }
      if connection.isSubscribed, !connection.hasOutput, connection.wantsEvents(events) { waitForTurn(connection) }
      // Requests that were held back by unread output may go on now, and reported input may be read now.
      if connection.canGoOn || (connection.mayHaveInput && connection.wantsInput && stop == .running) {
        waitForTurn(connection)
      }
      try conclude(connection)
    } catch {
      drop(connection, "\(error)")
    }
  }

  private func conclude(_ connection: Connection) throws(SystemError) {
    switch connection.session.conclusion(
      hasUnsentOutput: connection.hasUnsentOutput, hasMoreWork: connection.isWaitingForTurn, stop: stop)
    {
    case .refuseOrphan:
      refuseOrphan(connection)
      try flush(connection)
      try conclude(connection)
    case .end: end(connection)
    case .close: close(connection)
    case .park: park(connection)
    case .rest:
      try watch(connection)
      rest(connection)
    }
  }

  /// Keeps the input that was not carried out yet.
  private func keep(_ rest: borrowing Span<UInt8>, _ connection: Connection) {
    connection.input = []
    if !connection.session.isClosing { connection.input.appendWiping(rest) }
    connection.searched = 0
  }

  /// Carries out the requests from a byte index on.
  ///
  /// - Returns: the index of the first byte that was not carried out.
  private func carryOut(_ bytes: borrowing Span<UInt8>, from first: Int, _ connection: Connection) -> Int {
    if !connection.hasOutput { swap(&connection.output, &spareOutput) }
    var start = first
    var budget = connections.turn.requests
    let limit = connection.share.limits.lineLength
    while connection.hasRoom {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: max(start, connection.searched)) else {
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
      if connection.session.hasSecret { sendSecret(connection) }
    }
    return start
  }

  /// Answers a request line that is too long, after all earlier answers. Nothing more is read from the connection.
  private func refuseLongLine(_ connection: Connection) {
    guard !connection.session.isAtWriter else { return }
    Refusal.tooLong(limit: connection.share.limits.lineLength).append(to: &connection.output)
    measurements.countAnswer(to: Measurements.noVerb, .tooLong)
    connection.session.close()
  }

  // MARK: Output

  /// Sends a decrypted secret at once instead of at the end of the turn. Until the socket has taken the whole secret,
  /// no further request is carried out.
  private func sendSecret(_ connection: Connection) {
    do {
      try flush(connection)
      if !connection.hasOutput { swap(&connection.output, &spareOutput) }
    } catch {
      // The connection has failed. Its next turn notices the failure.
      connection.session.close()
    }
  }

  /// Sends output as far as the socket takes it now.
  ///
  /// - Throws: the error of the socket, except EPIPE, which discards the output.
  func flush(_ connection: Connection) throws(SystemError) {
    while connection.hasUnsentOutput {
      do {
        guard let count = try connection.descriptor.send(connection.output, from: connection.sent) else { return }
        connection.sent += count
      } catch  where error.code == EPIPE {
        // The client reads no more. Requests that it sent completely are still carried out.
        connection.sent = connection.output.count
        connection.goOn(with: nil)
        endSubscription(of: connection)
      }
    }
    var bytes: [UInt8] = []
    swap(&bytes, &connection.output)
    connection.sent = 0
    if connection.session.hasSecret {
      bytes.wipe()
      connection.session.finishAnswer()
    }
    // One spare buffer moves from connection to connection, so that an idle connection holds none.
    guard bytes.capacity > spareOutput.capacity, bytes.capacity <= connection.share.limits.outputPerConnection else {
      return
    }
    bytes.removeAll(keepingCapacity: true)
    spareOutput = bytes
  }

  /// Asks the kernel for room events only while output is pending. Otherwise each read by the client would cause
  /// an event.
  func watch(_ connection: Connection) throws(SystemError) {
    let interest = connection.wantedInterest
    guard connection.interest != nil, interest != connection.interest else { return }
    try readiness.modify(connection.descriptor.number, interest, token: connection.token.rawValue)
    connection.interest = interest
  }
}
