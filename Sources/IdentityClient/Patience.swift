import LinuxSystem

/// How long something is waited for.
package struct Patience: Equatable, Sendable {
  /// Until this moment of ``Clock/monotonicMicroseconds``; nil for as long as it takes.
  package let deadline: UInt64?
  /// Whether waiting ends as well when nobody reads standard output any more.
  package let needsOutput: Bool
  /// The descriptor of a ``Wakeup`` that ends the wait when it is rung; it has to be open for as long.
  package let bell: Int32?
  /// Whether waiting ends in time even while there is more to read: for whoever is not to be kept by what never ends.
  package let endsOnTime: Bool

  /// For as long as it takes.
  package static let endless = Patience(until: nil)

  /// Says how long.
  package init(until deadline: UInt64?, needsOutput: Bool = false, bell: Int32? = nil, endsOnTime: Bool = false) {
    self.deadline = deadline
    self.endsOnTime = endsOnTime
    self.needsOutput = needsOutput
    self.bell = bell
  }

  /// Waits until there is something to read or, where that is wanted, room to write.
  func wait(for socket: borrowing Descriptor, wantsRoom: Bool = false) throws(DaemonConnection.Failure) {
    if endsOnTime, let deadline, Clock.monotonicMicroseconds >= deadline { throw .timeUp }
    do {
      try check(
        try TimedWait.wait(
          for: socket.number, wantsRoom: wantsRoom, watchesOutput: needsOutput, bell: bell, until: deadline))
    } catch let failure as DaemonConnection.Failure {
      throw failure
    } catch {
      throw .closed
    }
  }

  /// Lets time pass until a moment, or until this patience ends.
  func pause(until moment: UInt64) throws(DaemonConnection.Failure) {
    let end = min(moment, deadline ?? moment)
    // Without a descriptor to fail with, poll(2) fails for want of memory only: then there is no pause.
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
