import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The reason why identityd did not do what was asked.
enum DaemonFault: Error, CustomStringConvertible {
  /// The connection is of no use any more.
  case lost(DaemonConnection.Failure)
  /// identityd refused the request.
  case refused(code: ErrorCode?, text: String)

  /// The reason in words.
  var description: String {
    switch self {
    case .lost(let failure): "\(failure)"
    case .refused(let code, let text): "\(text) (\(code?.rawValue ?? "unknown code"))"
    }
  }
}

/// The connection with identityd that has the fleet open.
///
/// Each request waits for its answer, which takes as long as identityd needs for a commit. The connection to the broker
/// has a thread of its own, so it does not notice.
final class DaemonLink {
  /// The answer to `fleet open`.
  struct Opening {
    let device: UUID
    let generation: UInt32
    let home: Home
    /// The name of the account; nil for none.
    let account: Text?
    let pastRuns: [Run]
    /// The identifier of the machine that the keys of this device belong to; nil if they are its own.
    let original: UUID?
  }

  /// A device of the list.
  struct ListedDevice {
    let device: UUID
    let isOwn: Bool
    let name: Text?
  }

  /// A stored message.
  struct Stored {
    let device: UUID
    let isGone: Bool
    let bytes: [UInt8]
  }

  /// The longest wait for an answer, in microseconds: less than the interval of the watchdog.
  private static let patience: UInt64 = 10_000_000
  /// The greatest number of messages that are stored together: fewer bytes than the buffers of a socket hold.
  static let mostTogether = 32
  /// The number of messages that are read in one answer, which has 1.4 MB at most.
  private static let page = 256
  static let items = "identity-fleet"

  private var connection: DaemonConnection

  init(to daemon: DaemonSocket) throws(DaemonFault) {
    do {
      connection = try DaemonConnection(to: daemon, Self.limit)
    } catch {
      throw .lost(error)
    }
  }

  /// The descriptor that is readable after an event, and at the end of the connection.
  var descriptor: Int32 { connection.descriptor }

  // MARK: Requests

  /// Begins a run.
  func open(_ run: Run) throws(DaemonFault) -> Opening {
    let answer = try ask("fleet", "open", "run=\(run)")
    let runs = answer.rows.compactMap { row in
      row.words.count == 2 ? Run(hexadecimal: "\(row.words[1])") : nil
    }
    guard case .ok(let content) = answer.final, let device = content.words.first.flatMap({ UUID($0) }),
      let generation = content["generation"].flatMap({ UInt32($0.description) }),
      let home = content["home"].flatMap({ Home(hexadecimal: "\($0)") })
    else { throw Self.malformed(answer.final) }
    return Opening(
      device: device, generation: generation, home: home, account: content["account"], pastRuns: runs,
      original: content["original"].flatMap { UUID($0) })
  }

  /// Returns a key of the fleet; nil if there is none.
  ///
  /// - Parameter name: `root`, `device`, or `device/UUID` for the key of an identifier that was left to an original.
  func key(_ name: String) throws(DaemonFault) -> SecretKey? {
    guard var bytes = try item(name) else { return nil }
    defer { bytes.wipe() }
    return SecretKey(consuming: &bytes)
  }

  /// Returns the epochs of the fleet. Only the first one needs no item.
  func epochs() throws(DaemonFault) -> StoredEpochs {
    guard var bytes = try item("epochs") else { return .first }
    guard let epochs = StoredEpochs(consuming: &bytes) else {
      throw .refused(code: .unavailable, text: "the keys of the epochs cannot be read")
    }
    return epochs
  }

  /// Returns the secret of an item, which the caller wipes; nil if there is none.
  func item(_ name: String, of service: String = items) throws(DaemonFault) -> [UInt8]? {
    let request = RequestLine(words: ["item", "read", "service=\(service)", "account=\(name)"]).takingSecret()
    let answer: ReceivedAnswer
    do {
      answer = try connection.exchange(request, Self.limit)
    } catch {
      throw .lost(error)
    }
    if case .error(let code, let text) = answer.final {
      guard ErrorCode(rawValue: "\(code)") != .notFound else { return nil }
      throw Self.refusal(code, text)
    }
    guard let secret = answer.secret else { throw Self.malformed(answer.final) }
    return secret.copy()
  }

  /// Returns the name of the account that the keys belong to; nil if there are no keys.
  func keyedAccount() throws(DaemonFault) -> Text? { try item("account").flatMap { Text(validating: $0) } }

  /// Notes the name of the account that the keys belong to.
  func putKeyedAccount(_ name: Text) throws(DaemonFault) { try putItem("account", name.bytes) }

  /// Stores a key of the fleet, which never leaves this device.
  func putKey(_ name: String, _ key: SecretKey) throws(DaemonFault) { try putItem(name, key.copy()) }

  /// Stores the epochs of the fleet, which never leave this device.
  func putEpochs(_ epochs: StoredEpochs) throws(DaemonFault) { try putItem("epochs", epochs.copy()) }

  /// Stores an item, which no backup contains.
  func putItem(_ name: String, of service: String = items, _ copy: consuming [UInt8]) throws(DaemonFault) {
    var bytes = copy
    defer { bytes.wipe() }
    let words = ["item", "put", "service=\(service)", "account=\(name)", "this-device-only=yes"]
    _ = try ask(RequestLine(words: words).secret(Secret(bytes.span)))
  }

  /// Deletes a key of the fleet.
  func deleteKey(_ name: String) throws(DaemonFault) { try deleteItems(of: Self.items, "account=\(name)") }

  /// Deletes all keys of the fleet.
  func deleteKeys() throws(DaemonFault) { try deleteItems(of: Self.items) }

  /// Returns the key of this device, after a change that a renewal makes necessary; nil if there is none.
  ///
  /// After a renewal that left the former identifier to an original, this device needs a key of its own, and keeps the
  /// former one: it is in use again if the identifier comes back, as after a boot with a foreign machine-id. Each step
  /// can be repeated, since nothing was sealed with the new key before the last one.
  func deviceKey(for opening: Opening) throws(DaemonFault) -> SecretKey? {
    guard let original = opening.original else {
      guard let returned = try key("device/\(opening.device)") else { return try key("device") }
      try putKey("device", returned)
      try deleteKey("device/\(opening.device)")
      return returned
    }
    var own: SecretKey?
    if let former = try key("device") {
      own = SecretKey.random()
      guard let own else { throw .refused(code: .unavailable, text: "there is not enough memory for the keys") }
      if try key("device/\(original)") == nil { try putKey("device/\(original)", former) }
      try putKey("device", own)
    }
    // A key of this identifier is from a membership that has ended, so a later start must not take it for one to use.
    try deleteKey("device/\(opening.device)")
    try noteNewKeys(insteadOf: original)
    return own
  }

  /// Deletes the items of a service, or one of them. There may be none.
  func deleteItems(of service: String, _ words: String...) throws(DaemonFault) {
    do {
      _ = try ask(RequestLine(words: ["item", "delete", "service=\(service)"] + words))
    } catch .refused(code: .notFound, _) {
      return
    }
  }

  /// Sets the name of the account; nil for no account.
  func setAccount(_ name: Text?) throws(DaemonFault) {
    if let name { _ = try ask("account", "set", "\(name)") } else { _ = try ask("account", "clear") }
  }

  /// Returns the next stored messages, in the order of their devices; none after the last one.
  func records(after device: UUID?) throws(DaemonFault) -> [Stored] {
    let start = device.map { ["after=\($0)"] } ?? []
    let answer = try ask(RequestLine(words: ["fleet", "records", "limit=\(Self.page)"] + start))
    var stored: [Stored] = []
    for row in answer.rows {
      guard let device = row.words.first.flatMap({ UUID($0) }), let text = row["record"],
        let bytes = Base64Text.decode(text.bytes.span)
      else { throw Self.malformed(.row(row)) }
      stored.append(Stored(device: device, isGone: row["gone"] == "yes", bytes: bytes))
    }
    return stored
  }

  /// Returns the list of devices.
  func devices() throws(DaemonFault) -> [ListedDevice] {
    var listed: [ListedDevice] = []
    for row in try ask("devices").rows {
      guard let device = row.words.first.flatMap({ UUID($0) }) else { throw Self.malformed(.row(row)) }
      listed.append(ListedDevice(device: device, isOwn: row["self"] == "yes", name: row["name"]))
    }
    return listed
  }

  /// Asks for the events about the account, its devices and the proof keys.
  func subscribe() throws(DaemonFault) {
    _ = try ask("subscribe", "account", "device", "devices")
    do throws(DaemonFault) {
      try subscribe(to: "proof")
    } catch .refused(code: .badArgument, _) {
      // A release without proofs.
    }
  }

  /// Returns the next counter of this device.
  func counter(above last: UInt64) throws(DaemonFault) -> UInt64 {
    let answer = try ask("fleet", "next", "above=\(min(last, UInt64(Int64.max) - 1))")
    guard case .ok(let content) = answer.final, let counter = content.words.first.flatMap({ UInt64("\($0)") }) else {
      throw Self.malformed(answer.final)
    }
    return counter
  }

  /// Stores messages, each with its change of the list.
  ///
  /// - Parameter messages: the messages, each with an earlier identifier of the device that it takes the place of in the
  ///   list.
  /// - Returns: the faults, in the order of the messages; nil for a message that is stored. A stored message that
  ///   outranks one of these is a conflict.
  func store(_ messages: [(message: SignedMessage, former: UUID?)]) throws(DaemonFault) -> [DaemonFault?] {
    var faults: [DaemonFault?] = []
    for start in stride(from: 0, to: messages.count, by: Self.mostTogether) {
      let part = messages[start..<min(start + Self.mostTogether, messages.count)]
      do {
        let answers = try connection.ask(together: part.map { Self.storing($0, replacing: $1) }, Self.limit)
        faults += answers.map { answer in
          guard case .error(let code, let text) = answer else { return nil }
          return Self.refusal(code, text)
        }
      } catch {
        throw .lost(error)
      }
    }
    return faults
  }

  private static func storing(_ message: SignedMessage, replacing former: UUID?) -> RequestLine {
    var text: [UInt8] = []
    Base64Text.append(message.bytes.span, to: &text)
    let body = message.body
    let common = [
      "\(body.subject)", "generation=\(body.generation)", "counter=\(body.counter)",
      "record=\(String(decoding: text, as: UTF8.self))",
    ]
    guard message.kind == .record, let description = DeviceDescription(body.fields) else {
      return RequestLine(words: ["devices", "remove"] + common)
    }
    // No device is seen in the future, whatever its clock says.
    let seen = min(body.time, Timestamp(milliseconds: Clock.realtimeMilliseconds))
    return RequestLine(
      words: ["devices", "put"] + common
        + ["name=\(description.name)", "seen=\(seen)", "suspect=\(description.twin == nil ? "no" : "yes")"]
        + (former.map { ["replaces=\($0)"] } ?? []))
  }

  /// Reports a twin.
  func reportTwin(_ copy: CopyVerdict) throws(DaemonFault) { _ = try ask("fleet", "twin", "copy=\(copy.rawValue)") }

  /// Notes that this device has keys of its own, not those of an original.
  func noteNewKeys(insteadOf original: UUID) throws(DaemonFault) {
    _ = try ask("fleet", "rekeyed", "original=\(original)")
  }

  /// Takes another device identifier.
  func renewDevice() throws(DaemonFault) { _ = try ask("renew", "device") }

  /// Shows words about the fleet in `status`.
  func say(_ state: String, _ words: [(name: String, value: String)]) throws(DaemonFault) {
    _ = try ask(
      RequestLine(words: ["fleet", "said", "state=\(state)"] + words.map { "said.\($0.name)=\($0.value)" }))
  }

  // MARK: Events

  /// Returns the events that have arrived.
  func events() throws(DaemonFault) -> [ReceivedEvent] {
    var events: [ReceivedEvent] = []
    while true {
      do {
        events.append(try connection.nextEvent(Patience(until: 0)))
      } catch .timeUp {
        return events
      } catch {
        throw .lost(error)
      }
    }
  }

  // MARK: Answers

  private static var limit: Patience {
    Patience(until: Clock.monotonicMicroseconds + patience, endsOnTime: true)
  }

  func ask(_ words: String...) throws(DaemonFault) -> DaemonConnection.Answer {
    try ask(RequestLine(words: words))
  }

  func ask(_ request: RequestLine) throws(DaemonFault) -> DaemonConnection.Answer {
    let answer: DaemonConnection.Answer
    do {
      answer = try connection.ask(request, Self.limit)
    } catch {
      throw .lost(error)
    }
    if case .error(let code, let text) = answer.final { throw Self.refusal(code, text) }
    return answer
  }

  private static func refusal(_ code: Text, _ text: Text) -> DaemonFault {
    .refused(code: ErrorCode(rawValue: "\(code)"), text: "\(text)")
  }

  private static func malformed(_ line: ReplyLine) -> DaemonFault { .lost(.malformed("\(line)")) }
}

extension Refusal {
  /// Creates the refusal of a request that identityd has refused.
  init(_ code: ErrorCode?, _ text: String) {
    self =
      switch code {
      case .notFound: .notFound(text)
      case .conflict: .conflict(text)
      case .limit: .limit(text)
      case .noSpace: .noSpace
      case .readOnly: .readOnly(text)
      default: .unavailable(text)
      }
  }
}
