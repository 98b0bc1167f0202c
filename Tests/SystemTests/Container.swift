import Foundation
import TestSupport
import Testing

/// A real Debian system with a real systemd, in a container made by `packaging/container`.
struct Container: Sendable {
  /// The Debian releases that are tested: systemd 252 and 257. Several runs may share them out among each other.
  static let suites =
    ProcessInfo.processInfo.environment["IDENTITYD_SUITES"].map { $0.split(separator: " ").map(String.init) }
    ?? ["bookworm", "trixie"]
  static let tool = checkout.appending(path: "packaging/container")

  let suite: String
  private let name: String

  // MARK: Life

  /// Boots a container, which ends with the test runner at the latest.
  fileprivate init(booting suite: String, showing files: [URL]) async throws {
    self.suite = suite
    let runner = ProcessInfo.processInfo.processIdentifier
    name = "test-\(runner)-\(suite)"
    let shown = files.flatMap { ["-r", "\($0.path):\(Self.packages)/\($0.lastPathComponent)"] }
    try await tool(["up", name, suite, "-p", "\(runner)"] + shown)
  }

  /// A container in the state that tests start from: the package installed as shipped, the daemon started anew, and
  /// nothing left of what an earlier test set up.
  static func ready(_ suite: String) async throws -> Container {
    let container = try await Containers.shared.container(suite)
    try await container.shell(
      """
      rm -rf \(dropIns) \(configurations)/* \(manifests)/*
      systemctl daemon-reload
      dpkg --purge greeter 2>&1
      [ "$(dpkg-query --show --showformat='${db:Status-Status}' identityd 2>&1)" = installed ] ||
        \(Self.install)
      systemctl reset-failed
      systemctl start identityd.socket
      systemctl restart identityd.service
      """)
    return container
  }

  /// Reboots in an orderly way.
  func reboot() async throws { try await tool(["reboot", name]) }

  /// Kills everything inside at once and boots again.
  func crash() async throws { try await tool(["crash", name]) }

  @discardableResult
  private func tool(_ arguments: [String]) async throws -> Outcome {
    let outcome = try await run(Self.tool, arguments)
    guard outcome.status == 0 else {
      throw Failure("container \(arguments.joined(separator: " ")): status \(outcome.status): \(outcome.errors)")
    }
    return outcome
  }

  // MARK: Inside

  /// Where the packages under test are.
  static let packages = "/packages"
  /// Installs the Debian packages, or upgrades to them.
  static let install = "dpkg --install \(packages)/*.deb"
  /// Removes both with all that they left.
  static let purge = "dpkg --purge identityd identityd-client"

  /// Where tests put drop-ins of the unit, for this boot only.
  static let dropIns = "/run/systemd/system/identityd.service.d"
  /// Where tests put configuration.
  static let configurations = "/etc/identityd/identityd.conf.d"

  /// Where tests put manifests.
  static let manifests = "/etc/identityd/apps.d"

  /// Runs a shell script inside as root, in a transient service, however it may end.
  func attempt(_ script: String) async throws -> Outcome {
    try await run(Self.tool, ["exec", name, "/bin/sh", "-euc", script])
  }

  /// Runs a shell script inside that has to succeed.
  ///
  /// - Returns: what it wrote, without the last end of line.
  @discardableResult
  func shell(_ script: String) async throws -> String {
    let outcome = try await attempt(script)
    guard outcome.status == 0 else {
      throw Failure("on \(suite), status \(outcome.status): \(script)\n\(outcome.output)\(outcome.errors)")
    }
    return outcome.output.trimmingCharacters(in: .newlines)
  }

  /// Writes a file inside.
  func write(_ text: String, to path: String) async throws {
    try await shell("mkdir -p \"$(dirname \(path))\"\ncat >\(path) <<'END'\n\(text)\nEND")
  }

  /// Brings a file of this machine inside.
  func copy(_ file: URL, to path: String) async throws { try await tool(["copy", name, file.path, path]) }

  /// Runs a shell script inside that only looks at something, in no unit.
  private func look(_ script: String) async throws -> String {
    try await tool(["look", name, "/bin/sh", "-euc", script]).output.trimmingCharacters(in: .newlines)
  }

  /// A property of a unit, as `systemctl show` has it.
  func property(_ property: String, of unit: String = "identityd.service") async throws -> String {
    try await look("systemctl show --property=\(property) --value \(unit)")
  }

  /// The identifiers that have to outlive this and that, of one and the same app.
  ///
  /// In a scope, which is no service: so the app is always `user:0`.
  func identifiers() async throws -> Identifiers {
    let answers = try await shell(
      "systemd-run --quiet --scope sh -euc 'identityctl get device; identityctl get installation'")
    let lines = answers.split(separator: "\n").map(String.init)
    guard lines.count == 2, lines.allSatisfy({ UUID(uuidString: $0) != nil }) else { throw Failure(answers) }
    return Identifiers(device: lines[0], installation: lines[1])
  }

  /// What the daemon says of a client that `systemd-run` starts with these options.
  func whoami(_ options: String) async throws -> Answer {
    try answer(await shell("systemd-run --quiet --wait --pipe --collect \(options) identityctl --json whoami"))
  }

  /// Reads what `identityctl --json` wrote.
  func answer(_ json: String) throws -> Answer { try JSONDecoder().decode(Answer.self, from: Data(json.utf8)) }

  // MARK: The journal

  /// The time inside, for ``journal(since:_:)``.
  ///
  /// Not a cursor: with one and a filter, systemd 252 leaves out the first entry.
  func now() async throws -> String { try await look("date +@%s.%6N") }

  /// What the journal says of the daemon's units since then, one message a line.
  func journal(since time: String, _ options: String = "") async throws -> [String] {
    let text = try await look(
      """
      journalctl --sync
      journalctl --quiet --since=\(time) --output=cat \(options) --unit=identityd.service --unit=identityd.socket
      """)
    return text.split(separator: "\n").map(String.init)
  }
}

/// Identifiers of the levels that are kept.
struct Identifiers: Equatable {
  let device: String
  let installation: String
}

/// An answer, as `identityctl --json` writes it.
struct Answer: Decodable {
  let ok: Bool
  let words: [String]
  let attributes: [String: String]
}

/// The containers of this run: one a suite, booted when the first test asks for it.
private actor Containers {
  static let shared = Containers()
  private var booting: [String: Task<Container, any Error>] = [:]

  func container(_ suite: String) async throws -> Container {
    let files = try #require(Requirement.debs) + (Requirement.rpms ?? [])
    let task = booting[suite] ?? Task { try await Container(booting: suite, showing: files) }
    booting[suite] = task
    return try await task.value
  }
}
