import Glibc
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// What several checks need: where the daemon is, and what it says of itself.
package struct Examination: Sendable {
  /// How reaching the daemon ended.
  enum Contact: Equatable, Sendable {
    case answered
    /// The kernel refused the connection, with this value of errno.
    case refused(Int32)
    /// The daemon may be another user's; nothing was asked.
    case untrusted(SocketFault)
    /// The daemon, or its queue, has no room for another connection.
    case busy(String)
    /// It took the connection and said nothing in time.
    case silent
    /// What came is not an answer.
    case broken(String)
  }

  /// Where the daemon is looked for.
  let socketPath: String
  /// Who looks.
  let userID: UInt32
  /// How reaching the daemon ended.
  let contact: Contact
  /// What it said; nil where it was not reached.
  let answers: DaemonAnswers?

  /// Whether that is the system's daemon, which systemd starts; others were started by hand.
  var isSystem: Bool { socketPath == DaemonSocket.systemPath }

  /// The folder with all state, as far as it is known.
  var stateDirectory: String? {
    // One that a daemon was given from its own folder on leads elsewhere from here.
    if let said = answers?["state-directory"], said.hasPrefix("/") { return said }
    return isSystem ? Self.systemStateDirectory : nil
  }

  static let systemStateDirectory = "/var/lib/identityd"
  /// Why a check that needs the daemon's word is skipped.
  static let unreached = "the daemon was not reached, see socket"

  /// Why a check is skipped that needs a row of `status` which this user is not told of.
  ///
  /// - Parameter what: the subject of the row, as a clause.
  static func untold(_ what: String) -> String {
    "\(what), the daemon tells admins and members of MonitorGroup= alone; ask as root"
  }

  /// How long one answer, or a program that is asked, is waited for.
  static let patienceSeconds: UInt64 = 10

  /// A moment from now on, when the patience with one answer ends.
  static var deadline: UInt64 { Clock.monotonicMicroseconds + patienceSeconds * 1_000_000 }

  /// The patience with one answer.
  static var patience: Patience { Patience(until: deadline, needsOutput: false, endsOnTime: true) }

  /// Asks the daemon.
  init(of socket: DaemonSocket) {
    socketPath = socket.path
    userID = Accounts.ownUserID
    do throws(DaemonConnection.Failure) {
      answers = try DaemonAnswers(from: socket)
      contact = .answered
    } catch {
      answers = nil
      contact =
        switch error {
        case .unreachable(_, let code): .refused(code)
        case .untrusted(_, let fault): .untrusted(fault)
        case .busy(let why): .busy(why)
        case .timeUp: .silent
        case .closed, .malformed, .outputClosed, .interrupted: .broken("\(error)")
        }
    }
  }

  /// Of facts that a test made up.
  init(socketPath: String, userID: UInt32, contact: Contact, answers: DaemonAnswers?) {
    self.socketPath = socketPath
    self.userID = userID
    self.contact = contact
    self.answers = answers
  }

  /// What makes the daemon begin anew. One that was started by hand has to be started by hand again; which process that
  /// is, the kernel knows where the daemon does not say.
  var restart: Remedy {
    if isSystem { return .root("systemctl", "restart", "identityd.service") }
    guard let process = answers?["pid"] else { return .anybody("ss", "-x", "-l", "-p", "src", socketPath) }
    return .anybody("kill", process)
  }
}

/// What the daemon said, on one connection.
struct DaemonAnswers: Equatable, Sendable {
  /// Name and version, as `hello` has them.
  var hello: [String] = []
  /// The version of the protocol.
  var lineProtocol = ""
  /// The app that asks; nil where `whoami` was refused, with the reason in `refusal`.
  var app: String?
  /// Why `whoami` was refused.
  var refusal: String?
  /// The attributes of `whoami`.
  var peer: [String: String] = [:]
  /// Whether the app has a manifest; nil where it is not installed.
  var hasManifest: Bool?
  /// The rows of `status`, in order.
  var status: [Finding.Fact] = []
  /// When the last event happened; nil where there is none, or it is not for this peer.
  var lastEvent: Timestamp?

  /// More rows than any answer has that is asked for here.
  private static let mostRows = 40_000

  /// Of facts that a test made up.
  init(status: [(String, String)] = []) { self.status = status.map { Finding.Fact($0, $1) } }

  /// Asks.
  init(from socket: DaemonSocket) throws(DaemonConnection.Failure) {
    var connection = try DaemonConnection(atOnce: socket)
    func ask(_ request: String) throws(DaemonConnection.Failure) -> DaemonConnection.Answer {
      var rows: [ReplyLine.Content] = []
      do {
        let final = try connection.ask(line: Array("\(request)\n".utf8), Examination.patience) { row in
          guard rows.count < Self.mostRows else { throw DaemonConnection.Failure.malformed("rows without end") }
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
    if case .error("busy", let why) = hello.final { throw .busy("\(why)") }
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
    case .row, .event: refusal = "what came is no answer"
    }
    status = try ask("status").rows.flatMap(\.attributes).map { Finding.Fact("\($0.name)", "\($0.value)") }
    let row = try ask("app list").rows.first { row in row.words.first.map { "\($0)" } == app }
    hasManifest = row?["manifest"].map { $0 == "yes" }
    // Who may not see every event would wait for one in vain.
    guard peer["admin"] == "yes", let last = self["last-event"].flatMap({ Int64($0) }), last > 0,
      case .ok = try ask("subscribe since=\(last - 1)").final
    else { return }
    let event = try? connection.nextEvent(Examination.patience)
    lastEvent = event?.attributes.first { $0.name == "time" }.flatMap { Timestamp(parsing: $0.value) }
  }

  /// Whether `status` has a row that is not for everybody. A user who sees one sees them all.
  var hasAllRows: Bool {
    let all = Set(StatusRow.all.filter { $0.audience != .everybody }.map(\.name))
    return status.contains { all.contains($0.name) }
  }

  /// The first row of `status` of a name.
  subscript(name: String) -> String? { status.first { $0.name == name }?.value }

  /// All rows of `status` of a name.
  func all(_ name: String) -> [String] { status.filter { $0.name == name }.map(\.value) }
}
