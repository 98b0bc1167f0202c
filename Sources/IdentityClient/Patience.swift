import LinuxSystem

/// The limits of a wait: a deadline, and conditions that end the wait earlier.
package struct Patience: Equatable, Sendable {
  /// The deadline as a value of ``Clock/monotonicMicroseconds``; nil for none.
  package let deadline: UInt64?
  /// Whether the wait also ends when standard output has lost its reader.
  package let needsOutput: Bool
  /// The descriptor of a ``Wakeup`` whose ring ends the wait. The descriptor must stay open during the wait.
  package let bell: Int32?
  /// Whether the deadline ends the wait even while data keeps arriving, so that an endless answer cannot hold
  /// up the caller.
  package let endsOnTime: Bool

  /// The longest time without any data, in microseconds; nil for no limit. It begins anew whenever data arrive.
  package let silence: UInt64?

  /// A wait without limits.
  package static let endless = Patience(until: nil)

  /// Creates limits; see the properties.
  package init(
    until deadline: UInt64?, needsOutput: Bool = false, bell: Int32? = nil, endsOnTime: Bool = false,
    silence: UInt64? = nil
  ) {
    self.deadline = deadline
    self.silence = silence
    self.endsOnTime = endsOnTime
    self.needsOutput = needsOutput
    self.bell = bell
  }

  /// Waits until the socket is readable or, if `wantsRoom` is set, writable.
  ///
  /// - Throws: `timeUp`, `outputClosed` or `interrupted` if a limit ends the wait, `closed` if poll(2) fails.
  func wait(for socket: borrowing Descriptor, wantsRoom: Bool = false) throws(DaemonConnection.Failure) {
    if endsOnTime, let deadline, Clock.monotonicMicroseconds >= deadline { throw .timeUp }
    let silenceEnd = silence.map { Clock.monotonicMicroseconds + $0 }
    let end = [deadline, silenceEnd].compactMap(\.self).min()
    do {
      try check(
        try TimedWait.wait(
          for: socket.number, wantsRoom: wantsRoom, watchesOutput: needsOutput, bell: bell, until: end))
    } catch let failure as DaemonConnection.Failure {
      throw failure
    } catch {
      throw .closed
    }
  }

  /// Sleeps until `moment`, but no longer than these limits allow.
  ///
  /// - Throws: `timeUp`, `outputClosed` or `interrupted` if a limit ends the pause.
  func pause(until moment: UInt64) throws(DaemonConnection.Failure) {
    let end = min(moment, deadline ?? moment)
    // Without a descriptor, poll(2) fails only for lack of memory. The pause is skipped then.
    let outcome = (try? TimedWait.wait(for: nil, watchesOutput: needsOutput, bell: bell, until: end)) ?? .timeUp
    if outcome != .timeUp || end == deadline { try check(outcome) }
  }

  private func check(_ end: TimedWait.End) throws(DaemonConnection.Failure) {
    switch end {
    case .readable, .room: return
    case .rung: throw .interrupted
    case .outputClosed: throw .outputClosed
    case .timeUp: throw .timeUp
    }
  }
}
