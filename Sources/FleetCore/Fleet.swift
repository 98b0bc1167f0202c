package import FleetWire

/// The rules of the fleet, as a value: inputs go in, actions come out.
///
/// Perform the actions in order. The rules read no clock and draw no random numbers: the caller draws durations from the
/// ranges that `wake` gives, and reports deadlines as inputs.
package struct Fleet: Sendable {
  /// The phases of the service.
  package enum Phase: Equatable, Sendable {
    /// This device is in no account.
    case noAccount
    /// The keys cannot be read at present.
    case noKeys
    /// A pause before an attempt to connect, the attempt-th since the last success, from 0.
    case waiting(attempt: Int)
    /// A connection is being made.
    case connecting(attempt: Int)
    /// The roster is read for the first time in a connection, and nothing is published. The attempt counts as failed
    /// until the roster is read.
    case reading(attempt: Int)
    /// This device is connected, and joins an account.
    case joining(attempt: Int)
    /// Everything is in use.
    case live
    /// The broker refuses the credentials.
    case refused
    /// This device is no longer in the account.
    case ended

    /// Whether a broker has accepted the connection.
    package var isConnected: Bool {
      switch self {
      case .reading, .joining, .live: true
      case .noAccount, .noKeys, .waiting, .connecting, .refused, .ended: false
      }
    }
  }

  private var settings: Settings
  /// The phase.
  package private(set) var phase: Phase = .noAccount
  private var member: Member?
  private var newcomer: Newcomer?

  /// Creates the rules before anything is known.
  package init(_ settings: Settings = Settings()) { self.settings = settings }

  /// The greatest known message about each device.
  package var roster: Roster { member?.roster ?? Roster() }

  /// The version of envelopes that this device writes: the greatest one that all devices of the account read.
  package var version: EnvelopeVersion { member?.roster.version ?? .one }

  /// The findings about another machine that speaks for this device.
  package var twin: TwinWatch.State { member?.twins.state ?? .alone }

  /// The number of rotations of the account's key, as far as this device knows.
  package var rotations: UInt32 { member?.epoch.rotations ?? 0 }

  /// Whether all other devices wrote their records in earlier epochs. Soon after a rotation of this device, this is so.
  /// Later, the others have rotated without this one, or a removed device has misled it.
  package var isAloneInEpoch: Bool { member?.isAloneInEpoch ?? false }

  /// The records of devices that have come with another key since the start, although nobody had removed them.
  package var otherKeys: [SignedMessage] { member?.otherKeys ?? [] }

  /// The connected devices of the account beside this one, as far as they tell.
  package var present: Set<DeviceTag> { member?.present ?? [] }

  /// Whether devices of this account tell each other that they are connected.
  package var hasPresence: Bool { member?.hasPresence ?? false }

  /// The reason why the others do not get the present record of this device, although it is connected; nil if they do.
  package var silence: Silence? { phase == .live ? member?.silence : nil }

  /// Whether this device is joining, and the broker has shown no invitation for its code.
  package var isUninvited: Bool { newcomer?.hasLooked ?? false }

  /// Whether the broker has all messages that this device knows, as far as the device can tell.
  package var isSettled: Bool { member?.isSettled ?? true }

  /// Returns what an invitation to this device's own account gives it.
  package func offered(by invitation: SignedMessage) -> OfferedKey { member?.offered(by: invitation) ?? .nothing }

  /// Takes an input and returns the actions that follow.
  package mutating func take(_ input: Input) -> [Action] {
    var actions: [Action] = []
    switch input {
    case .started(let start): begin(start, &actions)
    case .connected: connected(&actions)
    case .refused: fail(next: .refused, &actions)
    case .disconnected: disconnected(&actions)
    case .configured(let settings):
      self.settings = settings
      member?.configure(settings, &actions)
    case .reconsider: reconsider(after: 0...settings.spread, &actions)
    case .awaited: reconsider(after: 0...0, &actions)
    case .woke(let timer): woke(timer, &actions)
    case .subscribed(let filter) where newcomer != nil: newcomer?.acknowledged(filter, &actions)
    case .arrived(let topic, let shown, let isRetained) where newcomer != nil:
      let outcome = newcomer?.heard(topic, shown, isRetained: isRetained, &actions)
      conclude(outcome, &actions)
    case .answered(let answer):
      let isConnected = isConnected
      let outcome = newcomer?.wrote(answer, isConnected: isConnected, &actions)
      conclude(outcome ?? nil, &actions)
    case .subscribed, .heard, .arrived, .dated, .sync, .askWho, .offer, .withdraw, .boxed, .rotate, .entered,
      .notEntered, .learned, .notLearned, .invite, .wrote, .notWritten, .notSealable, .described, .forgotten, .renewed,
      .leave:
      guard phase != .ended, var member else { return [] }
      self.member = nil
      if let ending = member.take(input, isLive: phase == .live, &actions) { end(ending, &member, &actions) }
      self.member = member
    }
    return actions
  }

  // MARK: Start and end

  private mutating func begin(_ start: Start, _ actions: inout [Action]) {
    switch start {
    case .noAccount: phase = .noAccount
    case .noKeys:
      phase = .noKeys
      actions.append(.wake(.keys, after: Pace.keys))
    case .newcomer(let rendezvous, let now):
      member = nil
      newcomer = Newcomer(rendezvous, at: now, &actions)
      phase = .waiting(attempt: 0)
      // A person waits for it.
      actions.append(.wake(.connect, after: 0...0))
    case .member(let membership, let roster):
      let member = Member(membership, roster, settings)
      self.member = member
      newcomer = nil
      wait(attempt: 0, &actions)
      member.began(&actions)
    }
  }

  private mutating func conclude(_ outcome: Newcomer.Outcome?, _ actions: inout [Action]) {
    guard let outcome else { return }
    newcomer?.disconnected(&actions)
    newcomer = nil
    actions += [.cancel(.joining), .cancel(.connect)]
    if isConnecting || isConnected { actions.append(.disconnect) }
    phase = .noAccount
    switch outcome {
    case .joined(let isConfirmed): actions.append(.joined(isConfirmed: isConfirmed))
    case .failed(let failure): actions.append(.notJoined(failure))
    }
  }

  private mutating func end(_ ending: Ending, _ member: inout Member, _ actions: inout [Action]) {
    let wasConnected = isConnecting || isConnected
    // Another machine in the name of this device writes on the same topics.
    if isConnected, ending != .superseded { member.clearOffers(&actions) }
    member.disconnected(&actions)
    phase = .ended
    actions += [.cancel(.heartbeat), .cancel(.twinSilence), .cancel(.connect), .cancel(.leaving), .cancel(.invitation)]
    if wasConnected { actions.append(.disconnect) }
    actions.append(.ended(ending))
  }

  // MARK: Connections

  private var isConnecting: Bool { if case .connecting = phase { true } else { false } }

  private var isConnected: Bool { phase.isConnected }

  private mutating func wait(attempt: Int, _ actions: inout [Action]) {
    phase = .waiting(attempt: attempt)
    // With full jitter, so that the devices of a site do not come back at once.
    let longest = min(max(Pace.longestPause, settings.spread), max(settings.spread, 1_000) << min(attempt, 10))
    actions.append(.wake(.connect, after: 0...(attempt == 0 ? settings.spread : longest)))
  }

  private mutating func connect(attempt: Int, _ actions: inout [Action]) {
    phase = .connecting(attempt: attempt)
    member?.prepare(&actions)
    actions.append(.connect)
  }

  private mutating func connected(_ actions: inout [Action]) {
    guard case .connecting(let attempt) = phase else { return }
    phase = newcomer == nil ? .reading(attempt: attempt) : .joining(attempt: attempt)
    newcomer?.connected(&actions)
    member?.connected(&actions)
  }

  private mutating func disconnected(_ actions: inout [Action]) {
    switch phase {
    case .connecting(let attempt): wait(attempt: attempt + 1, &actions)
    case .reading(let attempt), .joining(let attempt):
      member?.disconnected(&actions)
      newcomer?.disconnected(&actions)
      wait(attempt: attempt + 1, &actions)
    case .live:
      member?.disconnected(&actions)
      wait(attempt: 0, &actions)
    case .noAccount, .noKeys, .waiting, .refused, .ended: break
    }
  }

  private mutating func fail(next: Phase, _ actions: inout [Action]) {
    guard case .connecting = phase else { return }
    phase = next
    actions.append(.wake(.connect, after: Pace.refusal))
  }

  private mutating func reconsider(after delay: Delay, _ actions: inout [Action]) {
    switch phase {
    // The attempt stays, so that a network that comes and goes does not make a broker's trouble worse.
    case .waiting: break
    case .refused: phase = .waiting(attempt: 0)
    case .noAccount, .noKeys, .connecting, .reading, .joining, .live, .ended: return
    }
    actions.append(.wake(.connect, after: delay))
  }

  // MARK: Deadlines

  private mutating func woke(_ timer: Deadline, _ actions: inout [Action]) {
    switch (timer, phase) {
    case (.keys, .noKeys): actions.append(.readKeys)
    case (.connect, .waiting(let attempt)): connect(attempt: attempt, &actions)
    case (.connect, .refused): connect(attempt: 0, &actions)
    case (.acknowledgement, .reading), (.acknowledgement, .joining), (.acknowledgement, .live):
      actions.append(.disconnect)
      disconnected(&actions)
    case (.quiet, .reading), (.longestReading, .reading):
      guard member?.fellQuiet(&actions) == .complete else { return }
      phase = .live
      member?.becameLive(&actions)
    case (.quiet, .joining): newcomer?.fellQuiet(&actions)
    case (.meeting, .joining): newcomer?.proceed(&actions)
    case (.joining, _):
      let outcome = newcomer?.timeIsUp(&actions)
      conclude(outcome, &actions)
    case (.quiet, .live), (.longestReading, .live): _ = member?.fellQuiet(&actions)
    case (.keys, _), (.connect, _), (.acknowledgement, _), (.quiet, _), (.longestReading, _), (_, .ended): break
    default:
      guard var member else { return }
      self.member = nil
      if let ending = member.woke(timer, isLive: phase == .live, &actions) { end(ending, &member, &actions) }
      self.member = member
    }
  }
}
