import FleetWire

extension Rendezvous: PostingPlace {
  var deadline: Deadline { .meeting }
}

/// The rules of a member that has invited a newcomer with a code.
///
/// The code is good for one newcomer: the first answer burns it, and so do fifteen minutes. Both topics are emptied
/// then. A device that answers later has read the invitation, too, and is
/// reported.
struct Inviter: Sendable {
  private enum State: Equatable {
    /// The invitation is at the broker, or on its way there.
    case open
    /// The topics are emptied, and looked at again.
    case closing(attempt: Int)
    /// The topics are empty.
    case closed
  }

  private let rendezvous: Rendezvous
  private let invitation: SignedMessage
  private var state: State = .open
  private var postings = Postings<Rendezvous>()
  /// The key of the newcomer that answered first.
  private var newcomer: PublicKey?
  private var isExpired = false

  /// Opens an invitation.
  init(_ invitation: SignedMessage, at rendezvous: Rendezvous, isLive: Bool, _ actions: inout [Action]) {
    self.rendezvous = rendezvous
    self.invitation = invitation
    actions.append(.wake(.invitation, after: Pace.invitation))
    if isLive { becameLive(&actions) }
  }

  /// Whether nothing is left to be done.
  var isOver: Bool { isExpired && state == .closed }
  /// Whether a newcomer may still answer.
  var isOpen: Bool { state == .open }

  private var topics: [MessageTopic] { [.invitation(rendezvous), .answer(rendezvous)] }

  mutating func becameLive(_ actions: inout [Action]) {
    switch state {
    case .open:
      actions.append(.subscribe(.only(.answer(rendezvous))))
      postings.schedule(rendezvous, attempt: 0, after: 0...0, &actions)
    case .closing: close(&actions)
    case .closed: break
    }
  }

  mutating func disconnected(_ actions: inout [Action]) {
    postings.reset(&actions)
    actions.append(.cancel(.meeting))
  }

  mutating func acknowledged(_ filter: TopicFilter, _ actions: inout [Action]) {
    if filter == .only(.invitation(rendezvous)) { postings.acknowledged(rendezvous, &actions) }
  }

  /// Takes a message on one of the topics.
  mutating func heard(_ topic: MessageTopic, _ shown: Shown, isRetained: Bool, _ actions: inout [Action]) {
    guard topics.contains(topic) else { return }
    switch (topic, shown) {
    case (.answer, .message(let answer)) where state == .open:
      newcomer = answer.signer
      actions.append(.newcomer(answer))
      return end(isUsed: true, isLive: true, &actions)
    case (.answer, .message(let answer)):
      if answer.signer != newcomer { actions.append(.anotherNewcomer(answer)) }
    case (.invitation, .message(invitation)) where state == .open:
      postings.sawKnown(rendezvous, isRetained: isRetained, &actions)
    case (.invitation, _) where state == .open:
      postings.sawInferior(rendezvous, isRetained: isRetained, isOwn: true, &actions)
    case (_, .nothing): return
    case (_, .rejected), (_, .message): break
    }
    if case .rejected(let reason) = shown { actions.append(.dropped(reason)) }
    if state != .open { actions.append(.clear(topic)) }
  }

  private mutating func end(isUsed: Bool, isLive: Bool, _ actions: inout [Action]) {
    actions.append(.invitationEnded(isUsed: isUsed))
    postings.reset(&actions)
    state = .closing(attempt: 0)
    if isLive { close(&actions) }
  }

  private mutating func close(_ actions: inout [Action]) {
    state = .closing(attempt: 0)
    actions += topics.map { .clear($0) }
    actions.append(.wake(.meeting, after: Pace.readBack(0)))
  }

  /// Takes the next step: reads back what is at the broker.
  mutating func proceed(isLive: Bool, _ actions: inout [Action]) {
    guard isLive else { return }
    switch state {
    case .open:
      switch postings.woke(rendezvous, &actions) {
      case .wait: break
      case .ask: actions.append(.subscribe(.only(.invitation(rendezvous))))
      case .publish:
        actions.append(.publish(.invitation(rendezvous), invitation))
        postings.published(rendezvous, &actions)
      }
    case .closing(let attempt):
      actions += topics.map { .subscribe(.only($0)) }
      // A reading that shows nothing proves nothing, so both topics are looked at several times.
      guard attempt + 1 < Pace.readBacks.count else { return state = .closed }
      state = .closing(attempt: attempt + 1)
      actions.append(.wake(.meeting, after: Pace.readBack(attempt + 1)))
    case .closed: break
    }
  }

  /// Burns the code after its time.
  mutating func expired(isLive: Bool, _ actions: inout [Action]) {
    isExpired = true
    guard state == .open else { return }
    end(isUsed: false, isLive: isLive, &actions)
  }
}
