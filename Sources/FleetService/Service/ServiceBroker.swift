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
    guard let reason = broker?.connect(as: account) else { return }
    noteEnd(reason)
    inputs.append(.disconnected)
  }

  /// Sets a deadline of the rules.
  func set(_ deadline: Deadline, after delay: Delay) {
    guard let duration = deadlines?.set(deadline, after: delay), deadline == .connect else { return }
    report.noteAttempt(at: Timestamp(milliseconds: Clock.realtimeMilliseconds + Int64(duration)))
  }

  /// Ends the connection for the rules, which go on with another attempt only if a subscription was not acknowledged.
  func leaveBroker() {
    if case .waiting = fleet.phase { noteEnd("the broker does not acknowledge a subscription in time") }
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
        warnOnce("the broker denies the subscription to \(text)")
      case .denied(let text): try lose(broker, .disconnected, "the broker denies the subscription to \(text)")
      case .refused(let reason):
        switch broker.connectWithAnotherPassword(as: account) {
        case .connecting: return
        case .failed(let text): try lose(broker, .disconnected, text)
        case .refused: try lose(broker, .refused, reason)
        }
      case .ended(let text):
        let trouble = BrokerTrouble(text: text, wasConnected: fleet.phase.isConnected)
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
    guard meetingKey != nil || account?.has(topic) == true || offering.has(topic) else { return report.noteForeign() }
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
    guard let account else { return nil }
    if offering.has(topic) { return try offering.opened(bytes, on: topic, by: account.keys) }
    let message = try account.seal.open(bytes, on: topic)
    if case .device(_, account.present.tag) = topic, isFromBefore(message) { return nil }
    return message
  }

  /// Returns whether a message about this device is from an earlier membership, of which nothing is left here. This
  /// device then starts anew with a higher generation, which outranks the message.
  private func isFromBefore(_ message: SignedMessage) -> Bool {
    guard let account, account.isNewcomer, message.signer != account.keys.signingKey,
      message.body.generation >= account.present.generation, message.body.generation < .max
    else { return false }
    leastGeneration = message.body.generation + 1
    isStartDue = true
    return true
  }

  private func noteEnd(_ reason: String, isRefusal: Bool = false) {
    let name = broker?.pattern?.description ?? "the broker"
    if report.noteEnd(reason, isRefusal: isRefusal, now: Clock.monotonicMicroseconds) { log.warn("\(name): \(reason)") }
  }
}
