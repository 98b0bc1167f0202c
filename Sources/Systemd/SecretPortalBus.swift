import CSystemd
import Glibc

/// The backend of the Secret portal on the message bus of a user (sd-bus(3), org.freedesktop.impl.portal.Secret).
///
/// One thread creates the value and serves with it.
@safe package final class SecretPortalBus {
  /// Delivers the secret of an app into a descriptor, which stays open until the closure returns. Returns whether the
  /// secret was delivered.
  package typealias Delivery = (_ appID: String, _ descriptor: Int32) -> Bool

  /// The object at which a portal looks for each of its backends.
  private static let path = "/org/freedesktop/portal/desktop"
  private static let interface = "org.freedesktop.impl.portal.Secret"
  /// The version of the interface.
  private static let version: UInt32 = 1

  /// The values of `response` (org.freedesktop.portal.Request).
  private enum Response: UInt32 {
    case success = 0
    case failure = 2
  }

  /// An answer that is sent when it is due.
  @safe private struct Answer {
    let message: OpaquePointer
    let response: Response
    /// Microseconds of CLOCK_MONOTONIC.
    let due: UInt64
  }

  /// Microseconds from a delivery to its answer. libsecret before 0.21 calls the portal, and listens for the answer only
  /// afterwards: an app that misses the answer waits forever.
  private static let delay: UInt64 = 100_000
  /// The most answers that wait. One more makes the oldest one due.
  private static let mostAnswers = 64

  private let bus: OpaquePointer
  private var answers: [Answer] = []
  private let table = UnsafeMutablePointer<sd_bus_vtable>.allocate(capacity: Int(CSYSTEMD_SECRET_PORTAL_ENTRIES))
  private let deliver: Delivery

  /// Connects to the bus of this user (sd_bus_open_user(3)). Calls wait until ``serve(as:untilIdleFor:)``.
  package init(_ deliver: @escaping Delivery) throws(SystemdError) {
    var bus: OpaquePointer?
    try checked("sd_bus_open_user", unsafe sd_bus_open_user(&bus))
    guard let bus = unsafe bus else { throw SystemdError(call: "sd_bus_open_user", code: ENOMEM) }
    unsafe self.bus = bus
    self.deliver = deliver
    unsafe csystemd_secret_portal(
      table, { message, object, _ in unsafe SecretPortalBus.retrieve(message, object) },
      { _, _, _, _, reply, _, _ in unsafe SecretPortalBus.append(SecretPortalBus.version, to: reply) })
    try checked(
      "sd_bus_add_object_vtable",
      unsafe sd_bus_add_object_vtable(
        bus, nil, Self.path, Self.interface, table, Unmanaged.passUnretained(self).toOpaque()))
  }

  deinit {
    for answer in answers { unsafe sd_bus_message_unref(answer.message) }
    unsafe sd_bus_flush_close_unref(bus)
    unsafe table.deallocate()
  }

  /// Takes a name on the bus, and answers calls until none has arrived for some time.
  ///
  /// Gives the name back at the end. A call that arrived before is still answered, and one after makes the bus start
  /// the service again.
  ///
  /// - Parameters:
  ///   - name: a well-known name.
  ///   - idle: microseconds.
  /// - Throws: EEXIST if another process has the name; ENOTCONN or ECONNRESET if the bus ends.
  package func serve(as name: String, untilIdleFor idle: UInt64) throws(SystemdError) {
    try checked("take the bus name \(name)", unsafe sd_bus_request_name(bus, name, 0))
    var quietSince = Self.now
    while true {
      if try processAll() { quietSince = Self.now }
      let end = answers.first?.due ?? quietSince + idle
      let now = Self.now
      if answers.isEmpty && now >= end { break }
      let waited = unsafe sd_bus_wait(bus, end > now ? end - now : 0)
      // A stopped process that goes on is no failure.
      if waited != -EINTR { try checked("sd_bus_wait", waited) }
    }
    try checked("give the bus name \(name) back", unsafe sd_bus_release_name(bus, name))
    try processAll()
    try sendAnswers(dueAt: .max)
  }

  /// Handles the calls that have arrived, and sends the answers that are due.
  ///
  /// - Returns: whether there was any.
  @discardableResult
  private func processAll() throws(SystemdError) -> Bool {
    var isAny = false
    while try checked("sd_bus_process", unsafe sd_bus_process(bus, nil)) > 0 {
      isAny = true
      try sendAnswers(dueAt: Self.now)
    }
    try sendAnswers(dueAt: Self.now)
    return isAny
  }

  private func sendAnswers(dueAt moment: UInt64) throws(SystemdError) {
    while let answer = answers.first, answer.due <= moment || answers.count > Self.mostAnswers {
      answers.removeFirst()
      defer { unsafe sd_bus_message_unref(answer.message) }
      try unsafe Self.send(answer.response, to: answer.message)
    }
  }

  /// Microseconds of CLOCK_MONOTONIC.
  private static var now: UInt64 {
    var time = timespec()
    // Fails only for an unknown clock.
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
  }

  // MARK: Calls from sd-bus

  /// Answers a call of RetrieveSecret. A negative result is an error, which sd-bus sends to the caller.
  private static func retrieve(_ message: OpaquePointer?, _ object: UnsafeMutableRawPointer?) -> Int32 {
    guard let message = unsafe message, let object = unsafe object else { return -EINVAL }
    let portal = unsafe Unmanaged<SecretPortalBus>.fromOpaque(object).takeUnretainedValue()
    do {
      var handle: UnsafePointer<CChar>?
      var appID: UnsafePointer<CChar>?
      var descriptor: Int32 = -1
      try unsafe readValue("o", of: message, into: &handle)
      try unsafe readValue("s", of: message, into: &appID)
      try unsafe readValue("h", of: message, into: &descriptor)
      let text = unsafe appID.map { unsafe String(cString: $0) } ?? ""
      let response: Response = portal.deliver(text, descriptor) ? .success : .failure
      unsafe portal.answers.append(Answer(message: sd_bus_message_ref(message), response: response, due: now + delay))
      return 1
    } catch {
      return -error.code
    }
  }

  /// Sends an answer with an empty dictionary of results.
  private static func send(_ response: Response, to message: OpaquePointer) throws(SystemdError) {
    var reply: OpaquePointer?
    try checked("sd_bus_message_new_method_return", unsafe sd_bus_message_new_method_return(message, &reply))
    defer { unsafe sd_bus_message_unref(reply) }
    try checked("sd_bus_message_append_basic", unsafe append(response.rawValue, to: reply))
    try checked(
      "sd_bus_message_open_container",
      unsafe sd_bus_message_open_container(reply, CChar(SD_BUS_TYPE_ARRAY), "{sv}"))
    try checked("sd_bus_message_close_container", unsafe sd_bus_message_close_container(reply))
    try checked("sd_bus_send", unsafe sd_bus_send(nil, reply, nil))
  }

  private static func append(_ number: UInt32, to message: OpaquePointer?) -> Int32 {
    var number = number
    return unsafe sd_bus_message_append_basic(message, CChar(SD_BUS_TYPE_UINT32), &number)
  }
}
