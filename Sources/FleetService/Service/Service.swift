import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto
import Systemd

/// The service of the fleet: carries inputs to the rules, and their actions to identityd and the broker.
///
/// The service keeps no state on the disk: identityd commits each fact that a later run needs, before anything follows
/// from the fact. So the service treats the end of its connection with identityd and another device identifier like a
/// start.
///
/// A turn waits for the answers of identityd, so the service runs on a thread of its own; see ``ServiceThread``.
final class Service {
  let loop: EventLoop
  let log: ServiceLog
  private let credentials: Credentials
  private var invitation: InvitationCredential
  private(set) var configuration: FleetConfiguration
  let daemon: DaemonSession
  let pauses = Pauses()
  var rules = Rules()
  private(set) var broker: Broker?
  let side: SideConnections
  var affiliation = Affiliation()
  private var storing = Storing()
  var meetings: Meetings
  var offering: Offering
  var report: StatusReport

  /// Creates the service, which connects to identityd as soon as the loop runs.
  ///
  /// - Parameter tell: called with the state after a change, and once identityd has answered.
  init(
    _ loop: EventLoop, _ settings: ServiceSettings, tell: @escaping (ServiceThread.Report) -> Void
  ) throws(SystemdError) {
    self.loop = loop
    log = settings.log
    credentials = settings.credentials
    configuration = settings.configuration
    invitation = InvitationCredential(credentials, log)
    daemon = DaemonSession(loop, settings.daemon, settings.run) { tell(.ready) }
    side = SideConnections(loop)
    meetings = Meetings(log)
    offering = Offering(log)
    report = StatusReport { tell(.state($0)) }
    try rules.deadlines.start(loop) { [unowned self] passed in
      turn { () throws(DaemonFault) in for deadline in passed { try take(.woke(deadline)) } }
    }
    try pauses.start(loop) { [unowned self] passed in
      turn { () throws(DaemonFault) in for pause in passed { try act(after: pause) } }
    }
    pauses.begin(.start)
  }

  /// Uses another configuration from now on.
  func use(_ configuration: FleetConfiguration) {
    let former = self.configuration
    self.configuration = configuration
    side.endTrial()
    turn { () throws(DaemonFault) in
      guard daemon.link != nil, let broker else { return }
      if configuration.settings != former.settings { try take(.configured(configuration.settings)) }
      // A broker that has got the present password may leave a connection with the former one alone.
      if configuration.access != former.access || broker.usesFormerPassword(of: affiliation.account) {
        broker.use(configuration)
        try take(.disconnected)
      }
      try take(.awaited)
      if configuration.siteKey != former.siteKey || configuration.senders != former.senders {
        try offer(isReload: true)
      }
    }
  }

  /// Ends the connections with the broker. Without a will, the broker is told.
  func stop() {
    broker?.disconnect()
    side.end()
  }

  // MARK: Turns

  /// Runs a turn: what happened, then everything that follows from it.
  func turn(_ body: () throws(DaemonFault) -> Void) {
    do throws(DaemonFault) {
      try body()
      try follow()
      // A request sets the events aside that arrive before its answer, and these do not wake the loop.
      repeat {
        // Not before the connection is of use, since a broker may accept and end one connection after the other.
        if rules.fleet.phase == .live, report.noteConnected() {
          log.note("connected to \(broker?.pattern?.description ?? "the broker")")
        }
        report.note(
          rules.fleet, broker, meetings.rows, held: storing.heldCount, affiliation.account, isOwn: log.isOwn)
        if let silence = report.noteSilence(now: Clock.monotonicMicroseconds) { log.warn(silence) }
        if let link = daemon.link { try report.say(over: link) }
      } while try follow()
    } catch {
      lose(error)
    }
    report.tell(isKnown: daemon.link != nil)
    offering.logInvalidTokens()
    rules.deadlines.arm()
  }

  /// Gives the rules an input, and performs the actions that follow.
  func take(_ input: Input) throws(DaemonFault) { _ = try performed(after: input) }

  /// Gives the rules an input. Returns the actions that followed, which are performed.
  func performed(after input: Input) throws(DaemonFault) -> [Action] {
    rules.queue(input)
    var performed: [Action] = []
    while let actions = rules.takeNext() {
      for action in actions { try perform(action) }
      performed += actions
    }
    return performed
  }

  private func perform(_ action: Action) throws(DaemonFault) {
    switch action {
    case .readKeys: daemon.requestStart()
    case .connect: connectToBroker()
    case .disconnect: leaveBroker()
    case .subscribe(let filter): broker?.subscribe(to: filter)
    case .publish(let topic, let message):
      try store()
      // Nothing is published that is not on the disk. The rules read back, and publish again.
      if storing.isStored(message.body.subject) { broker?.publish(message, on: topic) }
    case .clear(let topic): broker?.clear(topic)
    case .will(let topic, let draft):
      if let message = writing?.sealed(draft, on: topic) { broker?.leave(will: message, on: topic) }
    case .announce(let topic, let draft):
      if let message = writing?.sealed(draft, on: topic) { broker?.announce(message, on: topic) }
    case .write(let draft):
      try store()
      rules.queue(try write(draft))
    case .grant(let draft, let boxKey): rules.queue(grant(draft, to: boxKey))
    case .makeEpoch(let epoch): try enter(epoch, SecretKey.random())
    case .takeEpoch(let epoch, let message): try enter(epoch, affiliation.account?.key(in: message))
    case .learnEpoch(let number, let message):
      let account = affiliation.account
      let isLearned = try use(account?.learning(number, account?.key(in: message)))
      rules.queue(isLearned ? .learned : .notLearned(number))
    case .notRotated:
      // It may be the end of a rotation that waited, of which nobody else hears.
      log.warn("the key of the account was not replaced")
    case .store(_, let message): try keep(message)
    case .wake(let deadline, let delay): set(deadline, after: delay)
    case .cancel(let deadline): rules.deadlines.cancel(deadline)
    case .suspected(let state): try suspect(state)
    case .dropped(let reason): report.noteDropped(reason)
    case .beyondBound: report.noteBeyondBound()
    case .rekeyed(let record): noteOtherKey(in: record)
    case .ended(let ending): try end(ending)
    case .newcomer(let answer): meetings.note(newcomer: answer)
    case .anotherNewcomer(let answer): meetings.note(intruder: answer)
    case .invitationOver: meetings.forgetCode()
    case .invitationEnded(let isUsed): if !isUsed { meetings.expire() }
    case .accept(let invitation): try accept(invitation)
    case .joined(let isConfirmed):
      meetings.end(isConfirmed ? .confirmed : .unconfirmed)
      daemon.requestStart()
    case .notJoined(let failure): notJoined(failure)
    case .box(let draft, let topic, let boxKey): try box(draft, on: topic, to: boxKey)
    case .notOffered(let topic): offering.warnOnce("there are too many readers for \(topic.text)")
    case .invalidate(let token): try offering.invalidate(token, over: daemon.link)
    }
  }

  // MARK: Start

  /// Reads the state of this device from identityd, and starts the rules with it.
  private func start(over link: DaemonLink) throws(DaemonFault) {
    forget()
    report.noteDaemon()
    let opening = try daemon.open(over: link)
    affiliation.name = opening.account
    rules.reset(configuration.settings)
    broker = Broker(loop, configuration, credentials) { [unowned self] in
      turn { () throws(DaemonFault) in try hear() }
    }
    let root: SecretKey?
    let seed: SecretKey?
    let epochs: StoredEpochs
    let keyed: Text?
    do {
      (root, seed, epochs) = (try link.key("root"), try link.deviceKey(for: opening), try link.epochs())
      keyed = try link.keyedAccount()
    } catch .refused(code: .unavailable, let text) {
      report.noteReason(text)
      if meetings.joining != nil { notJoined(text) }
      return try take(.started(.noKeys))
    }
    guard let name = opening.account, keyed == name, let root, let seed else {
      // Keys without an account are from a change that was not completed. Those of another account are of no use, since
      // an admin has entered this one without a fleet.
      if keyed != opening.account, keyed != nil || root != nil || seed != nil { try link.deleteKeys() }
      // An account without keys is from a backup, which has no keys, or an admin has entered it. This device can join it.
      guard let meeting = meetings.joining else {
        if opening.account == nil, try invitation.join(over: link) { return daemon.requestStart() }
        let exclusion = try link.lastExclusion()
        report.noteLack(opening.account == nil ? exclusion.map(StatusReport.Lack.account) : .keys)
        return try take(.started(.noAccount))
      }
      let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
      return try take(.started(.newcomer(meeting.rendezvous, at: now)))
    }
    try invitation.leave(over: link)
    try link.noteExclusion(nil)
    // A start between the keys and the confirmation.
    if meetings.joining != nil { meetings.end(.unconfirmed) }
    // The list before the records: if an admin clears the account in between, no record is there that lacks its device.
    let listed = try link.devices()
    guard
      let account = try Account(
        name, root: root, seed: seed, epochs, daemon.run, generation: affiliation.leastGeneration, opening, listed, link
      )
    else {
      report.noteReason("there is not enough memory for the keys")
      return try take(.started(.noKeys))
    }
    affiliation.account = account
    try take(.started(.member(account.membership, account.roster)))
    // A person may wait for the first connection.
    if account.isNewcomer { try take(.awaited) }
    pauses.begin(.proofKeys)
    try tellDate()
    if let renewed = account.renewed { try take(.renewed(renewed)) }
    for tag in account.forgotten { try take(.forgotten(tag)) }
    try offer(isStart: true)
  }

  /// Forgets everything but the connection with identityd.
  private func forget() {
    broker?.disconnect()
    rules.reset()
    storing = Storing()
    affiliation.account = nil
    meetings.invite(nil)
  }

  /// Begins anew after a fault of identityd.
  private func lose(_ fault: DaemonFault) {
    if report.noteDaemonFault("\(fault)") { log.warn("identityd: \(fault)") }
    forget()
    if case .refused = fault { report.noteReason("\(fault)") }
    pauses.begin(.start, daemon.lose(after: fault))
  }

  // MARK: identityd

  /// Takes the events that have arrived.
  ///
  /// - Returns: whether identityd may have been asked something since, so that there may be others.
  @discardableResult private func follow() throws(DaemonFault) -> Bool {
    try store()
    guard let link = daemon.link else { return false }
    var hasAsked = false
    for event in try link.events() {
      let attributes = Dictionary(event.attributes.map { ($0.name, $0.value) }) { $1 }
      let value = attributes["value"]
      switch (event.words.first, event.words.dropFirst().first) {
      case ("account"?, _):
        let name = value.flatMap { $0.bytes.isEmpty ? nil : $0 }
        affiliation.name = name
        // Somebody took this device out of the account, and its list is empty already.
        if affiliation.account?.ends(in: name) == true { try take(.leave) }
      case ("device"?, let name): if name != "suspect" { daemon.requestStart() }
      case ("devices"?, "removed"?):
        guard let account = affiliation.account, !account.isEnding, let removed = value.flatMap({ UUID($0) }) else {
          continue
        }
        try take(.forgotten(account.seal.account.tag(of: removed)))
      case ("devices"?, "changed"?):
        guard let account = affiliation.account, value.flatMap({ UUID($0) }) == account.present.device,
          let name = attributes["name"], try describe(account.described(name: name))
        else { continue }
      case ("proof"?, _): try readProofKeys()
      // Apps cause these as often as they like, so nothing is asked at once.
      case ("token"?, _), ("version"?, _):
        offering.noteChange(isForReport: event.words.first == "version")
        continue
      case ("lag"?, _): daemon.requestStart()
      default: break
      }
      hasAsked = true
    }
    while let link = daemon.takeStart() {
      try start(over: link)
      report.noteStart()
      daemon.noteStart()
      try store()
      hasAsked = true
    }
    if try store() { hasAsked = true }
    return hasAsked
  }

  /// Stores a message, with others if possible.
  private func keep(_ message: SignedMessage) throws(DaemonFault) {
    let isEnough = storing.add(message, own: affiliation.account?.present.device) {
      affiliation.account?.hasRecord(of: $0, in: rules.fleet.roster) == true
    }
    if storing.awaitsSuccessors { pauses.beginOnce(.storing) }
    if isEnough { try store() }
  }

  /// Stores the messages that wait. Returns whether there were any.
  @discardableResult func store() throws(DaemonFault) -> Bool {
    guard let link = daemon.link, storing.hasWaiting else { return false }
    for outcome in try storing.store(over: link) {
      switch outcome {
      case .beyondBound: report.noteBeyondBound()
      case .held(let text):
        report.noteStoreReason(text)
        pauses.beginOnce(.storing)
      case .refused(let text): if report.noteRefusal(text) { log.warn("identityd refuses a message: \(text)") }
      }
    }
    if storing.heldCount == 0 { report.noteStoreReason(nil) }
    return true
  }

  // MARK: Pauses

  /// Acts after a pause.
  private func act(after pause: Pauses.Pause) throws(DaemonFault) {
    switch pause {
    case .start: try daemon.connect { [unowned self] in turn { () throws(DaemonFault) in } }
    case .storing: storing.retry(own: affiliation.account?.present.device)
    case .date: try tellDate()
    case .proofKeys: try readProofKeys()
    case .network:
      switch rules.fleet.phase {
      case .waiting, .refused: break
      case .noAccount, .noKeys, .connecting, .reading, .joining, .live, .ended: return
      }
      pauses.noteNetworkAttempt()
      try take(.reconsider)
    }
  }

  /// Tells the rules the time, now and once a day.
  private func tellDate() throws(DaemonFault) {
    pauses.begin(.date)
    try take(.dated(Timestamp(milliseconds: Clock.realtimeMilliseconds)))
  }
}
