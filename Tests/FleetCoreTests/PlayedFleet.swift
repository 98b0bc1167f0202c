import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// Devices and a broker as values, in simulated time.
///
/// The same seed gives the same keys, nonces, delays and lies, so a failure can be reproduced.
struct PlayedFleet {
  enum Event {
    case timer(device: Int, process: Int, Deadline, number: Int)
    case input(device: Int, process: Int, Input)
    case toBroker(link: Int, text: String, bytes: [UInt8], isRetained: Bool)
    case subscribe(link: Int, TopicFilter)
    case toDevice(link: Int, PlayedBroker.Packet)
    case count(device: Int, process: Int, Draft)
    case write(device: Int, process: Int, Draft, counter: UInt64)
    case store(device: Int, process: Int, Epoch)
    case chance
  }

  let account: AccountKeys
  /// The keys of all epochs. A device uses only those that it has.
  var keys: [UInt32: EpochKey] = [:]
  /// The epochs whose keys devices made, in order.
  var made: [Epoch] = []
  /// The keys that were sealed to devices: the device's own key, and the number of the epoch.
  var boxes: [[UInt8]: (to: PublicKey, epoch: UInt32)] = [:]
  let settings: Settings
  var chance: SeededGenerator
  var schedule = Schedule<Event>()
  var broker = PlayedBroker()
  var devices: [PlayedDevice] = []
  /// Whether chance strikes: lies, crashes, lost connections.
  var isUnruly = false
  /// Whether devices rotate the key at random while chance strikes.
  var isRotating = false
  /// The removed device that goes on writing while chance strikes.
  var thief: Int?
  /// The course of the test: a line for each step, with its time in milliseconds.
  var log: [String] = []
  /// The key of the code of an invitation, and the topics.
  var meeting: JoinCode.Meeting?
  /// The number of messages that devices have sent.
  private(set) var sent = 0
  private var numbers = 0
  private var links: [Int: Int] = [:]
  private var written: Set<String> = []
  /// Messages that were opened before: opening is a function of the bytes and the topic.
  private var opened: [String: [[UInt8]: Shown]] = [:]
  var faults: [String] = []

  init(seed: UInt64, devices count: Int, settings: Settings = Settings(spread: 5_000, resync: 900_000)) throws {
    chance = SeededGenerator(seed)
    account = try #require(AccountKeys(root: try drawnSecret(&chance)))
    keys[1] = account.firstEpoch
    self.settings = settings
    for number in 0..<count {
      let device: UUID = drawn(&chance)
      let keys = try #require(DeviceKeys(seed: try drawnSecret(&chance)))
      devices.append(
        PlayedDevice(
          PlayedDisk(
            device: device, tag: account.tag(of: device), keys: keys, name: Text("device \(number)"),
            home: drawn(&chance))))
    }
  }

  mutating func number() -> Int {
    numbers += 1
    return numbers
  }

  mutating func note(_ text: String) { log.append("\(schedule.now) \(text)") }

  // MARK: Processes

  mutating func start(_ device: Int) {
    guard devices[device].process == nil, devices[device].isMember else { return }
    let process = number()
    devices[device].process = process
    devices[device].fleet = Fleet(settings)
    devices[device].deadlines = [:]
    let disk = devices[device].disk
    devices[device].disk.runs = [drawn(&chance)] + disk.runs.prefix(15)
    note("\(device) starts, run \("\(devices[device].run)".prefix(4))")
    let membership = Membership(
      account: account.id, device: disk.device, tag: disk.tag, generation: disk.generation, run: devices[device].run,
      pastRuns: disk.runs, description: disk.description, epoch: disk.epoch, learned: disk.learned)
    feed(device, .started(.member(membership, Roster(disk.records))))
    for tag in disk.forgotten.sorted() { feed(device, .forgotten(tag)) }
  }

  mutating func kill(_ device: Int) {
    guard devices[device].process != nil else { return }
    note("\(device) is killed")
    devices[device].process = nil
    close(device)
  }

  mutating func close(_ device: Int) {
    if let link = devices[device].link {
      broker.close(link)
      links[link] = nil
      if let will = devices[device].will {
        carry(broker.publish(will.text, will.bytes, isRetained: false, now: schedule.now, &chance))
      }
    }
    devices[device].link = nil
  }

  /// Makes a removed device join the account again.
  mutating func rejoin(_ device: Int) throws {
    kill(device)
    devices[device].disk.generation += 1
    devices[device].disk.records = [:]
    devices[device].disk.keys = try #require(DeviceKeys(seed: try drawnSecret(&chance)))
    devices[device].isMember = true
    note("\(device) joins again")
    start(device)
  }

  /// Removes a device from the list at another one.
  mutating func remove(_ device: Int, at other: Int) {
    start(other)
    note("\(other) removes \(device)")
    devices[other].disk.forgotten.insert(devices[device].disk.tag)
    feed(other, .forgotten(devices[device].disk.tag))
  }

  mutating func rename(_ device: Int, _ name: Text) {
    devices[device].disk.name = name
    note("\(device) is named \(name)")
    feed(device, .described(devices[device].disk.description))
  }

  /// Gives an input to the rules of a running device, and performs the actions.
  mutating func feed(_ device: Int, _ input: Input) {
    guard devices[device].process != nil else { return }
    for action in devices[device].fleet.take(input) { perform(action, device) }
  }

  private mutating func perform(_ action: Action, _ device: Int) {
    guard let process = devices[device].process else { return }
    switch action {
    case .connect:
      let input: Input = isUnruly && chance.once(in: 4) ? .disconnected : .connected
      schedule.add(.input(device: device, process: process, input), after: Int.random(in: 1...100, using: &chance))
    case .disconnect:
      devices[device].will = nil
      close(device)
    case .will(let topic, let draft):
      guard case .exactly(let counter) = draft.counter else { return }
      devices[device].will = seal(draft, counter, device, on: topic).map { (topic.text, $0.bytes) }
    case .subscribe(let filter):
      guard let link = devices[device].link else { return }
      schedule.add(.subscribe(link: link, filter), after: 1)
    case .publish(let topic, let message):
      guard let link = devices[device].link else { return }
      note("\(device) publishes \(topic.text.suffix(6)) \(message.kind) \(message.body.counter)")
      schedule.add(.toBroker(link: link, text: topic.text, bytes: message.bytes, isRetained: true), after: 1)
    case .write(let draft):
      schedule.add(
        .count(device: device, process: process, draft), after: Int.random(in: 0...20, using: &chance))
    case .store(let tag, let message): devices[device].disk.store(message, at: tag)
    case .wake(let timer, let delay):
      let number = number()
      devices[device].deadlines[timer] = number
      schedule.add(
        .timer(device: device, process: process, timer, number: number),
        after: Int.random(in: delay, using: &chance))
    case .cancel(let timer): devices[device].deadlines[timer] = nil
    case .suspected(let state):
      note("\(device) suspects: \(state)")
      devices[device].suspicions.append(state)
    case .ended(let ending):
      note("\(device) ends: \(ending)")
      devices[device].isMember = false
    case .makeEpoch(let epoch): store(epoch, from: nil, device, process)
    case .takeEpoch(let epoch, let message): store(epoch, from: message, device, process)
    case .learnEpoch(let number, let message): learn(number, message, device)
    case .notRotated: note("\(device) cannot rotate")
    case .grant(let draft, let boxKey): grant(draft, boxKey, device, process)
    case .announce(let topic, let draft):
      guard let link = devices[device].link, case .exactly(let counter) = draft.counter,
        let message = seal(draft, counter, device, on: topic)
      else { return }
      schedule.add(.toBroker(link: link, text: topic.text, bytes: message.bytes, isRetained: false), after: 1)
    case .clear(let topic):
      guard let link = devices[device].link else { return }
      note("\(device) clears \(topic.text.suffix(6))")
      schedule.add(.toBroker(link: link, text: topic.text, bytes: [], isRetained: true), after: 1)
    case .newcomer(let answer): tell(device, "newcomer \(name(answer))")
    case .anotherNewcomer(let answer): tell(device, "another \(name(answer))")
    case .invitationOver: break
    case .invitationEnded(let isUsed): tell(device, isUsed ? "used" : "expired")
    case .accept(let invitation): accept(invitation, device, process)
    case .joined(let isConfirmed): join(device, isConfirmed: isConfirmed)
    case .notJoined(let failure): tell(device, "not joined, \(failure)")
    case .rekeyed(let record): note("\(device) warns of another key of \(record.body.subject)")
    case .readKeys, .dropped, .beyondBound: break
    case .box, .notOffered, .invalidate: faults.append("device \(device): \(action)")
    }
  }

  // MARK: Events

  /// Lets time pass.
  mutating func run(for duration: Int) {
    let end = schedule.now + duration
    while let event = schedule.next(until: end) { take(event) }
  }

  private mutating func take(_ event: Event) {
    switch event {
    case .timer(let device, let process, let timer, let number):
      guard devices[device].process == process, devices[device].deadlines[timer] == number else { return }
      devices[device].deadlines[timer] = nil
      feed(device, .woke(timer))
    case .input(let device, let process, let input):
      guard devices[device].process == process else { return }
      if case .connected = input {
        let link = number()
        devices[device].link = link
        links[link] = device
      }
      feed(device, input)
    case .toBroker(let link, let text, let bytes, let isRetained):
      guard links[link] != nil else { return }
      sent += 1
      carry(broker.publish(text, bytes, isRetained: isRetained, now: schedule.now, &chance))
    case .subscribe(let link, let filter):
      guard links[link] != nil else { return }
      carry(broker.subscribe(link, to: filter, now: schedule.now, &chance))
    case .toDevice(let link, let packet):
      guard let device = links[link] else { return }
      receive(packet, device)
    case .count(let device, let process, let draft):
      guard devices[device].process == process else { return }
      count(draft, device, process)
    case .write(let device, let process, let draft, let counter):
      guard devices[device].process == process else { return }
      write(draft, counter, device)
    case .store(let device, let process, let epoch):
      guard devices[device].process == process else { return }
      enter(epoch, device, process)
    case .chance: strike()
    }
  }

  mutating func carry(_ deliveries: PlayedBroker.Deliveries) {
    for delivery in deliveries {
      schedule.add(.toDevice(link: delivery.link, delivery.packet), after: delivery.delay)
    }
  }

  private mutating func receive(_ packet: PlayedBroker.Packet, _ device: Int) {
    switch packet {
    case .subscribed(let filter): feed(device, .subscribed(filter))
    case .message(let text, let bytes, let isRetained):
      guard let topic = MessageTopic(parsing: text) else { return }
      let shown = open(bytes, on: topic, at: device)
      if case .device(_, let tag) = topic {
        feed(device, .heard(tag, shown, isRetained: isRetained))
      } else {
        feed(device, .arrived(topic, shown, isRetained: isRetained))
      }
    }
  }

  private mutating func open(_ bytes: [UInt8], on topic: MessageTopic, at device: Int) -> Shown {
    let shown = open(bytes, on: topic)
    if devices[device].disk.isEarlier, bytes.count > 2, bytes[2] != 1 { return .rejected(.version) }
    guard case .message(let message) = shown, message.epoch > 0, !devices[device].disk.epochs.contains(message.epoch)
    else { return shown }
    return .rejected(.epoch)
  }

  private mutating func open(_ bytes: [UInt8], on topic: MessageTopic) -> Shown {
    guard !bytes.isEmpty else { return .nothing }
    if let known = opened[topic.text]?[bytes] { return known }
    let shown: Shown
    do throws(Rejection) {
      switch topic {
      case .invitation, .answer:
        guard let meeting else { return .rejected(.seal) }
        shown = .message(try meeting.key.open(bytes, on: topic))
      default: shown = .message(try MessageSeal(account, epochs: Array(keys.values)).open(bytes, on: topic))
      }
    } catch {
      shown = .rejected(error)
    }
    opened[topic.text, default: [:]][bytes] = shown
    return shown
  }

  private mutating func count(_ draft: Draft, _ device: Int, _ process: Int) {
    if isUnruly && chance.once(in: 10) { return feed(device, .notWritten(draft)) }
    let counter: UInt64
    switch draft.counter {
    case .exactly(let number): counter = number
    case .next(let above):
      devices[device].disk.counter = max(devices[device].disk.counter, above) + 1
      counter = devices[device].disk.counter
    }
    schedule.add(
      .write(device: device, process: process, draft, counter: counter),
      after: Int.random(in: 0...50, using: &chance))
  }

  mutating func seal(
    _ draft: Draft, _ counter: UInt64, _ device: Int, on topic: MessageTopic, box: [UInt8]? = nil
  ) -> SignedMessage? {
    let disk = devices[device].disk
    var body = Body(
      subject: draft.subject, generation: draft.generation, counter: counter, run: devices[device].run,
      time: Timestamp(milliseconds: Int64(schedule.now)), author: disk.device, fields: draft.fields)
    if let box { body.fields[.sealedBox] = box }
    let nonce = (0..<3).flatMap { _ in chance.next().bigEndianBytes }
    let key = disk.epochs.contains(draft.epoch) ? keys[draft.epoch] : nil
    let version = disk.isEarlier ? .one : devices[device].fleet.version
    let message = key?.seal(draft.kind, body, version, on: topic, by: disk.keys, nonce: nonce)
    if message == nil { faults.append("device \(device) cannot seal \(draft)") }
    return message
  }

  private mutating func write(_ draft: Draft, _ counter: UInt64, _ device: Int) {
    let disk = devices[device].disk
    guard let message = seal(draft, counter, device, on: .device(account.id, draft.tag)) else { return }
    if draft.kind == .record, !written.insert("\(disk.keys.signingKey.bytes) \(counter)").inserted {
      faults.append("device \(device) uses counter \(counter) twice")
    }
    note("\(device) writes \("\(draft.tag)".suffix(6)) \(draft.kind) \(counter)")
    devices[device].disk.store(message, at: draft.tag)
    devices[device].disk.forgotten.remove(draft.tag)
    feed(device, .wrote(draft.tag, message))
  }

  // MARK: Chance

  /// Does one thing that may go wrong or that a user may do, and plans the next.
  private mutating func strike() {
    guard isUnruly else { return }
    let device = Int.random(in: devices.indices, using: &chance)
    if isRotating, chance.once(in: 12) { rotate(at: device) }
    if let thief, chance.once(in: 6) { haunt(thief, isReckless: false) }
    switch Int.random(in: 0..<12, using: &chance) {
    case 0: kill(device)
    case 1, 2: start(device)
    case 3:
      if devices[device].link != nil {
        note("\(device) loses its connection")
        close(device)
        feed(device, .disconnected)
      }
    case 4, 5: rename(device, Text("name \(number())"))
    default:
      let (what, deliveries) = broker.misbehave(now: schedule.now, &chance)
      note("broker \(what)")
      carry(deliveries)
    }
    schedule.add(.chance, after: Int.random(in: 100...5_000, using: &chance))
  }

  /// Lets chance strike for a while, then makes the broker honest and starts all devices.
  mutating func endure(_ duration: Int, lies: PlayedBroker.Lies = PlayedBroker.Lies()) {
    isUnruly = true
    broker.lies = lies
    schedule.add(.chance, after: 0)
    run(for: duration)
    isUnruly = false
    broker.lies = nil
    note("peace")
    for device in devices.indices where devices[device].isMember { start(device) }
  }
}
