import FleetWire

/// The devices of the account that are connected, as far as they tell. Nothing of this is stored.
struct Presences: Sendable {
  /// The greatest number of devices in an account whose devices tell each other.
  static let most = 64

  /// The last presence that a device told in one of its runs.
  private struct Told {
    let run: Run
    let signer: PublicKey
    let counter: UInt64
    var isHere: Bool

    init(_ message: SignedMessage) {
      run = message.body.run
      signer = message.signer
      counter = message.body.counter
      isHere = message.body.fields[.state] == [1]
    }

    /// Returns whether the device told it in the same run as a message.
    func isOfRun(of message: SignedMessage) -> Bool { run == message.body.run && signer == message.signer }
  }

  /// The last presences of each device: that in the run of its record, and that in another run. A broker keeps no order
  /// between topics, so a presence may overtake the record of its run.
  private var known: [DeviceTag: [Told]] = [:]
  private var connections: UInt64 = 0
  private var told: UInt64 = 0
  private var isPlanned = false
  /// Whether the exchange begins when the record of this device is published: the others believe no unknown device.
  var isWaiting = false

  /// Returns whether a device told in the run of its record that it is connected.
  func isHere(_ tag: DeviceTag, _ record: SignedMessage) -> Bool {
    known[tag]?.contains { $0.isHere && $0.isOfRun(of: record) } ?? false
  }

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
  ///
  /// - Parameter record: the record of the device; nil if it has not arrived.
  mutating func heard(_ message: SignedMessage, at tag: DeviceTag, _ record: SignedMessage?) {
    var all = known[tag] ?? []
    if let index = all.firstIndex(where: { $0.isOfRun(of: message) }) {
      guard all[index].counter < message.body.counter else { return }
      all[index] = Told(message)
    } else {
      guard known.count < 2 * Self.most || !all.isEmpty || record != nil else { return }
      all = all.filter { told in record.map { told.isOfRun(of: $0) } ?? false } + [Told(message)]
    }
    known[tag] = all
  }

  /// Counts nobody as connected, because the devices are asked anew, or the connection ended. The counters stay, so that
  /// a broker cannot repeat an earlier answer.
  mutating func reset() {
    for tag in known.keys { for index in known[tag, default: []].indices { known[tag]?[index].isHere = false } }
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
  var present: Set<DeviceTag> {
    guard hasPresence else { return [] }
    let here = roster.tags.filter { tag in
      roster[tag].map { $0.kind == .record && presences.isHere(tag, $0) } ?? false
    }
    return Set(here)
  }

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
    guard let author = author(of: message, &actions) else { return }
    // A broker may show the messages of an earlier epoch.
    guard message.epoch == epoch.number else { return actions.append(.dropped(.epoch)) }
    guard let tag = topic.tag else { return presences.plan(&actions) }
    presences.heard(message, at: tag, author.record)
  }

  /// Returns the author of a message about the author; nil if the author is not believed.
  ///
  /// A message of a removed device, or with another key than that of the record, is counted as dropped. A message of an
  /// unknown device is not: a broker keeps no order between topics, so a new device's message may overtake its record.
  func author(of message: SignedMessage, _ actions: inout [Action]) -> Author? {
    let device = message.body.author
    if device == message.body.subject {
      if let record = roster.record(of: device) {
        if record.signer == message.signer { return .member(record) }
      } else if !roster.isKnown(device) {
        return .unknown
      }
    }
    actions.append(.dropped(.author))
    return nil
  }
}

/// The author of a message that the broker does not keep.
enum Author {
  /// A device with this record, whose key has signed the message.
  case member(SignedMessage)
  /// A device of which nothing has arrived yet.
  case unknown

  var record: SignedMessage? { if case .member(let record) = self { record } else { nil } }
}
