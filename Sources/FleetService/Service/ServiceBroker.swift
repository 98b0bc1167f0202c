import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import LinuxSystem
import Mosquitto

// The reports of the broker, and the messages in them.
extension Service {
  /// Connects to the next broker.
  func connectToBroker() {
    guard let reason = broker?.connect(as: affiliation.account) else { return }
    noteEnd(reason)
    rules.queue(.disconnected)
  }

  /// Sets a deadline of the rules.
  func set(_ deadline: Deadline, after delay: Delay) {
    let duration = rules.deadlines.set(deadline, after: delay)
    guard deadline == .connect else { return }
    report.noteAttempt(at: Timestamp(milliseconds: Clock.realtimeMilliseconds + Int64(duration)))
  }

  /// Ends the connection for the rules, which go on with another attempt only if a subscription was not acknowledged.
  func leaveBroker() {
    if case .waiting = rules.fleet.phase { noteEnd("the broker does not acknowledge a subscription in time") }
    broker?.disconnect()
  }

  /// Takes the reports of the connection.
  func hear() throws(DaemonFault) {
    guard let broker else { return }
    while let report = broker.nextReport() {
      switch report {
      case .connected:
        broker.noteConnected()
        try take(.connected)
      case .subscribed(let text): if let filter = broker.takeFilter(text) { try take(.subscribed(filter)) }
      case .received(let delivery): try hear(delivery)
      case .denied(let text) where MessageTopic(parsing: text).map(offering.has) == true:
        // The account needs nothing of this. What is published cannot be read back, so it is published again and again.
        _ = broker.takeFilter(text)
        offering.warnOnce("the broker denies the subscription to \(text)")
      case .denied(let text): try lose(broker, .disconnected, "the broker denies the subscription to \(text)")
      case .refused(let reason):
        switch broker.connectWithAnotherPassword(as: affiliation.account) {
        case .connecting: return
        case .failed(let text): try lose(broker, .disconnected, text)
        case .refused: try lose(broker, .refused, reason)
        }
      case .ended(let text):
        let trouble = BrokerTrouble(text: text, wasConnected: rules.fleet.phase.isConnected)
        try lose(broker, .disconnected, "\(trouble)")
      }
      // The rules may have ended the connection, or the membership.
      guard broker === self.broker, broker.isInUse else { return }
    }
  }

  private func lose(_ broker: Broker, _ input: Input, _ reason: String) throws(DaemonFault) {
    if case .refused = input { noteEnd(reason, isRefusal: true) } else { noteEnd(reason) }
    broker.disconnect()
    try take(input)
  }

  private func hear(_ delivery: Delivery) throws(DaemonFault) {
    guard let topic = MessageTopic(parsing: delivery.topic) else { return report.noteForeign() }
    let meetingKey = meetings.key(for: topic)
    guard meetingKey != nil || affiliation.account?.has(topic) == true || offering.has(topic) else {
      return report.noteForeign()
    }
    let shown: Shown
    if delivery.payload.isEmpty {
      shown = .nothing
    } else {
      do throws(Rejection) {
        guard let message = try open(delivery.payload, meetingKey, on: topic) else { return }
        shown = .message(message)
      } catch {
        shown = .rejected(error)
      }
    }
    guard case .device(_, let tag) = topic else {
      return try take(.arrived(topic, shown, isRetained: delivery.isRetained))
    }
    try take(.heard(tag, shown, isRetained: delivery.isRetained))
  }

  /// Opens a message; nil for one about this device from before it joined.
  private func open(
    _ bytes: [UInt8], _ meetingKey: EpochKey?, on topic: MessageTopic
  ) throws(Rejection) -> SignedMessage? {
    if let meetingKey { return try meetings.open(bytes, with: meetingKey, on: topic) }
    guard let account = affiliation.account else { return nil }
    if offering.has(topic) { return try offering.opened(bytes, on: topic, by: account.keys) }
    let message = try account.seal.open(bytes, on: topic)
    guard case .device(_, account.present.tag) = topic, affiliation.outranks(message) else { return message }
    daemon.requestStart()
    return nil
  }

  private func noteEnd(_ reason: String, isRefusal: Bool = false) {
    let name = broker?.pattern?.description ?? "the broker"
    if report.noteEnd(reason, isRefusal: isRefusal, now: Clock.monotonicMicroseconds) { log.warn("\(name): \(reason)") }
  }
}
