import FleetCore
import FleetSeal
package import FleetWire
package import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto
package import Systemd

/// The service of the fleet: carries inputs to the rules, and their actions to identityd and the broker.
///
/// The service keeps no state on the disk: identityd commits each fact that a later run needs, before anything follows
/// from the fact. So the service treats the end of its connection with identityd and another device identifier like a
/// start.
package final class Service {
  /// The pauses before another start, at first and at most, and before another attempt to store a message, in
  /// milliseconds.
  private static let (pause, longestPause, storePause) = (500, 30_000, 5_000)

  let loop: EventLoop
  private let daemon: DaemonSocket
  let run: Run
  var credentials: Credentials
  let log: ServiceLog
  /// Called once identityd has answered for the first time; nil afterwards.
  private var isReady: (() -> Void)?

  var configuration: FleetConfiguration
  var fleet = Fleet()
  /// The deadlines of the rules.
  private(set) var deadlines: Deadlines<Deadline>?
  /// The deadlines of the service.
  private(set) var pauses: Deadlines<Pause>?
  var broker: Broker?
  var link: DaemonLink?
  private var linkSource: EventSource?
  /// Whether identityd found that the connection lacks the right. It finds out once whose a connection is, so another
  /// one may have the right, once the manifest is read.
  private var isDenied = false
  var network = NetworkNews()
  /// The pause before the next start after a fault. It doubles until a start succeeds.
  private var startPause = pause
  var account: Account?
  /// The name of the account in identityd, with or without a fleet; nil for none.
  var accountName: Text?
  /// This device.
  private(set) var device: UUID?
  var inputs: [Input] = []
  private var storing = Storing()
  var meetings = Meetings()
  var offering = Offering()
  var readings = SiteReadings()
  /// The trial of the configured brokers; nil without one.
  var trial: BrokerTrial?
  /// Whether the state is to be read again at the end of the turn.
  var isStartDue = false
  /// The least generation of this device, if the broker has shown that it was in the account before.
  var leastGeneration: UInt32 = 0
  /// Whether the rules refused the last request for a rotation.
  var isRotationRefused = false
  /// Whether the account's name was changed by somebody else, so that this device leaves.
  private var isLeaving = false
  var report = StatusReport()

  /// Creates the service, which connects to identityd as soon as the loop runs.
  ///
  /// - Parameter ready: called once identityd has answered.
  package init(
    _ loop: EventLoop, _ daemon: DaemonSocket, _ run: Run, _ configuration: FleetConfiguration,
    _ credentials: Credentials, _ log: ServiceLog, ready: @escaping () -> Void
  ) throws(SystemdError) {
    self.loop = loop
    self.daemon = daemon
    self.run = run
    self.configuration = configuration
    self.credentials = credentials
    self.log = log
    isReady = ready
    deadlines = try Deadlines(loop) { [unowned self] in
      turn { () throws(DaemonFault) in for passed in deadlines?.takePassed() ?? [] { try take(.woke(passed)) } }
    }
    pauses = try Deadlines(loop) { [unowned self] in
      turn { () throws(DaemonFault) in for pause in pauses?.takePassed() ?? [] { try act(after: pause) } }
    }
    try network.watch(loop) { [unowned self] in wait(for: .network, network.rest) }
    wait(for: .start, 0)
  }

  /// Uses another configuration from now on.
  package func use(_ configuration: FleetConfiguration) {
    let former = self.configuration
    self.configuration = configuration
    trial = nil
    turn { () throws(DaemonFault) in
      guard link != nil, let broker else { return }
      if configuration.settings != former.settings { try take(.configured(configuration.settings)) }
      // A broker that has got the present password may leave a connection with the former one alone.
      if configuration.access != former.access || broker.usesFormerPassword(of: account) {
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
  package func stop() {
    broker?.disconnect()
    readings.end()
    trial = nil
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
        if fleet.phase == .live, report.noteConnected() {
          log.note("connected to \(broker?.pattern?.description ?? "the broker")")
        }
        report.note(fleet, broker, meetings.rows, held: storing.heldCount, account)
        if let silence = report.noteSilence(now: Clock.monotonicMicroseconds) { log.warn(silence) }
        if let link { try report.say(over: link) }
      } while try follow()
    } catch {
      lose(error)
    }
    logInvalidTokens()
    deadlines?.arm()
    pauses?.arm()
  }

  func take(_ input: Input) throws(DaemonFault) {
    inputs.append(input)
    while !inputs.isEmpty {
      for action in fleet.take(inputs.removeFirst()) { try perform(action) }
    }
  }

  private func perform(_ action: Action) throws(DaemonFault) {
    switch action {
    case .readKeys: isStartDue = true
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
      inputs.append(try write(draft))
    case .grant(let draft, let boxKey): inputs.append(grant(draft, to: boxKey))
    case .makeEpoch(let epoch): try enter(epoch, SecretKey.random())
    case .takeEpoch(let epoch, let message): try enter(epoch, account?.key(in: message))
    case .learnEpoch(let number, let message):
      let isLearned = try use(account?.learning(number, account?.key(in: message)))
      inputs.append(isLearned ? .learned : .notLearned(number))
    case .notRotated:
      isRotationRefused = true
      // It may be the end of a rotation that waited, of which nobody else hears.
      log.warn("the key of the account was not replaced")
    case .store(_, let message): try keep(message)
    case .wake(let deadline, let delay): set(deadline, after: delay)
    case .cancel(let deadline): deadlines?.cancel(deadline)
    case .suspected(let state): try suspect(state)
    case .dropped(let reason): report.noteDropped(reason)
    case .beyondBound: report.noteBeyondBound()
    case .rekeyed(let record): noteOtherKey(in: record)
    case .ended(let ending): try end(ending)
    case .newcomer(let answer): note(answer, isFirst: true)
    case .anotherNewcomer(let answer): note(answer, isFirst: false)
    case .invitationOver: meetings.forgetCode()
    case .invitationEnded(let isUsed): if !isUsed { noteExpiry() }
    case .accept(let invitation): try accept(invitation)
    case .joined(let isConfirmed):
      meetings.end(isConfirmed ? .confirmed : .unconfirmed)
      isStartDue = true
    case .notJoined(let failure): notJoined(failure)
    case .box(let draft, let topic, let boxKey): try box(draft, on: topic, to: boxKey)
    case .notOffered(let topic): warnOnce("there are too many readers for \(topic.text)")
    case .invalidate(let token): try invalidate(token)
    }
  }

  // MARK: Start

  /// Connects with identityd if there is no connection, and has the state read.
  func connect() throws(DaemonFault) {
    isStartDue = true
    if isDenied { (linkSource, link, isDenied) = (nil, nil, false) }
    guard link == nil else { return }
    let link = try DaemonLink(to: daemon)
    // Before the state is read, so that no change is missed. A connection without events is of no use.
    try link.subscribe()
    do {
      linkSource = try loop.watch(readable: link.descriptor) { [unowned self] in turn { () throws(DaemonFault) in } }
    } catch {
      throw .lost(.unreachable(path: daemon.path, code: error.code))
    }
    self.link = link
  }

  /// Reads the state of this device from identityd, and starts the rules with it.
  private func start() throws(DaemonFault) {
    isStartDue = false
    guard let link else { return }
    forget()
    report.noteDaemon()
    let opening = try link.open(run)
    noteReady()
    (device, accountName) = (opening.device, opening.account)
    fleet = Fleet(configuration.settings)
    broker = Broker(loop, configuration, credentials) { [unowned self] in
      turn { () throws(DaemonFault) in try hear() }
    }
    let root: SecretKey?
    let seed: SecretKey?
    let epochs: StoredEpochs
    let keyed: Text?
    do {
      (root, seed, epochs) = (try link.key("root"), try deviceKey(for: opening, link), try link.epochs())
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
        if opening.account == nil, try joinUnattended() {
          isStartDue = true
          return
        }
        let exclusion = try link.lastExclusion()
        report.noteLack(opening.account == nil ? exclusion.map(StatusReport.Lack.account) : .keys)
        return try take(.started(.noAccount))
      }
      let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
      return try take(.started(.newcomer(meeting.rendezvous, at: now)))
    }
    try leaveInvitation()
    try link.noteExclusion(nil)
    // A start between the keys and the confirmation.
    if meetings.joining != nil { meetings.end(.unconfirmed) }
    // The list before the records: if an admin clears the account in between, no record is there that lacks its device.
    let listed = try link.devices()
    guard
      let account = try Account(
        name, root: root, seed: seed, epochs, run, generation: leastGeneration, opening, listed, link)
    else {
      report.noteReason("there is not enough memory for the keys")
      return try take(.started(.noKeys))
    }
    self.account = account
    try take(.started(.member(account.membership, account.roster)))
    // A person may wait for the first connection.
    if account.isNewcomer { try take(.awaited) }
    wait(for: .proofKeys, Self.proofKeysPause)
    try tellDate()
    if let renewed = account.renewed { try take(.renewed(renewed)) }
    for tag in account.forgotten { try take(.forgotten(tag)) }
    try offer(isStart: true)
  }

  /// Forgets everything but the connection with identityd.
  private func forget() {
    broker?.disconnect()
    deadlines?.cancelAll()
    (inputs, storing) = ([], Storing())
    account = nil
    meetings.invite(nil)
    fleet = Fleet()
    isLeaving = false
  }

  /// Begins anew after a fault of identityd. A refusal leaves the connection, over which the reason can be shown.
  private func lose(_ fault: DaemonFault) {
    if report.noteDaemonFault("\(fault)") { log.warn("identityd: \(fault)") }
    forget()
    isStartDue = false
    if case .refused(let code, _) = fault {
      isDenied = code == .denied
      noteReady()
      report.noteReason("\(fault)")
    } else {
      linkSource = nil
      link = nil
    }
    wait(for: .start, startPause)
    startPause = min(2 * startPause, Self.longestPause)
  }

  /// Tells that identityd has answered.
  private func noteReady() {
    isReady?()
    isReady = nil
  }

  // MARK: identityd

  /// Takes the events that have arrived.
  ///
  /// - Returns: whether identityd may have been asked something since, so that there may be others.
  @discardableResult private func follow() throws(DaemonFault) -> Bool {
    try store()
    guard let link else { return false }
    var hasAsked = false
    for event in try link.events() {
      let attributes = Dictionary(event.attributes.map { ($0.name, $0.value) }) { $1 }
      switch (event.words.first, event.words.dropFirst().first) {
      case ("account"?, _):
        accountName = attributes["value"].flatMap { $0.bytes.isEmpty ? nil : $0 }
        // Somebody took this device out of the account, and its list is empty already.
        if let account, !isLeaving, attributes["value"] != account.name {
          isLeaving = true
          try take(.leave)
        }
      case ("device"?, let name): if name != "suspect" { isStartDue = true }
      case ("devices"?, "removed"?):
        guard let account, !isLeaving, let removed = attributes["value"].flatMap({ UUID($0) }) else { continue }
        try take(.forgotten(account.seal.account.tag(of: removed)))
      case ("devices"?, "changed"?):
        guard let device, attributes["value"].flatMap({ UUID($0) }) == device, let name = attributes["name"],
          let description = account?.described(name: name)
        else { continue }
        guard try describe(description) else { continue }
      case ("proof"?, _): try readProofKeys()
      // Apps cause these as often as they like, so nothing is asked at once.
      case ("token"?, _), ("version"?, _):
        offering.noteChange(isForReport: event.words.first == "version")
        continue
      case ("lag"?, _): isStartDue = true
      default: break
      }
      hasAsked = true
    }
    if isStartDue { hasAsked = true }
    while isStartDue {
      try start()
      report.noteStart()
      startPause = Self.pause
      try store()
    }
    if try store() { hasAsked = true }
    return hasAsked
  }

  /// Stores a message, with others if possible.
  private func keep(_ message: SignedMessage) throws(DaemonFault) {
    let isEnough = storing.add(message, own: account?.present.device) {
      account?.hasRecord(of: $0, in: fleet.roster) == true
    }
    if storing.awaitsSuccessors { retryStoringLater() }
    if isEnough { try store() }
  }

  /// Tries the messages again that could not be stored.
  func retryStoring() { storing.retry(own: account?.present.device) }

  /// Tries the messages again after a pause, which further ones do not prolong.
  private func retryStoringLater() {
    if pauses?.isSet(.storing) != true { wait(for: .storing, Self.storePause) }
  }

  /// Stores the messages that wait. Returns whether there were any.
  @discardableResult func store() throws(DaemonFault) -> Bool {
    guard let link, storing.hasWaiting else { return false }
    for outcome in try storing.store(over: link) {
      switch outcome {
      case .beyondBound: report.noteBeyondBound()
      case .held(let text):
        report.noteStoreReason(text)
        retryStoringLater()
      case .refused(let text): if report.noteRefusal(text) { log.warn("identityd refuses a message: \(text)") }
      }
    }
    if storing.heldCount == 0 { report.noteStoreReason(nil) }
    return true
  }
}
