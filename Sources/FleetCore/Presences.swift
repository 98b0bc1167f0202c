import FleetWire

/// The devices of the account that are connected, as far as they tell. Nothing of this is stored.
struct Presences: Sendable {
  /// The greatest number of devices in an account whose devices tell each other.
  static let most = 64

  /// The last presence that a device told.
  private struct Told {
    let run: Run
    let counter: UInt64
    var isHere: Bool
  }

  private var known: [DeviceTag: Told] = [:]
  private var connections: UInt64 = 0
  private var told: UInt64 = 0
  private var isPlanned = false
  /// Whether the exchange begins when the record of this device is published: the others believe no unknown device.
  var isWaiting = false

  /// The devices that are connected.
  var here: Set<DeviceTag> { Set(known.filter { $0.value.isHere }.keys) }

  /// Starts a connection. Returns the counter of the presence that the broker publishes at its end.
  mutating func connecting() -> UInt64 {
    connections += 1
    told = 0
    return connections << 32 | 0xffff_ffff
  }

  /// Plans to tell the others, unless that is planned.
  mutating func plan(_ actions: inout [Action]) {
    guard !isPlanned else { return }
    isPlanned = true
    actions.append(.wake(.presence, after: Pace.presence))
  }

  /// Returns the counter of the presence that is told now.
  mutating func tell() -> UInt64 {
    isPlanned = false
    told += 1
    return connections << 32 | told
  }

  /// Takes the presence of a device. An earlier one of the same run changes nothing.
  mutating func heard(_ message: SignedMessage, at tag: DeviceTag) {
    let told = Told(run: message.body.run, counter: message.body.counter, isHere: message.body.fields[.state] == [1])
    if let last = known[tag], last.run == told.run, last.counter >= told.counter { return }
    known[tag] = told
  }

  /// Counts nobody as connected, because the devices are asked anew, or the connection ended. The counters stay, so that
  /// a broker cannot repeat an earlier answer.
  mutating func reset() {
    for tag in known.keys { known[tag]?.isHere = false }
  }

  mutating func disconnected(_ actions: inout [Action]) {
    reset()
    isWaiting = false
    if isPlanned { actions.append(.cancel(.presence)) }
    isPlanned = false
  }
}

extension Member {
  /// Whether devices of this account tell each other that they are connected.
  var hasPresence: Bool { settings.presence && roster.devices <= Presences.most }

  /// The connected devices of the account, as far as they tell.
  var present: Set<DeviceTag> { hasPresence ? presences.here.filter { roster[$0]?.kind == .record } : [] }

  /// Returns a message about this device that the broker does not keep.
  func draft(_ kind: MessageKind, _ counter: UInt64, state: UInt8? = nil, digest: RosterDigest? = nil) -> Draft {
    var fields = Fields()
    fields[.signingKey] = membership.description.signingKey.bytes
    fields[.state] = state.map { [$0] }
    fields[.digest] = digest?.bytes
    return Draft(
      kind: kind, subject: membership.device, tag: membership.tag, generation: membership.generation,
      counter: .exactly(counter), epoch: epoch.number, fields: fields)
  }

  /// Gives the next connection a will.
  mutating func prepare(_ actions: inout [Action]) {
    let counter = presences.connecting()
    guard hasPresence else { return }
    actions.append(.will(.presence(membership.account, membership.tag), draft(.presence, counter, state: 0)))
  }

  /// Listens to the others, before they are told and asked.
  mutating func exchangePresence(_ actions: inout [Action]) {
    guard hasPresence else { return }
    actions += [.subscribe(.presences(membership.account)), .subscribe(.only(.who(membership.account)))]
    presences.isWaiting = true
    if speaker.state == .current { beginPresence(&actions) }
  }

  /// Tells the others and asks them, if that has to be done.
  mutating func beginPresence(_ actions: inout [Action]) {
    guard presences.isWaiting else { return }
    presences.isWaiting = false
    presences.plan(&actions)
    askWho(&actions)
  }

  mutating func askWho(_ actions: inout [Action]) {
    presences.reset()
    if hasPresence { actions.append(.announce(.who(membership.account), draft(.who, 0))) }
  }

  mutating func tellPresence(isLive: Bool, _ actions: inout [Action]) {
    if isLive, hasPresence, !allowances.use([.presence], &actions) {
      return actions.append(.wake(.presence, after: Pace.retriedPutBack))
    }
    let counter = presences.tell()
    guard isLive, hasPresence else { return }
    actions.append(
      .announce(.presence(membership.account, membership.tag), draft(.presence, counter, state: 1)))
  }

  /// Takes a presence, or the question which devices are connected.
  mutating func heardPresence(_ topic: MessageTopic, _ message: SignedMessage, _ actions: inout [Action]) {
    guard hasPresence, message.body.author != membership.device else { return }
    guard let record = recordOfAuthor(of: message, &actions) else { return }
    // A broker may show the messages of an earlier epoch or run again. Each run writes its record before it tells.
    guard message.epoch == epoch.number, message.body.run == record.body.run else {
      return actions.append(.dropped(.epoch))
    }
    if let tag = topic.tag { presences.heard(message, at: tag) } else { presences.plan(&actions) }
  }

  /// Returns the record of the device that says something about itself; nil if the device is not believed.
  ///
  /// A message of a removed device, or with another key, is counted as dropped. A message of a device that nothing is
  /// known about is not: a broker keeps no order between topics, so a new device's message may overtake its record.
  func recordOfAuthor(of message: SignedMessage, _ actions: inout [Action]) -> SignedMessage? {
    let author = message.body.author
    if author == message.body.subject {
      if let record = roster.record(of: author), record.signer == message.signer { return record }
      guard roster.isKnown(author) else { return nil }
    }
    actions.append(.dropped(.author))
    return nil
  }
}
