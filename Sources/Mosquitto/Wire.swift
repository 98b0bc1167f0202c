import CMosquitto
import Glibc
import LinuxSystem

/// The life of one connection, on the connection's own thread.
@safe final class Wire {
  /// The greatest number of messages that the broker has not acknowledged. Further ones wait in the mailbox, where newer
  /// ones replace them.
  private static let mostUnacknowledged = 16
  /// The pause in milliseconds between two attempts to write before the broker has accepted the connection. A broker
  /// that stays silent is always ready for bytes, so waiting for room would be a busy loop.
  private static let writePause: Int32 = 20
  /// The longest time in microseconds in which a closed connection still delivers: less than the process waits for it
  /// at its end.
  private static let farewell: UInt64 = 800_000

  /// The number of connections whose threads run.
  static let running = Locked(0)

  private let access: BrokerAccess
  private let mailboxes: Mailboxes
  private var isConnected = false
  /// The filters whose subscriptions are not acknowledged, by their numbers.
  private var subscriptions: [Int32: String] = [:]
  /// The numbers of the messages that are not acknowledged.
  private var publications: Set<Int32> = []
  private var refusal: BrokerConnection.Report?
  /// The error that libmosquitto told, which says more than its result.
  private var complaint: String?

  init(_ access: BrokerAccess, _ mailboxes: Mailboxes) {
    self.access = access
    self.mailboxes = mailboxes
  }

  static func from(_ argument: UnsafeMutableRawPointer?) -> Wire? {
    unsafe argument.map { unsafe Unmanaged<Wire>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Connects, serves the mailboxes until the connection ends, and reports the end.
  func run() {
    Self.running.withLock { $0 += 1 }
    defer { Self.running.withLock { $0 -= 1 } }
    do throws(ConnectionFault) {
      // The instance calls back this object, and does not hold it.
      try withExtendedLifetime(self) { () throws(ConnectionFault) in try serve(try Instance(for: self)) }
      mailboxes.report(.ended("this side closed the connection"))
    } catch {
      mailboxes.report(refusal ?? .ended(complaint ?? error.reason))
    }
  }

  /// The interval between two calls of `care`, in microseconds: a tenth of the keep-alive, of which a broker waits for
  /// one and a half.
  private var careInterval: UInt64 { UInt64(access.keepAlive) * 100_000 }

  private func serve(_ instance: borrowing Instance) throws(ConnectionFault) {
    let patience = UInt64(access.answerPatience) * 1_000
    // Resolves the name, for which the resolver alone has a bound.
    try instance.connect(access)
    let start = Clock.monotonicMicroseconds
    var nextCare = start + careInterval
    var end: UInt64?
    while true {
      mailboxes.resetOrderBell()
      if mailboxes.isClosed, end == nil { end = Clock.monotonicMicroseconds + Self.farewell }
      if isConnected { try deliver(instance) }
      if let end, !isConnected || isDelivered(instance) || Clock.monotonicMicroseconds >= end {
        // A broker that is told of the end would not publish the will.
        if access.will == nil { instance.disconnect() }
        return
      }
      try wait(instance, until: min(nextCare, end ?? nextCare))
      let now = Clock.monotonicMicroseconds
      guard isConnected || now < start + patience else {
        throw ConnectionFault(reason: "the broker does not answer")
      }
      guard now >= nextCare else { continue }
      try instance.care()
      nextCare = now + careInterval
    }
  }

  /// Carries out orders, as long as the broker keeps up.
  private func deliver(_ instance: borrowing Instance) throws(ConnectionFault) {
    while !instance.wantsToWrite, subscriptions.count < OrderQueue.mostSubscriptions,
      publications.count < Self.mostUnacknowledged, let order = mailboxes.nextOrder()
    {
      switch order {
      case .subscribe(let filter): subscriptions[try instance.subscribe(to: filter)] = filter
      case .publish(let message):
        let id = try instance.publish(message)
        if message.isRetained { publications.insert(id) }
      }
    }
  }

  /// Returns whether the broker has everything that was published before the connection was closed.
  private func isDelivered(_ instance: borrowing Instance) -> Bool {
    publications.isEmpty && !mailboxes.hasOrders && !instance.wantsToWrite
  }

  /// Waits for the socket, an order or a moment, and moves the bytes for which the socket is ready.
  private func wait(_ instance: borrowing Instance, until moment: UInt64) throws(ConnectionFault) {
    let isWriting = instance.wantsToWrite
    let reading = mailboxes.hasRoom ? Int16(POLLIN) : 0
    let writing = isConnected && isWriting ? Int16(POLLOUT) : 0
    var watched: InlineArray<2, pollfd> = [
      pollfd(fd: instance.socket, events: reading | writing, revents: 0),
      pollfd(fd: mailboxes.orderDescriptor, events: Int16(POLLIN), revents: 0),
    ]
    // Rounded up to avoid a busy loop at the end.
    let left = Int32(clamping: (moment - min(moment, Clock.monotonicMicroseconds) + 999) / 1_000)
    let limit = isConnected ? left : min(left, Self.writePause)
    var span = watched.mutableSpan
    let count = unsafe span.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 2, limit) }
    let code = errno
    guard count != -1 || code == EINTR else { throw ConnectionFault(reason: SystemError.text(of: code)) }
    let ready = Int32(watched[0].revents)
    if ready & POLLIN != 0 { try instance.read() }
    guard ready & (POLLERR | POLLHUP | POLLNVAL) == 0 else { throw ConnectionFault(reason: instance.socketError) }
    if isConnected ? ready & POLLOUT != 0 : isWriting { try instance.write() }
  }

  // MARK: Calls of libmosquitto

  /// Notes the broker's answer to the attempt to connect.
  func noteAnswer(_ code: Int32) {
    let text = unsafe mosquitto_connack_string(code).map { unsafe String(cString: $0) } ?? "answer \(code)"
    switch code {
    case 0:
      isConnected = true
      complaint = nil
      mailboxes.report(.connected)
    // By MQTT 3.1.1: a bad user name or password, and not authorized.
    case 4, 5: refusal = .refused(text)
    default: refusal = .ended(text)
    }
  }

  /// Notes the acknowledgement of a message.
  func notePublished(_ id: Int32) { publications.remove(id) }

  /// Notes the answer to a subscription.
  func noteSubscribed(_ id: Int32, isGranted: Bool) {
    guard let filter = subscriptions.removeValue(forKey: id) else { return }
    mailboxes.report(isGranted ? .subscribed(filter) : .denied(filter))
  }

  /// Notes a message.
  ///
  /// - Returns: whether the connection goes on.
  func noteReceived(_ delivery: Delivery) -> Bool {
    guard mailboxes.isWithinBound else {
      refusal = .ended("messages arrive faster than this device takes them")
      return false
    }
    mailboxes.report(.received(delivery))
    return true
  }

  /// Notes an error. The first one is the cause of the others.
  func noteComplaint(_ text: String) { complaint = complaint ?? text }
}
