import CSystemd
import Glibc

/// The users that the service manager of the system runs services as (org.freedesktop.systemd1(5)).
///
/// The connection to the system's message bus lasts only as long as questions wait for their answers.
@safe package final class UnitUsers {
  /// Takes the user, or the reason why it is not known.
  package typealias Receiver = (Result<UInt32, Failure>) -> Void

  /// The reason why the user of a service is not known, in words.
  package struct Failure: Error, Equatable {
    package let reason: String
  }

  /// Microseconds for the answer to a question, which begin with the connection to the bus: less than
  /// `DefaultTimeoutStartSec=` of systemd, and enough for the start of hundreds of units.
  private static let patience: UInt64 = 30_000_000
  /// The maximum number of questions at the bus. dbus-daemon refuses the 129th call of a connection that waits for an
  /// answer (max_replies_per_connection in dbus-daemon(1)), and hundreds of services may start at once.
  private static let mostAtBus = 32

  private let loop: EventLoop
  private var bus: OpaquePointer?
  private var questions: [UInt64: Question] = [:]
  /// The questions that are not at the bus yet, in their order. The others of ``questions`` are.
  private var waiting: [UInt64] = []
  private var last: UInt64 = 0

  package init(_ loop: EventLoop) { self.loop = loop }

  deinit { close() }

  /// Asks for the user of the main process of a service, which is starting or runs.
  ///
  /// - Parameters:
  ///   - unit: the name of the unit as it is loaded.
  ///   - receiver: is called once, later, on the loop.
  /// - Throws: the error of a bus that cannot be reached.
  package func find(_ unit: String, _ receiver: @escaping Receiver) throws(SystemdError) {
    let bus = try unsafe open()
    last += 1
    let question = Question(last, unit, of: self, receiver)
    let hasRoom = self.hasRoom
    do {
      try question.setTimer(UnitUsers.patience, on: loop)
      if hasRoom { try unsafe question.ask(.userID, on: bus) }
    } catch {
      if questions.isEmpty { close() }
      throw error
    }
    questions[last] = question
    if !hasRoom { waiting.append(last) }
    loop.wake()
  }

  private var hasRoom: Bool { questions.count - waiting.count < Self.mostAtBus }

  /// Asks the next question that waits, if the bus takes one more.
  private func askNext() {
    guard hasRoom, let number = waiting.first, let question = questions[number] else { return }
    waiting.removeFirst()
    do throws(SystemdError) {
      guard let bus = unsafe bus else { throw SystemdError(call: "sd_bus_call_async", code: ENOTCONN) }
      try unsafe question.ask(.userID, on: bus)
    } catch {
      end(question, .failure(Failure(reason: error.description)))
    }
  }

  /// Connects to the message bus of the system. The connection is established on the loop.
  private func open() throws(SystemdError) -> OpaquePointer {
    if let bus = unsafe bus { return unsafe bus }
    var opened: OpaquePointer?
    try checked("sd_bus_open_system", unsafe sd_bus_open_system(&opened))
    guard let opened = unsafe opened else { throw SystemdError(call: "sd_bus_open_system", code: ENOMEM) }
    do {
      try unsafe loop.attach(bus: opened)
    } catch {
      unsafe sd_bus_close_unref(opened)
      throw error
    }
    unsafe bus = opened
    return unsafe opened
  }

  private func close() {
    guard let bus = unsafe bus else { return }
    unsafe sd_bus_detach_event(bus)
    unsafe sd_bus_close_unref(bus)
    unsafe self.bus = nil
  }

  /// Ends a question, after its answer or its failure.
  private func end(_ question: Question, _ result: Result<UInt32, Failure>) {
    questions[question.number] = nil
    waiting.removeAll { $0 == question.number }
    askNext()
    if questions.isEmpty { close() }
    question.receiver(result)
  }

  // MARK: A question

  /// The properties of a service that are asked for, one after the other.
  private enum Property: String {
    /// The user that the service runs as now; the greatest number if it has none, or none yet.
    case userID = "UID"
    /// The setting `User=`.
    case user = "User"
    /// The setting `DynamicUser=`.
    case isDynamic = "DynamicUser"

    /// The type on the bus.
    var type: Unicode.Scalar {
      switch self {
      case .userID: "u"
      case .user: "s"
      case .isDynamic: "b"
      }
    }
  }

  /// One question to the service manager.
  @safe private final class Question {
    let number: UInt64
    let receiver: Receiver
    private let unit: String
    private unowned let users: UnitUsers
    private var property = Property.userID
    private var slot: OpaquePointer?
    private var timer: EventSource?

    init(_ number: UInt64, _ unit: String, of users: UnitUsers, _ receiver: @escaping Receiver) {
      self.number = number
      self.unit = unit
      self.users = users
      self.receiver = receiver
    }

    deinit { unsafe sd_bus_slot_unref(slot) }

    /// Ends the question after some time. sd-bus counts no time before the bus has welcomed the process.
    func setTimer(_ microseconds: UInt64, on loop: EventLoop) throws(SystemdError) {
      timer = try loop.timer(after: microseconds) { [unowned self] in
        end(.failure(Failure(reason: "no answer within \(microseconds / 1_000_000) s")))
      }
    }

    /// Asks for a property. The object of a unit exists as long as the unit is loaded, so nothing is loaded for it.
    func ask(_ property: Property, on bus: OpaquePointer) throws(SystemdError) {
      self.property = property
      var path: UnsafeMutablePointer<CChar>?
      try checked("sd_bus_path_encode", unsafe sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path))
      defer { unsafe free(path) }
      var message: OpaquePointer?
      try checked(
        "sd_bus_message_new_method_call",
        unsafe sd_bus_message_new_method_call(
          bus, &message, "org.freedesktop.systemd1", path, "org.freedesktop.DBus.Properties", "Get"))
      defer { unsafe sd_bus_message_unref(message) }
      for word in ["org.freedesktop.systemd1.Service", property.rawValue] {
        try checked(
          "sd_bus_message_append_basic",
          unsafe word.withCString { unsafe sd_bus_message_append_basic(message, CChar(SD_BUS_TYPE_STRING), $0) })
      }
      unsafe sd_bus_slot_unref(slot)
      unsafe slot = nil
      try checked(
        "sd_bus_call_async",
        unsafe sd_bus_call_async(
          bus, &slot, message, { message, question, _ in unsafe Question.take(message, of: question) },
          Unmanaged.passUnretained(self).toOpaque(), .max))
    }

    private static func take(_ message: OpaquePointer?, of question: UnsafeMutableRawPointer?) -> Int32 {
      guard let message = unsafe message, let question = unsafe question else { return 0 }
      unsafe Unmanaged<Question>.fromOpaque(question).takeUnretainedValue().take(message)
      return 0
    }

    /// Takes the value of the property, and asks for the next one or ends.
    private func take(_ message: OpaquePointer) {
      do {
        if let error = unsafe sd_bus_message_get_error(message) {
          let text = unsafe error.pointee.message.map { unsafe String(cString: $0) } ?? "no reason given"
          return end(.failure(Failure(reason: text)))
        }
        try checked(
          "sd_bus_message_enter_container",
          unsafe sd_bus_message_enter_container(message, CChar(SD_BUS_TYPE_VARIANT), "\(property.type)"))
        switch property {
        case .userID:
          var number: UInt32 = .max
          try unsafe readValue(property.type, of: message, into: &number)
          if number == .max { try askNext(.user) } else { end(.success(number)) }
        case .user:
          var name: UnsafePointer<CChar>?
          try unsafe readValue(property.type, of: message, into: &name)
          if let name = unsafe name, unsafe name.pointee != 0 { endWithoutUser() } else { try askNext(.isDynamic) }
        case .isDynamic:
          var isDynamic: Int32 = 1
          try unsafe readValue(property.type, of: message, into: &isDynamic)
          if isDynamic == 0 { end(.success(0)) } else { endWithoutUser() }
        }
      } catch {
        end(.failure(Failure(reason: error.description)))
      }
    }

    private func askNext(_ property: Property) throws(SystemdError) {
      guard let bus = unsafe users.bus else { throw SystemdError(call: "sd_bus_call_async", code: ENOTCONN) }
      try unsafe ask(property, on: bus)
    }

    private func endWithoutUser() {
      end(.failure(Failure(reason: "the service manager has not told the user of the service yet")))
    }

    private func end(_ result: Result<UInt32, Failure>) { users.end(self, result) }
  }
}
