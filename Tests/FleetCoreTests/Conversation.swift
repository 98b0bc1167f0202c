import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// One device's rules in conversation with a test, without a broker.
struct Conversation {
  /// A device that the test speaks for.
  struct Speaker {
    let device: UUID
    let tag: DeviceTag
    let keys: DeviceKeys
  }

  let account: AccountKeys
  /// This device and others, named in the actions by their places.
  let speakers: [Speaker]
  var fleet = Fleet()
  private var counter: UInt64 = 0

  init(others: Int = 2, settings: Settings = Settings()) throws {
    var chance = SeededGenerator(7)
    let account = try #require(AccountKeys(root: try drawnSecret(&chance)))
    self.account = account
    speakers = try (0...others).map { _ in
      let device: UUID = drawn(&chance)
      return Speaker(
        device: device, tag: account.tag(of: device),
        keys: try #require(DeviceKeys(seed: try drawnSecret(&chance))))
    }
    fleet = Fleet(settings)
  }

  func membership(_ place: Int = 0, generation: UInt32 = 1) -> Membership {
    Membership(
      account: account.id, device: speakers[place].device, tag: speakers[place].tag, generation: generation,
      run: Run(high: 1, low: 1), pastRuns: [], description: description(place, "name"))
  }

  func description(_ place: Int, _ name: Text) -> DeviceDescription {
    DeviceDescription(
      name: name, signingKey: speakers[place].keys.signingKey, boxKey: speakers[place].keys.boxKey,
      joined: Timestamp(milliseconds: 1), home: Home(high: 2, low: 2))
  }

  /// Returns the record of a device.
  func record(
    _ place: Int, _ counter: UInt64, generation: UInt32 = 1, by author: Int? = nil, run: UInt64 = 1
  ) throws -> SignedMessage {
    let author = author ?? place
    return try message(
      .record, place, counter, generation, author, run, fields: description(author, "name").fields)
  }

  /// Returns the tombstone of a device.
  func tombstone(
    _ place: Int, _ counter: UInt64, generation: UInt32 = 1, by author: Int, _ removal: Removal = Removal(.removed)
  ) throws -> SignedMessage {
    try message(
      .tombstone, place, counter, generation, author, 1,
      fields: removal.fields(signingKey: speakers[author].keys.signingKey))
  }

  private func message(
    _ kind: MessageKind, _ place: Int, _ counter: UInt64, _ generation: UInt32, _ author: Int, _ run: UInt64,
    fields: Fields
  ) throws -> SignedMessage {
    let body = Body(
      subject: speakers[place].device, generation: generation, counter: counter, run: Run(high: run, low: run),
      time: Timestamp(milliseconds: 1), author: speakers[author].device, fields: fields)
    return try #require(
      account.firstEpoch.seal(
        kind, body, on: .device(account.id, speakers[place].tag), by: speakers[author].keys,
        nonce: [UInt8](repeating: 0, count: 24)))
  }

  // MARK: Inputs

  /// Gives an input, and returns the actions as text.
  @discardableResult
  mutating func tell(_ input: Input) -> [String] { fleet.take(input).map(text) }

  /// Gives messages that the broker has retained.
  @discardableResult
  mutating func show(_ messages: SignedMessage...) throws -> [String] {
    try messages.flatMap { tell(.heard(try tag($0), .message($0), isRetained: true)) }
  }

  /// Gives a live message.
  @discardableResult
  mutating func hear(_ message: SignedMessage) throws -> [String] {
    tell(.heard(try tag(message), .message(message), isRetained: false))
  }

  private func tag(_ message: SignedMessage) throws -> DeviceTag {
    try #require(speakers.first { $0.device == message.body.subject }).tag
  }

  /// Makes the device connect and read a roster.
  mutating func becomeLive(_ known: [SignedMessage] = [], shown: [SignedMessage] = []) throws -> [String] {
    let roster = Roster(Dictionary(uniqueKeysWithValues: try known.map { (try tag($0), $0) }))
    tell(.started(.member(membership(), roster)))
    tell(.woke(.connect))
    tell(.connected)
    tell(.subscribed(.only(topic(0))))
    tell(.woke(.quiet))
    tell(.subscribed(.roster(account.id)))
    for message in shown { try show(message) }
    return tell(.woke(.quiet))
  }

  /// Makes the device live, with its record written and confirmed by the broker.
  mutating func settle(_ known: [SignedMessage] = []) throws -> SignedMessage {
    _ = try becomeLive(known, shown: known)
    tell(.woke(.change))
    let own = try record(0, 10)
    tell(.wrote(speakers[0].tag, own))
    try show(own)
    return own
  }

  func topic(_ place: Int) -> MessageTopic { .device(account.id, speakers[place].tag) }
  func posting(_ place: Int) -> Input { .woke(.posting(speakers[place].tag)) }

  // MARK: Actions as text

  private func name(_ tag: DeviceTag?) -> String {
    speakers.firstIndex { $0.tag == tag }.map(String.init) ?? "?"
  }

  private func name(_ filter: TopicFilter) -> String {
    switch filter {
    case .roster: "roster"
    case .bucket(_, let bucket): "bucket \(bucket)"
    case .presences: "presences"
    case .only(let topic): name(topic.tag)
    }
  }

  private func name(_ deadline: Deadline) -> String {
    switch deadline {
    case .posting(let tag): "posting \(name(tag))"
    case .removal(let tag): "removal \(name(tag))"
    default: "\(deadline)"
    }
  }

  private func text(_ action: Action) -> String {
    switch action {
    case .subscribe(let filter): "subscribe \(name(filter))"
    case .publish(let topic, let message): "publish \(name(topic.tag)) \(message.kind) \(message.body.counter)"
    case .write(let draft): "write \(name(draft.tag)) \(draft.kind) \(draft.counter)"
    case .store(let tag, let message): "store \(name(tag)) \(message.kind) \(message.body.counter)"
    case .wake(let deadline, let delay): "wake \(name(deadline)) \(delay)"
    case .cancel(let deadline): "cancel \(name(deadline))"
    case .ended(.removed(let reason, let author)):
      "ended \(reason) by \(speakers.firstIndex { $0.device == author }.map(String.init) ?? "?")"
    case .dropped(let reason): "dropped \(reason)"
    case .readKeys, .connect, .disconnect, .suspected, .beyondBound, .ended(.superseded): "\(action)"
    }
  }
}
