import FleetWire
import IdentityCore

/// The reason why a newcomer did not become a member.
package enum JoinFailure: Equatable, Sendable {
  /// No broker took the device.
  case notConnected
  /// The broker shows no valid invitation for the code.
  case notInvited
  /// The invitation is too old.
  case expired
  /// Another newcomer has answered the invitation before.
  case used
  /// The keys could not be stored.
  case notStored
}

/// The rules of a newcomer that joins with a code.
///
/// The newcomer is a member once it has stored the keys. The answer tells the inviting device, which then burns the code.
struct Newcomer: Sendable {
  private enum State: Equatable {
    /// The topics are read: first whether somebody has answered.
    case looking(TopicFilter)
    /// The keys are stored, and the answer is written.
    case accepting
    /// The answer is published, until the inviting device empties the topics.
    case answering(SignedMessage)
  }

  /// The end of the newcomer's attempt.
  enum Outcome: Equatable, Sendable {
    /// The newcomer is a member. The inviting device may not have confirmed that.
    case joined(isConfirmed: Bool)
    /// The newcomer knows no more than before.
    case failed(JoinFailure)
  }

  private let rendezvous: Rendezvous
  private let now: Timestamp
  private var state: State
  private var postings = Postings<Rendezvous>()
  private var hasConnected = false
  /// Whether the invitation was looked for, and not found.
  private(set) var hasLooked = false
  /// Whether the broker has shown the answer. An answer that is taken away before that is one of
  /// somebody else.
  private var isShown = false

  /// Starts with a time, which only the expiry of the invitation is compared with.
  init(_ rendezvous: Rendezvous, at now: Timestamp, _ actions: inout [Action]) {
    self.rendezvous = rendezvous
    self.now = now
    state = .looking(.only(.answer(rendezvous)))
    actions.append(.wake(.joining, after: Pace.joining))
  }

  mutating func connected(_ actions: inout [Action]) {
    hasConnected = true
    switch state {
    case .looking: look(for: .answer(rendezvous), &actions)
    case .accepting: break
    case .answering: publish(&actions)
    }
  }

  mutating func disconnected(_ actions: inout [Action]) {
    postings.reset(&actions)
    actions += [.cancel(.acknowledgement), .cancel(.quiet)]
  }

  private mutating func look(for topic: MessageTopic, _ actions: inout [Action]) {
    state = .looking(.only(topic))
    actions += [.subscribe(.only(topic)), .wake(.acknowledgement, after: Pace.acknowledgement)]
  }

  mutating func acknowledged(_ filter: TopicFilter, _ actions: inout [Action]) {
    if case .answering = state, filter == .only(.answer(rendezvous)) { postings.acknowledged(rendezvous, &actions) }
    guard state == .looking(filter) else { return }
    actions += [.cancel(.acknowledgement), .wake(.quiet, after: Pace.quiet)]
  }

  /// Looks at the invitation after the answers, and again while there is none.
  mutating func fellQuiet(_ actions: inout [Action]) {
    guard case .looking(let filter) = state else { return }
    hasLooked = filter == .only(.invitation(rendezvous))
    look(for: .invitation(rendezvous), &actions)
  }

  /// Takes a message on one of the topics. Returns the end of the attempt, if the message ends it.
  mutating func heard(
    _ topic: MessageTopic, _ shown: Shown, isRetained: Bool, _ actions: inout [Action]
  ) -> Outcome? {
    if case .rejected(let reason) = shown { actions.append(.dropped(reason)) }
    switch (state, topic, shown) {
    case (.looking, .answer(rendezvous), .message): return .failed(.used)
    case (.looking, .invitation(rendezvous), .message(let invitation)):
      guard let expiry = invitation.body.fields[.expiry],
        Timestamp(unsignedMilliseconds: UInt64(bigEndian: expiry)) > now
      else { return .failed(.expired) }
      state = .accepting
      hasLooked = false
      actions += [.cancel(.acknowledgement), .cancel(.quiet), .accept(invitation)]
    // Only the inviting device empties the topics while the invitation is good.
    case (.answering, .answer(rendezvous), .nothing) where isShown: return .joined(isConfirmed: true)
    case (.answering(let answer), .answer(rendezvous), .message(let message)) where message == answer:
      isShown = true
      postings.sawKnown(rendezvous, isRetained: isRetained, &actions)
    case (.answering, .answer(rendezvous), _):
      postings.sawInferior(rendezvous, isRetained: isRetained, isOwn: true, &actions)
    case (.looking, _, _), (.accepting, _, _), (.answering, _, _): break
    }
    return nil
  }

  /// Takes the answer, which has been signed and sealed; nil if the keys could not be stored, which ends the attempt.
  mutating func wrote(_ answer: SignedMessage?, isConnected: Bool, _ actions: inout [Action]) -> Outcome? {
    guard state == .accepting else { return nil }
    guard let answer else { return .failed(.notStored) }
    state = .answering(answer)
    if isConnected { publish(&actions) }
    return nil
  }

  private mutating func publish(_ actions: inout [Action]) {
    guard case .answering(let answer) = state else { return }
    actions.append(.publish(.answer(rendezvous), answer))
    postings.published(rendezvous, &actions)
  }

  /// Takes the next step: reads the answer back.
  mutating func proceed(_ actions: inout [Action]) {
    switch postings.woke(rendezvous, &actions) {
    case .wait: break
    case .ask: actions.append(.subscribe(.only(.answer(rendezvous))))
    case .publish: publish(&actions)
    }
  }

  /// Ends the attempt after its time.
  mutating func timeIsUp(_ actions: inout [Action]) -> Outcome? {
    switch state {
    case .looking: return .failed(hasConnected ? .notInvited : .notConnected)
    case .accepting:
      actions.append(.wake(.joining, after: Pace.joining))
      return nil
    case .answering: return .joined(isConfirmed: false)
    }
  }
}
