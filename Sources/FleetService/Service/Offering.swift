import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

/// The messages of this device for readers outside of the account: its push tokens for senders, and its report for a site.
struct Offering {
  /// The pause between two looks, in microseconds: ten minutes. The state of identityd has no events.
  private static let pause: UInt64 = 600_000_000
  /// The pause between a change and a look, in microseconds. Several changes become one message.
  private static let changePause: UInt64 = 1_000_000
  /// The most bytes of the fields that repeat, so that the other fields of a message have room, too.
  private static let mostBytes = 31_744
  /// The most bytes of one of these fields.
  private static let longestField = 5_120
  /// The most texts that are logged.
  private static let mostLogged = 64

  private let log: ServiceLog
  /// The offers of this process, also those to readers that are configured no more.
  private(set) var offers: [MessageTopic: Offer] = [:]
  /// The last messages, which nobody but the readers can open.
  private var messages: [MessageTopic: SignedMessage] = [:]
  private var timer: EventSource?
  /// The time of the next look.
  private var nextLook = UInt64.max
  /// The end of the pause after the last report. A look for a report before it would change nothing.
  private var reportRestEnd: UInt64 = 0
  private var logged: Set<String> = []
  /// The tokens that senders have found invalid and that are to be logged: one of them, and the number of the others.
  private var invalid: (first: CarriedToken, others: Int)?

  init(_ log: ServiceLog) { self.log = log }

  /// Returns whether a topic belongs to one of the offers.
  func has(_ topic: MessageTopic) -> Bool {
    if case .feedback(let sender, let tag) = topic { return offers[.tokens(sender, tag)] != nil }
    return offers[topic] != nil
  }

  /// Reads the present content for all readers.
  ///
  /// - Parameter areOther: whether the readers are other ones, or this is a start.
  /// - Returns: the offers, and those that have ended since; nil if identityd refuses to tell.
  mutating func read(
    for account: Account, _ configuration: FleetConfiguration, over link: DaemonLink, areOther: Bool
  ) throws(DaemonFault) -> (present: [Offer], ended: [Offer])? {
    do throws(DaemonFault) {
      if areOther {
        // Before anything is read, so that no change is missed.
        if !configuration.senders.isEmpty { try link.subscribe(to: "token") }
        if configuration.siteKey != nil { try link.subscribe(to: "version") }
      }
      let present =
        try tokenOffers(of: account, to: configuration.senders, link)
        + reportOffers(of: account, to: configuration.siteKey, link)
      return (present, keep(present))
    } catch .refused(_, let text) {
      // The account needs nothing of this, so it goes on.
      warnOnce("readers outside of the account are told nothing new: \(text)")
      return nil
    }
  }

  private mutating func tokenOffers(
    of account: Account, to senders: [FleetConfiguration.Sender], _ link: DaemonLink
  ) throws(DaemonFault) -> [Offer] {
    guard !senders.isEmpty, let found = try link.tokens(of: account.present.device, atMost: Self.mostBytes) else {
      return []
    }
    let (tokens, areAll) = Self.fitting(found, \.field)
    if !areAll { warnOnce("the push tokens are too long for one message; senders get those that fit") }
    var content = Fields()
    content.set(.token, tokens)
    return senders.map { sender in
      Offer(
        topic: .tokens(ReaderID(of: sender.boxKey), account.present.tag), boxKey: sender.boxKey,
        signingKey: sender.signingKey, content: content)
    }
  }

  private mutating func reportOffers(
    of account: Account, to siteKey: PublicKey?, _ link: DaemonLink
  ) throws(DaemonFault) -> [Offer] {
    guard let siteKey else { return [] }
    let (apps, areAll) = Self.fitting(try link.apps(), \.field)
    if !areAll { warnOnce("the versions are too long for one report; it has those that fit") }
    let state = try link.state()
    var content = Fields()
    content[.name] = account.present.description.name.bytes
    content[.system] = account.present.description.system?.bytes
    content[.daemon] = state.version.bytes
    content[.status] = state.word.bytes
    content.set(apps)
    account.present.description.proofKeys?.add(to: &content)
    return [
      // A site sends nothing, so its other key does not matter.
      Offer(
        topic: .report(ReaderID(of: siteKey), account.present.tag), boxKey: siteKey, signingKey: siteKey,
        content: content)
    ]
  }

  /// Keeps the offers to the present readers. Returns those that have ended since.
  private mutating func keep(_ present: [Offer]) -> [Offer] {
    let topics = Set(present.map(\.topic))
    let ended = offers.values.filter { !topics.contains($0.topic) }.sorted { $0.topic.text < $1.topic.text }
    // Those of other identifiers and earlier configurations stay for the next start, which may come too early for their
    // end.
    offers = Dictionary((ended.suffix(Outlets.most) + present).map { ($0.topic, $0) }) { $1 }
    messages = messages.filter { offers[$0.key] != nil }
    return ended
  }

  /// Keeps a message, or that there is none.
  mutating func keep(_ message: SignedMessage?, on topic: MessageTopic) {
    messages[topic] = message
    guard case .report = topic, message != nil else { return }
    reportRestEnd = Clock.monotonicMicroseconds + UInt64(Pace.reportRest.upperBound) * 1_000
  }

  /// Opens what the broker shows on a topic of an offer.
  func opened(_ bytes: [UInt8], on topic: MessageTopic, by keys: DeviceKeys) throws(Rejection) -> SignedMessage {
    if case .feedback = topic { return try keys.openBox(bytes, on: topic) }
    guard let message = messages[topic], message.bytes == bytes else { throw .seal }
    return message
  }

  /// Returns the values that fit into a message, in order, and whether they are all.
  private static func fitting<Value>(_ values: [Value], _ field: (Value) -> [UInt8]) -> (values: [Value], areAll: Bool)
  {
    var left = mostBytes
    let fitting = values.filter { value in
      let count = field(value).count
      guard count <= longestField, count + 3 <= left else { return false }
      left -= count + 3
      return true
    }
    return (fitting, fitting.count == values.count)
  }

  /// Warns of something once.
  mutating func warnOnce(_ text: String) {
    if logged.count < Self.mostLogged, logged.insert(text).inserted { log.warn(text) }
  }

  /// Marks a token as invalid, as its sender has found. If it is no longer the app's, nothing changes.
  mutating func invalidate(_ token: CarriedToken, over link: DaemonLink?) throws(DaemonFault) {
    do throws(DaemonFault) {
      try link?.invalidate(token)
      invalid = (invalid?.first ?? token, invalid.map { $0.others + 1 } ?? 0)
    } catch .refused(let code, let text) {
      // The app was uninstalled meanwhile.
      if code != .notFound { warnOnce("a token that its sender found invalid stays: \(text)") }
    }
  }

  /// Logs the tokens that senders have found invalid since the last call, in one entry.
  ///
  /// An app chooses the number of its tokens, so an entry for each would let a user fill the log.
  mutating func logInvalidTokens() {
    guard let (first, others) = invalid.take() else { return }
    let place = first.place
    log.note(
      "a sender has found the push token of \(place.app) for \(place.provider) invalid"
        + (others == 0 ? "" : ", and further tokens: \(others)"))
  }

  /// Looks again after a pause.
  mutating func arm(_ loop: EventLoop, _ look: @escaping () -> Void) throws(SystemdError) {
    if timer == nil { timer = try loop.timer(after: Self.pause, accuracy: 100_000, look) }
    nextLook = .max
    self.look(after: Self.pause)
  }

  /// Looks soon after a change, however often something changes.
  ///
  /// - Parameter isForReport: whether the change matters to a report alone.
  mutating func noteChange(isForReport: Bool) {
    let now = Clock.monotonicMicroseconds
    look(after: max(Self.changePause, isForReport && reportRestEnd > now ? reportRestEnd - now : 0))
  }

  private mutating func look(after delay: UInt64) {
    let moment = Clock.monotonicMicroseconds + delay
    guard moment < nextLook else { return }
    nextLook = moment
    timer?.arm(after: delay)
  }
}

extension Service {
  /// Offers the present content to all readers.
  ///
  /// - Parameters:
  ///   - isStart: whether the rules have started, so that they know of no earlier offer.
  ///   - isReload: whether the readers are others.
  func offer(isStart: Bool = false, isReload: Bool = false) throws(DaemonFault) {
    guard let account = affiliation.account, let link = daemon.link else { return }
    if configuration.siteKey != nil || !configuration.senders.isEmpty {
      do {
        try offering.arm(loop) { [unowned self] in turn { () throws(DaemonFault) in try offer() } }
      } catch {
        offering.warnOnce("readers outside of the account are told no changes: \(error)")
      }
    }
    let read = try offering.read(for: account, configuration, over: link, areOther: isStart || isReload)
    guard let (present, ended) = read else { return }
    for offer in ended {
      if isStart { try take(.offer(offer)) }
      try take(.withdraw(offer.topic))
    }
    for offer in present { try take(.offer(offer)) }
  }

  /// Seals a draft to its reader. There is always a report.
  func box(_ draft: Draft, on topic: MessageTopic, to boxKey: PublicKey) throws(DaemonFault) {
    var message: SignedMessage?
    do throws(DaemonFault) {
      message = try writing?.boxed(draft, on: topic, to: boxKey)
      if message == nil { offering.warnOnce("a message on \(topic.text) cannot be sealed; its key may be none") }
    } catch .refused(_, let text) {
      report.noteStoreReason(text)
    }
    offering.keep(message, on: topic)
    rules.queue(.boxed(topic, message))
  }
}
