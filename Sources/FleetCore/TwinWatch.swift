package import FleetWire

/// The search for another machine that speaks for this device, because one is a copy of the other.
///
/// A restarted device tells itself from a copied one by its disk: each own message is stored before it is published, so
/// a message that outranks the stored one was written elsewhere. If its author goes on speaking after an answer, it is
/// a twin. If not, this machine was set back in time.
package struct TwinWatch: Sendable {
  /// The findings.
  package enum State: Equatable, Sendable {
    /// No other machine has spoken.
    case alone
    /// Another run has spoken, and this device has to answer it.
    case challenged(Run)
    /// This device has answered another run.
    case answered(Run)
    /// Another run has not spoken again: this machine was set back in time.
    case setBack(Run)
    /// Two machines speak for this device.
    case twin(Run, Copy)
  }

  /// Whether this machine is the copy.
  package enum Copy: Equatable, Sendable {
    /// This machine is the copy.
    case yes
    /// The other machine is the copy.
    case no
    /// Nothing tells which of the two is the copy.
    case unknown
  }

  /// The consequence of a message of another machine.
  enum Consequence: Equatable, Sendable {
    /// Write a greater record, to see whether the other machine answers.
    case answer
    /// Write a last record that tells all members.
    case tell
    /// None.
    case nothing
  }

  private let membership: Membership
  /// The home in the last record before this run; nil if there was none.
  private let lastHome: Home?
  /// The findings.
  package private(set) var state: State = .alone

  /// Starts the search.
  ///
  /// - Parameter last: the stored record of this device.
  init(_ membership: Membership, last: SignedMessage?) {
    self.membership = membership
    lastHome = last.flatMap { DeviceDescription($0.body.fields)?.home }
  }

  /// The mark that this device's record has for the members.
  var mark: DeviceDescription.TwinMark? {
    switch state {
    case .twin(_, .yes): .copy
    case .twin: .undecided
    case .alone, .challenged, .answered, .setBack: nil
    }
  }

  /// Notes a message of this device that outranks the stored one, so that another machine has written it.
  mutating func heard(_ message: SignedMessage) -> Consequence {
    let other = message.body.run
    switch state {
    case .alone:
      state = .challenged(other)
      return .answer
    case .challenged:
      // The answer is still to come, and will outrank this message, too.
      state = .challenged(other)
      return .answer
    case .answered(let run), .setBack(let run):
      guard run == other else {
        state = .challenged(other)
        return .answer
      }
      state = .twin(other, copy(of: message))
      return .tell
    case .twin(let run, let copy):
      state = .twin(other, copy == .unknown || run != other ? self.copy(of: message) : copy)
      return .nothing
    }
  }

  /// Notes that this device has written a greater record. Returns whether the record answers another run.
  mutating func answered() -> Bool {
    guard case .challenged(let run) = state else { return false }
    state = .answered(run)
    return true
  }

  /// Notes that the other run has been silent since the answer. Returns whether that is a finding.
  mutating func fellSilent() -> Bool {
    guard case .answered(let run) = state else { return false }
    state = .setBack(run)
    return true
  }

  /// Judges which of the two is the copy, from a record of the other.
  private func copy(of message: SignedMessage) -> Copy {
    let description = DeviceDescription(message.body.fields)
    let home = membership.description.home
    if let lastHome, lastHome != home { return .yes }
    if membership.pastRuns.contains(message.body.run) { return .yes }
    if description?.twin == .copy { return .no }
    if let description, description.home != home { return .no }
    // On the same machine, as containers are, neither knows the other. A guess would make the original renew in half of
    // the cases.
    return .unknown
  }
}
