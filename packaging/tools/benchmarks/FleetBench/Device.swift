import FleetCore
import FleetSeal
import FleetWire
import IdentityCore

/// The account of some simulated devices.
final class SimulatedAccount {
  private(set) var seal: MessageSeal
  /// The keys of the later epochs, which all devices of the account share once they have opened them.
  private(set) var epochs: [UInt32: EpochKey] = [:]
  /// The places of its devices in the simulation.
  var devices: [Int] = []

  var id: AccountID { seal.account.id }

  init() throws {
    guard let root = SecretKey.random(), let account = AccountKeys(root: root) else {
      throw BenchError("no memory for the keys of another account")
    }
    seal = MessageSeal(account)
  }

  /// The messages that a device has opened lately. All devices are in one thread here, and each real one has a processor:
  /// the simulation opens for the first of them what the others open at the same time.
  private var opened: [[UInt8]: (topic: MessageTopic, message: SignedMessage)] = [:]

  func open(_ payload: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    if let known = opened[payload], known.topic == topic { return known.message }
    let message = try seal.open(payload, on: topic)
    if opened.count == 4_096 { opened = [:] }
    opened[payload] = (topic, message)
    return message
  }

  /// Adds a new key for an epoch.
  func make(_ number: UInt32) throws {
    guard let key = SecretKey.random() else { throw BenchError("no memory for a key") }
    epochs[number] = EpochKey(number: number, key: key)
    seal = MessageSeal(seal.account, epochs: Array(epochs.values))
  }
}

/// A device with the rules of the fleet. In place of identityd, it keeps its counter in memory.
final class Device {
  /// The keys of all simulated devices. Keys of their own would need more memory maps than Linux allows a process. The
  /// rules compare a device's key with the one before, which is the same.
  private let keys: DeviceKeys
  let account: SimulatedAccount
  let tag: DeviceTag
  private let membership: Membership
  private(set) var fleet: Fleet
  private var counter: UInt64 = 0
  /// The numbers of the epochs whose keys the device has.
  private var epochs: Set<UInt32> = [1]
  /// The numbers of the deadlines in force.
  private var deadlines: [Deadline: UInt64] = [:]
  private var filters: [UInt16: TopicFilter] = [:]
  private var will: (topic: String, payload: [UInt8])?
  var link: Link?
  /// The figures of the device over all connections.
  private(set) var figures = Figures()

  /// The figures of a device, over all of its connections.
  struct Figures {
    /// Deadlines that passed, and packets that arrived.
    var wakeups = 0
    var packets = 0
    /// The bytes of earlier connections.
    var (sent, received) = (0, 0)
    /// Messages that were dropped, and suspicions, with their numbers: none is expected.
    var faults: [String: Int] = [:]
  }

  init(_ account: SimulatedAccount, _ keys: DeviceKeys, _ settings: Settings) {
    self.account = account
    self.keys = keys
    var generator = SystemRandomNumberGenerator()
    let device = UUID(high: generator.next() & ~0xf000 | 0x4000, low: generator.next() & (.max >> 2) | 1 << 63)
    tag = account.seal.account.tag(of: device)
    membership = Membership(
      account: account.id, device: device, tag: tag, generation: 1,
      run: Run(high: generator.next(), low: generator.next()), pastRuns: [],
      description: Self.description("device", keys))
    fleet = Fleet(settings)
  }

  private static func description(_ name: String, _ keys: DeviceKeys) -> DeviceDescription {
    DeviceDescription(
      name: Text(name), signingKey: keys.signingKey, boxKey: keys.boxKey, joined: Timestamp(milliseconds: 1),
      home: Home(high: 0, low: 0), readableVersion: EnvelopeVersion.two.rawValue)
  }

  /// The figures with those of the present connection.
  var total: Figures {
    var total = figures
    total.sent += link?.count.sent ?? 0
    total.received += link?.count.received ?? 0
    return total
  }

  /// Whether the device has the key of a rotation.
  var hasLaterEpoch: Bool { epochs.count > 1 }

  // MARK: Inputs

  func start(in town: Town) throws { try take(.started(.member(membership, Roster())), in: town) }

  func rename(_ name: String, in town: Town) throws {
    try take(.described(Self.description(name, keys)), in: town)
  }

  /// Ends the device's process.
  func stop() {
    drop()
    deadlines = [:]
  }

  func rotate(in town: Town) throws { try take(.rotate(without: []), in: town) }

  /// Takes a deadline, unless a later one has replaced it.
  func pass(_ deadline: Deadline, number: UInt64, in town: Town) throws {
    guard deadlines[deadline] == number else { return }
    deadlines[deadline] = nil
    figures.wakeups += 1
    try take(.woke(deadline), in: town)
  }

  /// Exchanges what the socket allows.
  func exchange(in town: Town) throws {
    guard let link else { return }
    guard let packets = try link.exchange() else { return try end(in: town) }
    figures.packets += packets.count
    for packet in packets where self.link === link { try take(packet, in: town) }
    if self.link === link, !link.flush() { try end(in: town) }
  }

  private func end(in town: Town) throws {
    drop()
    try take(.disconnected, in: town)
  }

  private func drop() {
    figures = total
    link = nil
    filters = [:]
  }

  private func take(_ packet: BrokerPacket, in town: Town) throws {
    switch packet {
    case .accepted(0): try take(.connected, in: town)
    case .accepted(let code): throw BenchError("the broker refuses a connection with code \(code)")
    case .subscribed(let number):
      if let filter = filters.removeValue(forKey: number) { try take(.subscribed(filter), in: town) }
    case .message(let text, let payload, let isRetained):
      guard let topic = MessageTopic(parsing: text) else { throw BenchError("a message on the topic \(text)") }
      let shown = payload.isEmpty ? .nothing : opened(payload, on: topic)
      if case .device(_, let tag) = topic {
        try take(.heard(tag, shown, isRetained: isRetained), in: town)
      } else {
        try take(.arrived(topic, shown, isRetained: isRetained), in: town)
      }
    case .acknowledged, .other: break
    }
  }

  private func opened(_ payload: [UInt8], on topic: MessageTopic) -> Shown {
    do {
      let message = try account.open(payload, on: topic)
      return epochs.contains(message.epoch) ? .message(message) : .rejected(.epoch)
    } catch { return .rejected(error) }
  }

  // MARK: Actions

  private func take(_ input: Input, in town: Town) throws {
    var inputs = [input]
    while !inputs.isEmpty {
      for action in fleet.take(inputs.removeFirst()) { try perform(action, &inputs, in: town) }
    }
    _ = link?.flush()
  }

  private func perform(_ action: Action, _ inputs: inout [Input], in town: Town) throws {
    switch action {
    case .connect:
      link = try town.connect(self, will: will)
      will = nil
    case .disconnect: drop()
    case .subscribe(let filter):
      guard let link else { return }
      let number = link.nextIdentifier()
      filters[number] = filter
      link.send(Packet.subscribe(filter.text, identifier: number))
    case .publish(let topic, let message): publish(message.bytes, on: topic, isRetained: true)
    case .clear(let topic): publish([], on: topic, isRetained: true)
    case .will(let topic, let draft): will = try (topic.text, seal(draft, on: topic).bytes)
    case .announce(let topic, let draft): publish(try seal(draft, on: topic).bytes, on: topic, isRetained: false)
    case .write(let draft): inputs.append(.wrote(draft.tag, try seal(draft, on: .device(account.id, draft.tag))))
    case .store(let tag, _):
      if tag != self.tag { town.noteArrival(at: self, of: tag) }
    case .wake(let deadline, let delay): deadlines[deadline] = town.schedule(deadline, after: delay, of: self)
    case .cancel(let deadline): deadlines[deadline] = nil
    case .makeEpoch(let epoch):
      try account.make(epoch.number)
      enter(epoch, &inputs)
    case .takeEpoch(let epoch, let message):
      guard message.body.fields[.sealedBox].flatMap({ keys.unboxed($0) }) != nil else {
        throw BenchError("a device cannot open the key of an epoch")
      }
      enter(epoch, &inputs)
    case .grant(let draft, let boxKey): inputs.append(.wrote(draft.tag, try grant(draft, to: boxKey)))
    // A device that takes part in a rotation gets messages of the next epoch before its key.
    case .dropped(.epoch) where !account.epochs.isEmpty: break
    case .suspected(let state): figures.faults["suspected(\("\(state)".prefix { $0 != "(" }))", default: 0] += 1
    case .dropped, .beyondBound: figures.faults["\(action)", default: 0] += 1
    case .rekeyed, .ended: figures.faults["\("\(action)".prefix { $0 != "(" })", default: 0] += 1
    case .readKeys, .notRotated, .learnEpoch, .box, .notOffered, .invalidate, .newcomer, .anotherNewcomer,
      .invitationEnded, .invitationOver, .accept, .joined, .notJoined:
      throw BenchError("the rules ask for \("\(action)".prefix { $0 != "(" })")
    }
  }

  private func enter(_ epoch: Epoch, _ inputs: inout [Input]) {
    epochs.insert(epoch.number)
    inputs.append(.entered(epoch))
  }

  private func grant(_ draft: Draft, to boxKey: PublicKey) throws -> SignedMessage {
    let key = draft.fields[.epoch].flatMap { account.epochs[UInt32(bigEndian: $0)] }
    guard let box = key?.boxed(to: boxKey) else { throw BenchError("a key cannot be sealed") }
    return try seal(draft, on: .grant(account.id, draft.tag), box: box)
  }

  private func publish(_ payload: [UInt8], on topic: MessageTopic, isRetained: Bool) {
    guard let link else { return }
    // As the service does it: presence with quality of service 0, all else with 1.
    let number = isRetained ? link.nextIdentifier() : nil
    link.send(Packet.publish(topic.text, payload, identifier: number, isRetained: isRetained))
  }

  private func seal(_ draft: Draft, on topic: MessageTopic, box: [UInt8]? = nil) throws -> SignedMessage {
    switch draft.counter {
    case .next(let last): counter = max(counter, last) + 1
    case .exactly(let exact): counter = max(counter, exact)
    }
    let number: UInt64 = if case .exactly(let exact) = draft.counter { exact } else { counter }
    var body = Body(
      subject: draft.subject, generation: draft.generation, counter: number, run: membership.run,
      time: Timestamp(milliseconds: 1_790_000_000_000), author: membership.device, fields: draft.fields)
    if let box { body.fields[.sealedBox] = box }
    guard
      let message = account.seal.seal(draft.kind, body, epoch: draft.epoch, fleet.version, on: topic, by: keys)
    else { throw BenchError("a message cannot be sealed") }
    return message
  }
}
