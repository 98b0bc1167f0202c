/// A model of the daemon's state as the protocol describes it, in the simplest form: arrays with linear search.
///
/// It takes request lines and returns the expected answers, line by line, and shares no code with the daemon. A symbol
/// stands for a value that only the daemon can know, and ``Bindings`` compares it: `<u…>` for a UUID, `<t…>` for a
/// time, `<f…>` for any other word. An error is its code alone.
package struct ReferenceModel: Sendable {
  /// The contents of an app's manifest.
  package struct Manifest: Equatable, Sendable {
    package var vendor: String
    package var device: String
    package var order: String
    package var groups: [String]
    package var rights: [String]
    package var unit: String?
    package var container: String?

    package init(
      vendor: String, device: String = "shared", order: String = "numeric", groups: [String] = [],
      rights: [String] = [], unit: String? = nil, container: String? = nil
    ) {
      self.vendor = vendor
      self.device = device
      self.order = order
      self.groups = groups
      self.rights = rights
      self.unit = unit
      self.container = container
    }
  }

  /// The peer of a request.
  package struct Peer: Sendable {
    package var app: String
    package var user: Int
    /// The author of the requests, in the form of the history: `uid:N` or `unit:NAME`.
    package var author: String
    package var isAdmin: Bool
    /// The number of the peer's session. Nil if the session cannot be determined.
    package var session: Int?

    package init(app: String, user: Int, author: String, isAdmin: Bool = false, session: Int? = nil) {
      self.app = app
      self.user = user
      self.author = author
      self.isAdmin = isAdmin
      self.session = session
    }
  }

  /// The error code of a refusal.
  enum Fault: String, Error {
    case denied
    case notFound = "not-found"
    case exists, conflict, limit, unavailable
    case invalidUUID = "invalid-uuid"
    case badArgument = "bad-argument"
  }

  struct App: Equatable, Sendable {
    var installed: String
    var manifest: Manifest?
  }

  var apps: [String: App] = [:]
  var identifiers: [Identifier] = []
  var devices: [Device] = []
  var account = ""
  /// The counter of the fleet, the highest generation of this device, and the runs, newest first.
  var fleet: (counter: Int, generation: Int, runs: [String]) = (0, 0, [])
  /// The device whose keys the fleet's service has; nil if they are its own.
  var original: String?
  var records: [Record] = []
  /// Whether the fleet's service has reported that another machine has the device identifier, too.
  var isCloned = false
  package internal(set) var items: [Item] = []
  package internal(set) var installed: [Installed] = []
  var reports: [Report] = []
  var claims: [Claim] = []
  package internal(set) var tokens: [Token] = []
  /// All events, from number 1 on.
  package internal(set) var events: [Event] = []
  package internal(set) var isSealed = false
  /// The most items and the most bytes that a quota holder may have.
  package var itemQuota = (items: 1_000, bytes: 4_194_304)
  /// Whether the device identifier is derived from the machine-id.
  package var hasMachine = true
  /// The peer and the time of the current request.
  var peer = Peer(app: "", user: 0, author: "")
  var now: Int64 = 0
  private var drawn = 0

  package init() {}

  /// Returns the expected answer to a request line.
  ///
  /// - Parameter now: the time of the request in milliseconds, which differs for each request.
  package mutating func answer(_ line: String, by peer: Peer, at now: Int64) -> [String] {
    self.peer = peer
    self.now = now
    do throws(Fault) {
      return try reply(to: Request(line))
    } catch {
      return ["ERR \(error.rawValue)"]
    }
  }

  private mutating func reply(to request: Request) throws(Fault) -> [String] {
    let admins: Set = [
      "renew", "account set", "account clear", "devices name", "devices put", "devices remove",
      "devices forget", "fleet open", "fleet next", "fleet records", "fleet twin",
      "seal",
    ]
    guard !admins.contains(request.verb) || peer.isAdmin else { throw .denied }
    switch request.verb {
    case "get": return try get(request)
    case "renew": return try renew(request)
    case "history": return try history(request)
    case "resolve": return try resolve(request)
    case "migrate": return try migrate(request)
    case "app list": return appRows
    case "app forget": return try forget(request.word(0))
    case "account": return try tellAccount()
    case "account set": return try setAccount(request.word(0), dryRun: request["dry-run"] == "yes")
    case "account clear": return try setAccount("", dryRun: request["dry-run"] == "yes")
    case "devices": return try listDevices()
    case "devices name": return try nameDevice(request.word(0))
    case "devices put" where request["record"] != nil: return try putRecord(request)
    case "devices put": return try putDevice(request)
    case "devices remove" where request["record"] != nil: return try putTombstone(request)
    case "devices remove", "devices forget": return try removeDevice(request.word(0))
    case "fleet open": return try openFleet(request["run"] ?? "")
    case "fleet twin": return try reportTwin(request["copy"] ?? "")
    case "fleet records": return listRecords(request)
    case "fleet next": return try nextCounter(above: Int(request["above"] ?? "0") ?? 0)
    case "item add": return try store(request, replaces: false)
    case "item put": return try store(request, replaces: true)
    case "item read": return try read(request)
    case "item find": return try find(request)
    case "item update": return try update(request)
    case "item delete": return try delete(request)
    case "version report": return try report(request)
    case "version state": return try state(request)
    case "version history": return try versions(request)
    case "version claim": return try claim(request)
    case "token put": return try putToken(request)
    case "token get": return try getToken(request)
    case "token list": return try listTokens(request)
    case "token invalidate": return try invalidateToken(request)
    case "token delete": return try deleteToken(request)
    case "seal": return seal(dryRun: request["dry-run"] == "yes")
    default: throw .badArgument
    }
  }

  // MARK: Words

  var time: String { "<t\(now)>" }

  mutating func draw() -> String {
    drawn += 1
    return "<u\(drawn)>"
  }

  /// Refuses changes after `seal`.
  func requireOpen() throws(Fault) { if isSealed { throw .unavailable } }

  /// Returns rows, followed by their number.
  func rows(_ rows: [String]) -> [String] { rows.map { "* \($0)" } + ["OK \(rows.count)"] }

  /// Returns ` name=value`, or an empty string if there is no value.
  func said(_ name: String, _ value: String?) -> String { value.map { " \(name)=\(word($0))" } ?? "" }

  /// Returns a value in its written form. The values of the model need no quotes, except the empty one.
  func word(_ value: String) -> String { value.isEmpty ? "\"\"" : value }
}

/// The parts of a request line. Quotes occur only as the empty word.
struct Request {
  /// The verb, such as `get`, `history` or `item add`. The level after `get` or `migrate` is an operand.
  let verb: String
  let operands: [String]
  private(set) var attributes: [(name: String, value: String)] = []

  init(_ line: String) {
    var words: [String] = []
    for part in line.split(separator: " ") {
      if let mark = part.utf8.firstIndex(of: UInt8(ascii: "=")) {
        attributes.append((String(part[..<mark]), Self.value(part[part.index(after: mark)...])))
      } else {
        words.append(Self.value(part))
      }
    }
    let isLong: Bool
    switch words[0] {
    case "app", "item", "version", "token", "account", "devices", "fleet": isLong = words.count > 1
    default: isLong = false
    }
    verb = words.prefix(isLong ? 2 : 1).joined(separator: " ")
    operands = Array(words.dropFirst(isLong ? 2 : 1))
  }

  private static func value(_ part: Substring) -> String { part == "\"\"" ? "" : String(part) }

  subscript(_ name: String) -> String? { attributes.first { $0.name == name }?.value }

  func word(_ place: Int) -> String { place < operands.count ? operands[place] : "" }

  /// Returns the attributes `attr.NAME=V`, sorted by name.
  ///
  /// - Parameter prefix: what precedes `attr.`.
  func described(behind prefix: String = "") -> [(name: String, value: String)] {
    let beginning = "\(prefix)attr."
    return attributes.filter { $0.name.hasPrefix(beginning) }
      .map { (String($0.name.dropFirst(beginning.count)), $0.value) }.sorted { $0.name < $1.name }
  }
}
