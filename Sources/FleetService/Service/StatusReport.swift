import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The words about the fleet that `status` shows, and the decisions what is worth a line of the log.
struct StatusReport {
  /// The reason why this device has a service and takes no part in an account.
  enum Lack {
    /// The device is in an account, of which the fleet has no keys.
    case keys
    /// The device was in an account, and did not leave it by itself.
    case account(Exclusion)

    /// The word in `status`, with its value.
    fileprivate var word: (name: String, value: String) {
      switch self {
      case .keys: ("keys", "missing")
      case .account(let exclusion): (exclusion.cause.rawValue, "\(exclusion.account)")
      }
    }
  }

  /// The time after which a lasting trouble is logged again, in microseconds.
  private static let interval: UInt64 = 3_600_000_000

  private var words: [(name: String, value: String)] = []
  private var state = FleetState.noAccount
  private var said: String?
  /// The state that admins were told.
  private var told: ServiceState?
  /// Tells admins another state.
  private let tell: (ServiceState) -> Void
  private var reason: String?
  private var lack: Lack?
  /// The reason why identityd stores nothing; nil if it does.
  private var storeReason: String?
  private var dropped: [Rejection: Int] = [:]
  private var foreign = 0
  private var beyondBound = 0
  private var isConnected = false
  /// The time of the next attempt to connect; nil if none was planned.
  private var nextAttempt: Timestamp?
  /// The troubles that were logged, with the time.
  private var logged: (end: UInt64?, isRefused: Bool, daemon: String?, refusal: String?, silence: UInt64?) =
    (nil, false, nil, nil, nil)

  init(_ tell: @escaping (ServiceState) -> Void) { self.tell = tell }

  /// Takes over the state of the service.
  ///
  /// - Parameter isOwn: whether the commands in the words are for the own daemon of a user.
  mutating func note(
    _ fleet: Fleet, _ broker: Broker?, _ meetings: [(name: String, value: String)], held: Int, _ account: Account?,
    isOwn: Bool
  ) {
    state = fleet.silence == nil ? fleet.phase.state : .unpublished
    if fleet.phase == .live { reason = fleet.silence?.reason }
    var words: [(name: String, value: String)] = []
    if let pattern = broker?.pattern { words.append(("broker", "\(pattern)")) }
    if let reason = storeReason ?? reason { words.append(("reason", reason)) }
    if state == .waiting || state == .refused, let nextAttempt { words.append(("next", "\(nextAttempt)")) }
    if fleet.phase.isConnected, broker?.usesFormerPassword(of: account) == true { words.append(("password", "former")) }
    if let account { words.append(("signer", "\(Base64Text.encoded(account.keys.signingKey.bytes))")) }
    if let lack { words.append(lack.word) }
    words += meetings
    let otherKeys = fleet.otherKeys
    if let first = otherKeys.first { words.append(("other-key", "\(NamedDevice(of: first))")) }
    if fleet.isUninvited { words.append(("join-reason", Meetings.notInvited)) }
    if case .twin = fleet.twin { words.append(("twin", "yes")) }
    if fleet.isAloneInEpoch { words.append(("alone", "yes")) }
    let rejected = dropped.values.reduce(0, +)
    for (name, count) in [
      ("connected", fleet.present.count), ("rotations", Int(fleet.rotations)),
      ("earlier-releases", fleet.roster.earlierReleases), ("other-keys", otherKeys.count > 1 ? otherKeys.count : 0),
      ("held", held), ("dropped", rejected),
      ("foreign", foreign), ("beyond-bound", beyondBound),
    ] where count > 0 {
      words.append((name, "\(count)"))
    }
    self.words = words.map { ($0.name, Advice.text($0.value, isOwn: isOwn)) }
  }

  /// Tells admins the state, if it has changed.
  ///
  /// - Parameter isKnown: whether there is a connection with identityd. Without one, the service knows nothing.
  mutating func tell(isKnown: Bool) {
    let state = isKnown ? ServiceState.known(rows.map { .init(name: $0.name, value: $0.value) }) : .unknown
    guard state != told else { return }
    told = state
    tell(state)
  }

  /// The state and the words in a row.
  var rows: [(name: String, value: String)] { [("state", state.rawValue)] + words }

  /// Shows the words, if they have changed.
  mutating func say(over link: DaemonLink) throws(DaemonFault) {
    let text = rows.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
    guard text != said else { return }
    do {
      try link.say(state.rawValue, words)
    } catch .refused {
      // Nobody can read it, which is no reason to stop.
    }
    said = text
  }

  /// Notes that identityd has answered, and that it shows no words.
  mutating func noteDaemon() {
    said = nil
    reason = nil
    storeReason = nil
    lack = nil
  }

  /// Notes that the state was read whole.
  mutating func noteStart() { logged.daemon = nil }

  /// Notes a fault of identityd. Returns whether it is to be logged.
  mutating func noteDaemonFault(_ text: String) -> Bool {
    defer { logged.daemon = text }
    return logged.daemon != text
  }

  /// Notes a refusal of identityd. Returns whether it is to be logged.
  mutating func noteRefusal(_ text: String) -> Bool {
    defer { logged.refusal = text }
    return logged.refusal != text
  }

  /// Notes why the service cannot go on at present.
  mutating func noteReason(_ text: String) { reason = text }

  /// Notes why this device takes no part in an account; nil for one that was in no account, or left by itself.
  mutating func noteLack(_ lack: Lack?) { self.lack = lack }

  /// Notes why identityd stores nothing at present; nil if it does.
  mutating func noteStoreReason(_ text: String?) { storeReason = text }

  /// Notes a connection. Returns whether it is to be logged.
  mutating func noteConnected() -> Bool {
    defer { (isConnected, logged.isRefused) = (true, false) }
    return !isConnected
  }

  /// Notes the end of a connection. Returns whether it is to be logged: the first one, the first refusal of this device,
  /// and one an hour.
  mutating func noteEnd(_ reason: String, isRefusal: Bool, now: UInt64) -> Bool {
    self.reason = reason
    let isFirst = isConnected || isRefusal && !logged.isRefused
    isConnected = false
    if !isFirst, let last = logged.end, now - last < Self.interval { return false }
    (logged.end, logged.isRefused) = (now, isRefusal)
    return true
  }

  /// Notes the time of the next attempt to connect.
  mutating func noteAttempt(at time: Timestamp) { nextAttempt = time }

  /// Returns the reason why the other devices do not get the record of this one, if it is to be logged: once an hour.
  mutating func noteSilence(now: UInt64) -> String? {
    guard state == .unpublished, logged.silence.map({ now - $0 >= Self.interval }) ?? true else { return nil }
    logged.silence = now
    return reason
  }

  /// Counts a dropped message.
  mutating func noteDropped(_ reason: Rejection) { dropped[reason, default: 0] += 1 }

  /// Counts a message on a topic that this device did not ask for.
  mutating func noteForeign() { foreign += 1 }

  /// Counts a device for which there is no room.
  mutating func noteBeyondBound() { beyondBound += 1 }
}

extension Silence {
  /// The reason in `status`.
  fileprivate var reason: String {
    switch self {
    case .unkept:
      "the broker does not keep the record of this device, so the others do not see its changes; an access rule or a quota "
        + "of the broker may forbid it"
    case .tooOften: "this device has published 200 records in a row; its next one follows within five minutes"
    }
  }
}

extension Fleet.Phase {
  /// The state in `status`.
  fileprivate var state: FleetState {
    switch self {
    case .noAccount: .noAccount
    case .noKeys: .noKeys
    case .waiting: .waiting
    case .connecting: .connecting
    case .reading: .reading
    case .joining: .joining
    case .live: .live
    case .refused: .refused
    case .ended: .ended
    }
  }
}
