import Foundation
import TestSupport

/// A request to a daemon whose storage fails.
struct SweptRequest: Sendable, CustomStringConvertible {
  let description: String
  /// The number of unrelated commits before the request.
  var preceding = 0
  /// Whether all syncs of the request belong to its acknowledged change, so that none may fail if the answer is `OK`.
  var isPlain = true
  /// One request, or several on one connection. The last answer counts.
  let lines: [String]

  /// Returns requests for every kind of change, and requests that read the store.
  ///
  /// - Parameter backup: a backup with an item that the daemon does not have.
  static func all(restoring backup: Data) -> [SweptRequest] {
    let secret = Data("another secret".utf8).base64EncodedString()
    return [
      .init(description: "an identifier", lines: ["get vendor"]),
      .init(description: "an item", lines: ["item add service=s account=a1 data=\(secret) label=new"]),
      .init(description: "an item replaced", lines: ["item put service=s account=a0 data=\(secret)"]),
      .init(description: "an item updated", lines: ["item update service=s account=a0 label=other attr.color=red"]),
      .init(description: "an item deleted", lines: ["item delete service=s account=a0"]),
      .init(description: "a secret read", isPlain: false, lines: ["item read service=s account=a0"]),
      .init(description: "a version", lines: ["version report 2.0"]),
      .init(description: "a claim", lines: ["version claim once"]),
      .init(description: "a token", lines: ["token put fcm another-token"]),
      .init(description: "a token deleted", lines: ["token delete fcm"]),
      .init(description: "an installation renewed", lines: ["renew installation app=user:0"]),
      .init(description: "the device renewed", lines: ["renew device"]),
      .init(description: "an app forgotten", lines: ["app forget user:30000"]),
      .init(description: "an account", lines: ["account set somebody"]),
      .init(description: "a key rotated", isPlain: false, lines: ["key rotate"]),
      .init(description: "a backup", isPlain: false, lines: ["backup key=\(backupKey)"]),
      .init(description: "a backup restored", lines: Client.upload(backup) + ["restore end"]),
      // Makes the log long enough for a checkpoint.
      .init(
        description: "a log written back", preceding: 1, isPlain: false,
        lines: ["item put service=s account=long data=\(long(2))"]),
    ]
  }

  /// Returns a secret of several pages, as Base64 text.
  static func long(_ byte: UInt8) -> String { Data(repeating: byte, count: 24_000).base64EncodedString() }
}

/// A daemon whose storage can be made to fail, and the saved state with which each trial begins.
final class SweptDaemon {
  let daemon: DaemonUnderTest
  let faults: StorageFaults
  private(set) var client: Client
  private var stored: [String: Data] = [:]
  /// The identifiers in the saved state. All other identifiers compare as equal.
  private var known: Set<String> = []

  /// Starts a daemon, and stores a record of every kind.
  init() throws {
    daemon = try DaemonUnderTest(inMemory: true)
    faults = try StorageFaults(in: daemon.folder)
    try daemon.start(through: faults.wrapper(for: daemon), configuration: "[Store]\nCheckpointSize=64K\n")
    client = try daemon.client()
    let secret = Data("a secret".utf8).base64EncodedString()
    for line in [
      "get device", "get installation", "version report 1.0", "token put fcm token", "token put \(Self.touched)",
      "account set someone", "item add service=s account=a0 data=\(secret) label=old",
      "item add service=s account=long data=\(SweptRequest.long(1))",
    ] { try mustBeOK(client.ask(line).last, line) }
    try mustBeOK(identityctl(daemon, "get", "installation", asUser: 30_000).status == 0 ? "OK" : nil, "another user")
  }

  /// Saves the present state for later trials.
  func keep() throws {
    daemon.end(with: SIGKILL)
    stored = [:]
    for name in try names() { stored[name] = try Data(contentsOf: daemon.state.appending(path: name)) }
    try start()
    known = Set(
      try asked().flatMap { $0.split(whereSeparator: { " =".contains($0) }).map(String.init) }.filter(Self.isUUID))
  }

  /// Returns the names in the state directory.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: daemon.state.path).sorted() }

  /// Kills the daemon, and starts it again with the saved state.
  func restore() throws {
    try putBack()
    try start()
    // Completes the writer's own work after a start before any fault begins.
    try touch()
  }

  /// Kills the daemon, and puts back the saved state or removes all state.
  func putBack(empty: Bool = false) throws {
    if daemon.process.isRunning { daemon.end(with: SIGKILL) }
    try? FileManager.default.removeItem(at: daemon.state)
    if empty { return }
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for (name, bytes) in stored { try bytes.write(to: daemon.state.appending(path: name)) }
  }

  /// Starts the daemon without faults.
  func start() throws {
    faults.end()
    try daemon.start(through: faults.wrapper(for: daemon))
    client = try daemon.client()
  }

  /// Starts the daemon while a fault may be active.
  ///
  /// - Parameter hurries: whether the daemon's clock is moved ahead, so that its patience with the disk ends soon.
  /// - Returns: true if the daemon serves, false if it has exited by itself.
  func startsDespiteFaults(hurries: Bool = false) throws -> Bool {
    try daemon.launch(through: faults.wrapper(for: daemon))
    let deadline = Date(timeIntervalSinceNow: patience)
    while daemon.process.isRunning {
      if let client = try? daemon.client(), (try? client.ask("ping")) == ["OK"] {
        self.client = client
        return true
      }
      guard Date() < deadline else { throw Failure("the daemon neither serves nor ends") }
      if hurries, faults.struck > 2 { faults.passTime() }
      usleep(10_000)
    }
    return false
  }

  /// Kills the daemon and starts it again.
  func restart() throws {
    daemon.end(with: SIGKILL)
    try start()
  }

  /// Sends requests, and returns the final line of the last answer.
  func ask(_ lines: [String]) throws -> String {
    try client.send(lines.map { $0 + "\n" }.joined())
    return try lines.map { _ in try client.answer().last ?? "" }.last ?? ""
  }

  /// Commits a change that is visible only in its times.
  func touch() throws { try mustBeOK(client.ask("token put \(Self.touched)").last, "a change once nothing fails") }

  /// Lets the daemon rewrite its store if that is due, then returns all visible state. Placeholders replace times and
  /// new identifiers.
  func settled() throws -> [String] {
    faults.passTime()
    try touch()
    return try asked().map { line in
      line.utf8.split(separator: UInt8(ascii: " ")).map { bytes in
        let word = String(Substring(bytes))
        // Skips secrets: they are neither UUIDs nor times, and their comparison takes long.
        guard bytes.count < 200 else { return word }
        let value = word.split(separator: "=").last.map(String.init) ?? ""
        let replacement = Self.isUUID(value) && !known.contains(value) ? "<new>" : Self.isTime(value) ? "<time>" : value
        return word.dropLast(value.count) + replacement
      }.joined(separator: " ")
    }
  }

  private static let touched = "apns touched"

  private static let questions = [
    "history device", "history installation", "history vendor", "devices", "account", "app list",
    "item find group=* limit=all", "item read service=s account=a0", "item read service=s account=a1",
    "item read service=s account=long", "token list app=*", "version state", "version history", "status",
  ]

  private static let shown = [
    "store", "last-event", "apps", "installations", "vendors", "devices", "items", "item-bytes", "tokens", "master-key",
    "sealed",
  ]

  private func asked() throws -> [String] {
    try client.send(Self.questions.map { $0 + "\n" }.joined())
    return try Self.questions.flatMap { question in
      let answer = try client.answer()
      guard question == "status" else { return ["\(question):"] + answer }
      return answer.filter { row in Self.shown.contains { row.hasPrefix("* \($0)=") } }
    }
  }

  private static func isUUID(_ word: some StringProtocol) -> Bool {
    word.utf8.count == 36 && word.utf8.count { $0 == UInt8(ascii: "-") } == 4
  }

  private static func isTime(_ word: String) -> Bool { word.utf8.count == 24 && word.hasSuffix("Z") }

  private func mustBeOK(_ answer: String?, _ what: String) throws {
    guard let answer, answer.hasPrefix("OK") else { throw Failure("\(what): \(answer ?? "no answer")") }
  }
}
