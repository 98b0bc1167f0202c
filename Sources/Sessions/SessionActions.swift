package import IdentityCore
import LinuxSystem

// The actions of a session: the next step in the input, and the end of a turn.

extension Session {
  /// A step that the server carries out before it asks for the next one.
  package enum Step: Equatable, Sendable {
    /// Carries out the request in a range of the input, which has no end of line. The next one begins at an index.
    case carryOut(Range<Int>, next: Int)
    /// Answers input of which no request can be made, and carries nothing more out; the session closes.
    case refuse(Refusal)
    /// Waits for more input, or for the end of an answer.
    case wait
  }

  /// Returns the next step in the input.
  ///
  /// - Parameters:
  ///   - input: the input that was received and not carried out yet.
  ///   - start: the index of the first byte that was not carried out.
  ///   - limit: the maximum length of a line, in bytes, with its end.
  ///   - hasRoom: whether the answer to another request has room.
  package mutating func next(
    in input: borrowing Span<UInt8>, from start: Int, limit: Int, _ hasRoom: Bool
  ) -> Step {
    guard hasRoom else { return .wait }
    guard let end = input.firstIndex(of: UInt8(ascii: "\n"), from: max(start, searched)) else {
      searched = input.count
      if input.count - start >= limit { return refuse(.tooLong(limit: limit)) }
      // The first message of another protocol: a JSON object, whose end is a NUL and not the end of a line.
      if requests == 0, start < input.count, input[start] == UInt8(ascii: "{") { return refuse(.syntax(.json)) }
      return .wait
    }
    searched = 0
    guard end - start < limit else { return refuse(.tooLong(limit: limit)) }
    let hasReturn = end > start && input[end - 1] == UInt8(ascii: "\r")
    return .carryOut(start..<(hasReturn ? end - 1 : end), next: end + 1)
  }

  /// The first bytes of the input were removed.
  @inlinable package mutating func drop(_ count: Int) { searched = max(0, searched - count) }

  /// Whether the first bytes of the input may contain a request.
  @inlinable package func mayHaveRequest(in count: Int) -> Bool { searched < count }

  /// Refuses input, after all earlier answers.
  private mutating func refuse(_ refusal: Refusal) -> Step {
    guard !isAtWriter else { return .wait }
    close()
    return .refuse(refusal)
  }

  /// The actions that can end a turn of a connection.
  @usableFromInline package enum Conclusion: Equatable, Sendable {
    /// Says that the process has ended, in case another process still has the connection. The connection then closes.
    case refuseOrphan
    /// Ends the connection after its last answer.
    case end
    /// Closes the connection at once.
    case close
    /// Leaves the connection to the next run of the service.
    case park
    /// Waits for the client, the writer or an event.
    case rest
  }

  /// Returns the action that ends a turn.
  ///
  /// - Parameters:
  ///   - hasUnsentOutput: whether the socket has not taken all output.
  ///   - hasMoreWork: whether the connection waits for another turn.
  ///   - stop: the stage of the service's stop.
  @inlinable package func conclusion(hasUnsentOutput: Bool, hasMoreWork: Bool, stop: StopStage) -> Conclusion {
    // The client can still read the end of a backup after a handover.
    let isIdle = (hasAnswered || awaitsReader && stop == .handoverDue) && !hasUnsentOutput
    if isIdle, isClosing || !hasMoreWork {
      if case .serving = phase, case .remaining(0) = reading { return .refuseOrphan }
      if isClosing || hasEnded || stop == .closingConnections { return .end }
    }
    guard stop == .handingOver || stop == .handoverDue else { return .rest }
    // A handover record does not contain the position in a long answer, nor a request. An answer that makes a start fail
    // begins again, and so does that to a service manager, which has ended its input.
    if stop == .handoverDue, hasLongAnswer && !isFailing || awaitsSignature && !hasEnded {
      return .close
    }
    return isIdle || (stop == .handoverDue && !isAtWriter) ? .park : .rest
  }
}
