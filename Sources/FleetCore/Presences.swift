import FleetWire

/// The devices of the account that are connected, as far as they tell. Nothing of this is stored.
struct Presences: Sendable {
  /// The greatest number of devices in an account whose devices tell each other.
  static let most = 64

  private struct Word {
    let run: Run
    let counter: UInt64
    let isHere: Bool
  }

  private var words: [DeviceTag: Word] = [:]
  private var connections: UInt64 = 0
  private var told: UInt64 = 0
  private var isPlanned = false
  /// Whether the exchange begins when the record of this device is published: the others believe no unknown device.
  var isWaiting = false

  /// The devices that are connected.
  var here: Set<DeviceTag> { Set(words.filter { $0.value.isHere }.keys) }

  /// Starts a connection. Returns the counter of the word that the broker publishes at its end.
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

  /// Returns the counter of the word that is told now.
  mutating func tell() -> UInt64 {
    isPlanned = false
    told += 1
    return connections << 32 | told
  }

  /// Takes the word of a device. An earlier one of the same run changes nothing.
  mutating func heard(_ message: SignedMessage, at tag: DeviceTag) {
    let word = Word(
      run: message.body.run, counter: message.body.counter, isHere: message.body.fields[.state] == [1])
    if let known = words[tag], known.run == word.run, known.counter >= word.counter { return }
    words[tag] = word
  }

  /// Forgets all words, because the devices are asked anew, or the connection ended.
  mutating func reset() { words = [:] }

  mutating func disconnected(_ actions: inout [Action]) {
    reset()
    isWaiting = false
    if isPlanned { actions.append(.cancel(.presence)) }
    isPlanned = false
  }
}

extension Member {
  /// Whether devices of this account tell each other that they are connected.
  private var hasPresence: Bool { settings.presence && roster.devices <= Presences.most }

  /// The connected devices of the account, as far as they tell.
  var present: Set<DeviceTag> { presences.here.filter { roster[$0]?.kind == .record } }

  private func draft(_ kind: MessageKind, _ counter: UInt64, state: UInt8? = nil) -> Draft {
    var fields = Fields()
    fields[.signingKey] = membership.description.signingKey.bytes
    fields[.state] = state.map { [$0] }
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
    let counter = presences.tell()
    guard isLive, hasPresence else { return }
    actions.append(
      .announce(.presence(membership.account, membership.tag), draft(.presence, counter, state: 1)))
  }

  /// Takes a presence, or the question which devices are connected.
  mutating func heardPresence(_ topic: MessageTopic, _ message: SignedMessage, _ actions: inout [Action]) {
    guard hasPresence, message.body.author != membership.device else { return }
    guard message.body.author == message.body.subject, roster.record(of: message.body.author)?.signer == message.signer
    else { return actions.append(.dropped(.author)) }
    if let tag = topic.tag { presences.heard(message, at: tag) } else { presences.plan(&actions) }
  }
}
