import Glibc
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The facts that several checks share: the address of the daemon, and its answers.
package struct Examination: Sendable {
  /// The outcome of contacting the daemon.
  enum Contact: Equatable, Sendable {
    case answered
    /// The daemon was not contacted: systemd cannot keep it running, and a connection would only start it once more.
    case avoided
    /// The kernel refused the connection with this value of errno.
    case refused(Int32)
    /// The daemon may belong to an untrusted user. Nothing was sent.
    case untrusted(SocketFault)
    /// The daemon refused the connection for this reason, because it cannot tell who the caller is or does not serve it.
    case denied(String)
    /// The daemon, or its accept queue, has no room for another connection.
    case busy(String)
    /// The daemon accepted the connection and did not answer in time.
    case silent
    /// The connection ended early, or the daemon violated the protocol.
    case broken(String)

    /// Whether the daemon may have ended during the contact.
    var isDoubtful: Bool {
      switch self {
      case .silent, .broken: true
      case .answered, .avoided, .refused, .untrusted, .denied, .busy: false
      }
    }
  }

  /// The address of the daemon.
  let socket: DaemonSocket
  /// The user who runs the checks.
  let userID: UInt32
  /// The states of the units.
  let units: UnitStates
  /// The outcome of contacting the daemon.
  let contact: Contact
  /// The daemon's answers; nil if the daemon was not reached.
  let answers: DaemonAnswers?

  /// The path of the daemon's socket.
  var socketPath: String { socket.path }

  /// The service manager that runs the daemon; nil for a daemon that was started by hand.
  let manager: ServiceManager?

  /// Whether the socket is that of the system's daemon.
  var isSystem: Bool { socketPath == DaemonSocket.systemPath }

  /// The way to the daemon for a command of the client.
  var client: ClientAddress { ClientAddress(path: socketPath, isAdmin: answers?.peer["admin"] == "yes") }

  /// The state directory; nil if it is unknown.
  var stateDirectory: String? {
    // A relative path is relative to the daemon's working directory, so it is of no use here.
    if let said = answers?["state-directory"], said.hasPrefix("/") { return said }
    return isSystem ? Self.systemStateDirectory : nil
  }

  static let systemStateDirectory = "/var/lib/identityd"
  /// The reason for skipping a check that needs the daemon's answers.
  static let unreached = "the daemon was not reached"

  /// Returns the reason for skipping a check that needs a row of `status` which this user does not get.
  ///
  /// - Parameter what: The subject of the row, as a clause.
  static func untold(_ what: String) -> String {
    "\(what) is shown only to admins and members of MonitorGroup=; run the check as root"
  }

  /// The time limit of all answers together, or of one child process, in seconds.
  static let patienceSeconds: UInt64 = 10
  /// The time without all answers after which systemd is asked whether the daemon has failed meanwhile, in seconds.
  private static let doubtSeconds: UInt64 = 1

  /// The deadline of a child process that begins now.
  static var deadline: UInt64 { deadline(after: patienceSeconds) }

  private static func deadline(after seconds: UInt64) -> UInt64 { Clock.monotonicMicroseconds + seconds * 1_000_000 }

  /// Asks systemd for the units, then contacts the daemon and reads its answers.
  init(of socket: DaemonSocket) {
    self.socket = socket
    userID = Accounts.ownUserID
    let manager = ServiceManager.of(socket.path)
    var units = UnitStates(of: manager)
    var found: (contact: Contact, answers: DaemonAnswers?) = (.avoided, nil)
    if !units.isFailing {
      let seconds = manager == nil ? Self.patienceSeconds : Self.doubtSeconds
      found = Self.contact(socket, until: Self.deadline(after: seconds))
    }
    if manager != nil, found.contact.isDoubtful {
      units = UnitStates(of: manager)
      found = units.isFailing ? (.avoided, nil) : Self.contact(socket, until: Self.deadline)
    }
    (contact, answers) = found
    let isForeign = manager?.runs(found.answers?["pid"]) == false
    self.manager = isForeign ? nil : manager
    self.units = isForeign ? UnitStates(of: nil) : units
  }

  private static func contact(_ socket: DaemonSocket, until deadline: UInt64) -> (Contact, DaemonAnswers?) {
    do throws(DaemonConnection.Failure) {
      let answers = try DaemonAnswers(from: socket, until: deadline)
      if let denial = answers.denial { return (.denied(denial), nil) }
      return (.answered, answers)
    } catch {
      let contact: Contact =
        switch error {
        case .unreachable(_, let code): .refused(code)
        case .untrusted(_, let fault): .untrusted(fault)
        case .busy(let why): .busy(why)
        case .timeUp: .silent
        case .closed, .malformed, .outputClosed, .interrupted: .broken("\(error)")
        }
      return (contact, nil)
    }
  }

  init(
    socketPath: String, userID: UInt32, contact: Contact, answers: DaemonAnswers?,
    units: UnitStates = UnitStates(of: nil)
  ) {
    socket = DaemonSocket(socketPath)
    self.userID = userID
    self.contact = contact
    self.answers = answers
    self.units = units
    manager = ServiceManager.of(socketPath)
  }

  /// The remedy that restarts the daemon.
  ///
  /// A daemon that was started by hand must be started by hand again after the remedy has ended it. If the daemon does
  /// not report its process, the remedy shows the process that listens on the socket.
  var restart: Remedy {
    if let manager { return manager.remedy("restart", UnitStates.service) }
    guard let process = answers?["pid"] else { return .anybody("ss", "-x", "-l", "-p", "src", socketPath) }
    return .anybody("kill", process)
  }

  /// The remedy that lets the running daemon read its configuration and the manifests again.
  var reload: Remedy {
    if let manager { return manager.remedy("reload", UnitStates.service) }
    guard let process = answers?["pid"] else { return restart }
    return .anybody("kill", "-HUP", process)
  }

  /// The remedy that starts the units after a repair, or lets a running daemon read its files again.
  var resume: [Remedy] { resume(reload) }

  /// Returns the remedies that start the units after a repair, or the one for a daemon that runs.
  func resume(_ running: Remedy) -> [Remedy] {
    guard answers == nil, let manager else { return [running] }
    return [manager.resetUnits, manager.restartUnits]
  }
}

/// The daemon's answers on one connection.
struct DaemonAnswers: Equatable, Sendable {
  /// The reason why the daemon refused the connection. Then it gave no answers.
  private(set) var denial: String?
  /// The name and version in the answer to `hello`.
  var hello: [String] = []
  /// The version of the protocol in the answer to `hello`.
  var lineProtocol = ""
  /// The app of this process; nil if `whoami` was refused, with the reason in ``refusal``.
  var app: String?
  /// The reason why `whoami` was refused.
  var refusal: String?
  /// The attributes in the answer to `whoami`.
  var peer: [String: String] = [:]
  /// Whether the app has a manifest; nil if the app is not installed.
  var hasManifest: Bool?
  /// A row of `status`.
  struct Row: Equatable {
    let name: String
    let value: String
  }

  /// The rows of `status`, in order.
  var status: [Row] = []
  /// The time of the last event; nil if there is none, or if this user is not an admin.
  var lastEvent: Timestamp?

  /// The maximum number of rows. No answer requested here has as many.
  private static let mostRows = 40_000

  init(status: [(String, String)] = []) { self.status = status.map(Row.init) }

  /// Connects, and requests all answers.
  ///
  /// - Parameter deadline: the deadline of the last answer, a time of ``Clock/monotonicMicroseconds``.
  init(from socket: DaemonSocket, until deadline: UInt64) throws(DaemonConnection.Failure) {
    let patience = Patience(until: deadline, needsOutput: false, endsOnTime: true)
    var connection = try DaemonConnection(atOnce: socket)
    func ask(_ request: String...) throws(DaemonConnection.Failure) -> DaemonConnection.Answer {
      var rows: [ReplyLine.Content] = []
      do {
        let final = try connection.ask(RequestLine(words: request), patience) { row in
          guard rows.count < Self.mostRows else { throw DaemonConnection.Failure.malformed("too many rows") }
          rows.append(row)
        }
        return DaemonConnection.Answer(rows: rows, final: final)
      } catch let failure as DaemonConnection.Failure {
        throw failure
      } catch {
        throw .closed
      }
    }
    let hello = try ask("hello")
    switch hello.final {
    case .error("busy", let why): throw .busy("\(why)")
    case .error("denied", let why):
      denial = "\(why)"
      return
    case .ok, .row, .event, .error: break
    }
    if case .ok(let content) = hello.final {
      self.hello = content.words.map { "\($0)" }
      lineProtocol = content["protocol"].map { "\($0)" } ?? ""
    }
    let whoami = try ask("whoami")
    switch whoami.final {
    case .ok(let content):
      app = content.words.first.map { "\($0)" }
      for attribute in content.attributes { peer["\(attribute.name)"] = "\(attribute.value)" }
    case .error(let code, let text): refusal = "\(text) (\(code))"
    case .row, .event: refusal = "the answer is invalid"
    }
    status = try ask("status").rows.flatMap(\.attributes).map { Row(name: "\($0.name)", value: "\($0.value)") }
    let row = try ask("app", "list").rows.first { row in row.words.first.map { "\($0)" } == app }
    hasManifest = row?["manifest"].map { $0 == "yes" }
    // Only an admin sees every event. Any other user could wait for an event in vain.
    guard peer["admin"] == "yes", let last = self["last-event"].flatMap({ Int64($0) }), last > 0,
      case .ok = try ask("subscribe", "since=\(last - 1)").final
    else { return }
    let event = try? connection.nextEvent(patience)
    lastEvent = event?.attributes.first { $0.name == "time" }.flatMap { Timestamp(parsing: $0.value) }
  }

  /// Whether `status` has any row for monitors only, so that this user may monitor the daemon.
  var hasAllRows: Bool {
    let all = Set(StatusRow.all.filter { $0.audience != .everybody }.map(\.name))
    return status.contains { all.contains($0.name) }
  }

  /// The value of the first row of `status` with a name; nil if there is none.
  subscript(name: String) -> String? { status.first { $0.name == name }?.value }

  /// Returns the values of all rows of `status` with a name.
  func all(_ name: String) -> [String] { status.filter { $0.name == name }.map(\.value) }
}
