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
  private let laterKey: SecretKey
  var fleet = Fleet()
  /// Whether the actions of the comparison are shown, which accompany most others.
  var showsComparison = false
  /// The version of envelopes that the messages from now on have, and the greatest one that their authors tell to read.
  var (version, readableVersion) = (EnvelopeVersion.one, UInt8(1))
  /// The bytes of their nonce.
  var nonce: UInt8 = 0
  private var counter: UInt64 = 0

  init(others: Int = 2, settings: Settings = Settings(presence: false)) throws {
    var chance = SeededGenerator(7)
    let account = try #require(AccountKeys(root: try drawnSecret(&chance)))
    self.account = account
    laterKey = try drawnSecret(&chance)
    speakers = try (0...others).map { _ in
      let device: UUID = drawn(&chance)
      return Speaker(
        device: device, tag: account.tag(of: device),
        keys: try #require(DeviceKeys(seed: try drawnSecret(&chance))))
    }
    fleet = Fleet(settings)
  }

  /// Returns the key of an epoch. All epochs after the first one have the same.
  func key(_ epoch: UInt32) -> EpochKey {
    epoch == 1 ? account.firstEpoch : EpochKey(number: epoch, key: laterKey)
  }

  func membership(_ place: Int = 0, generation: UInt32 = 1) -> Membership {
    Membership(
      account: account.id, device: speakers[place].device, tag: speakers[place].tag, generation: generation,
      run: Run(high: 1, low: 1), pastRuns: [], description: description(place, "name"))
  }

  func description(_ place: Int, _ name: Text) -> DeviceDescription {
    DeviceDescription(
      name: name, signingKey: speakers[place].keys.signingKey, boxKey: speakers[place].keys.boxKey,
      joined: Timestamp(milliseconds: 1), home: Home(high: 2, low: 2), readableVersion: readableVersion)
  }

  /// Returns the record of a device.
  func record(
    _ place: Int, _ counter: UInt64, generation: UInt32 = 1, by author: Int? = nil, run: UInt64 = 1,
    epoch: UInt32 = 1, time: Int64 = 1
  ) throws -> SignedMessage {
    let author = author ?? place
    return try message(
      .record, place, counter, author, run: run, description(author, "name").fields, generation: generation,
      epoch: epoch, time: time)
  }

  /// Returns the tombstone of a device, which its author has signed, or another device.
  func tombstone(
    _ place: Int, _ counter: UInt64, generation: UInt32 = 1, by author: Int, signer: Int? = nil,
    _ removal: Removal = Removal(.removed), epoch: UInt32 = 1
  ) throws -> SignedMessage {
    try message(
      .tombstone, place, counter, author, signer: signer,
      removal.fields(signingKey: speakers[signer ?? author].keys.signingKey), generation: generation, epoch: epoch)
  }

  /// Returns a message about a device.
  func message(
    _ kind: MessageKind, _ place: Int, _ counter: UInt64, _ author: Int, signer: Int? = nil, run: UInt64 = 1,
    _ fields: Fields, generation: UInt32 = 1, epoch: UInt32 = 1, time: Int64 = 1
  ) throws -> SignedMessage {
    let body = Body(
      subject: speakers[place].device, generation: generation, counter: counter, run: Run(high: run, low: run),
      time: Timestamp(milliseconds: time), author: speakers[author].device, fields: fields)
    let tag = speakers[place].tag
    let topic: MessageTopic =
      switch kind {
      case .presence: .presence(account.id, tag)
      case .who: .who(account.id)
      case .grant: .grant(account.id, tag)
      default: .device(account.id, tag)
      }
    return try #require(
      key(epoch).seal(
        kind, body, version, on: topic, by: speakers[signer ?? author].keys, nonce: [UInt8](repeating: nonce, count: 24)
      ))
  }

  // MARK: Inputs

  /// Gives an input, and returns the actions as text.
  @discardableResult
  mutating func tell(_ input: Input) -> [String] {
    fleet.take(input).map(text).filter { showsComparison || !$0.contains("digest") }
  }

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
    return try becomeLive(as: membership(), roster, shown: shown)
  }

  /// Makes the device connect and read a roster.
  mutating func becomeLive(
    as membership: Membership, _ roster: Roster, shown: [SignedMessage] = []
  ) throws -> [String] {
    tell(.started(.member(membership, roster)))
    tell(.woke(.connect))
    findNoKey()
    tell(.subscribed(.only(topic(0))))
    tell(.woke(.quiet))
    tell(.subscribed(.roster(account.id)))
    for message in shown { try show(message) }
    return tell(.woke(.quiet))
  }

  /// Makes the device connect, and find no key on its topic for keys.
  @discardableResult
  mutating func findNoKey() -> [String] {
    tell(.connected) + tell(.subscribed(.only(.grant(account.id, speakers[0].tag)))) + tell(.woke(.quiet))
  }

  /// Makes the device connect again after a disconnection, and read a roster without messages.
  mutating func reconnect() -> [String] {
    tell(.woke(.connect))
    findNoKey()
    tell(.subscribed(.only(topic(0))))
    tell(.woke(.quiet))
    tell(.subscribed(.roster(account.id)))
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
    case .reports(_, let bucket): "reports \(bucket)"
    case .tokens(_, let bucket): "tokens \(bucket)"
    case .only(let topic): name(topic)
    }
  }

  private func name(_ topic: MessageTopic) -> String {
    switch topic {
    case .device(_, let tag): name(tag)
    case .grant(_, let tag): "grant of \(name(tag))"
    case .presence(_, let tag): "presence of \(name(tag))"
    case .who: "who"
    case .digest: "digests"
    case .invitation: "invitation"
    case .answer: "answer"
    case .report(_, let tag): "report of \(name(tag))"
    case .tokens(_, let tag): "tokens of \(name(tag))"
    case .feedback(_, let tag): "feedback for \(name(tag))"
    }
  }

  private func name(_ deadline: Deadline) -> String {
    switch deadline {
    case .posting(let tag): "posting \(name(tag))"
    case .removal(let tag): "removal \(name(tag))"
    case .grant(let tag): "grant \(name(tag))"
    case .offer(let topic): "offer \(name(topic))"
    case .offerRest(let topic): "rest \(name(topic))"
    case .offerRefresh(let topic): "refresh \(name(topic))"
    default: "\(deadline)"
    }
  }

  private func text(_ message: SignedMessage) -> String {
    message.body.fields[.name].map { String(decoding: $0, as: UTF8.self) } ?? "unnamed"
  }

  private func text(_ draft: Draft) -> String {
    "\(draft.fields[.state] == [1] ? "here " : "")\(draft.counter)"
  }

  private func text(_ action: Action) -> String {
    switch action {
    case .subscribe(let filter): "subscribe \(name(filter))"
    case .publish(let topic, let message): "publish \(name(topic)) \(message.kind) \(message.body.counter)"
    case .write(let draft): "write \(name(draft.tag)) \(draft.kind) \(draft.counter)"
    case .store(let tag, let message): "store \(name(tag)) \(message.kind) \(message.body.counter)"
    case .wake(let deadline, let delay): "wake \(name(deadline)) \(delay)"
    case .cancel(let deadline): "cancel \(name(deadline))"
    case .ended(.removed(let reason, let author, let isProven)):
      "ended \(reason) by \(speakers.firstIndex { $0.device == author }.map(String.init) ?? "?")"
        + (isProven ? "" : ", unproven")
    case .dropped(let reason): "dropped \(reason)"
    case .clear(let topic): "clear \(name(topic))"
    case .makeEpoch(let epoch): "make epoch \(epoch.number)"
    case .takeEpoch(let epoch, _): "take epoch \(epoch.number)\(epoch.isContested ? ", contested" : "")"
    case .learnEpoch(let number, _): "learn epoch \(number)"
    case .notRotated: "not rotated"
    case .grant(let draft, _):
      "grant \(name(draft.tag)) \(UInt32(bigEndian: draft.fields[.epoch] ?? [])) in \(draft.epoch)"
    case .box(let draft, let topic, _): "box \(name(topic)) \(draft.counter)"
    case .notOffered(let topic): "not offered \(name(topic))"
    case .invalidate(let token): "invalidate \(token.value)"
    case .will(let topic, let draft): "will \(name(topic)) \(text(draft))"
    case .announce(let topic, let draft): "announce \(name(topic)) \(text(draft))"
    case .newcomer(let answer): "newcomer \(text(answer))"
    case .anotherNewcomer(let answer): "another newcomer \(text(answer))"
    case .invitationOver: "invitation over"
    case .invitationEnded(let isUsed): "invitation ended, \(isUsed ? "used" : "expired")"
    case .accept(let invitation): "accept \(text(invitation))"
    case .joined(let isConfirmed): "joined, \(isConfirmed ? "confirmed" : "unconfirmed")"
    case .notJoined(let failure): "not joined, \(failure)"
    case .rekeyed(let record): "rekeyed \(text(record))"
    case .readKeys, .connect, .disconnect, .suspected, .beyondBound, .ended(.superseded): "\(action)"
    }
  }
}
