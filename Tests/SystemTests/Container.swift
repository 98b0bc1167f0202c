import Foundation
import TestSupport
import Testing

/// A real Debian system with a real systemd, in a container of `packaging/tools/container`.
struct Container: Sendable {
  /// The Debian releases under test, with systemd 252 and 257. `IDENTITYD_SUITES` divides them among several runs.
  static let suites =
    ProcessInfo.processInfo.environment["IDENTITYD_SUITES"].map { $0.split(separator: " ").map(String.init) }
    ?? ["bookworm", "trixie"]
  /// The newest and the oldest release, each for half of the long tests that depend little on the version of systemd. The
  /// long run has them on each release.
  static let newest = Trial.isLong ? suites : suites.filter { $0 == "trixie" }
  static let oldest = Trial.isLong ? suites : suites.filter { $0 == "bookworm" }
  static let tool = checkout.appending(path: "packaging/tools/container")

  let suite: String
  private let name: String

  // MARK: Life

  /// Boots a container, which is powered off at the latest when the test runner exits.
  fileprivate init(booting suite: String, with files: [URL]) async throws {
    self.suite = suite
    let runner = ProcessInfo.processInfo.processIdentifier
    name = "test-\(runner)-\(suite)"
    let copied = files.flatMap { file in
      let folder = Self.isForSystem(file) ? Self.packages : Self.others
      return ["-c", "\(file.path):\(folder)/\(file.lastPathComponent)"]
    }
    try await tool(["up", name, suite, "-p", "\(runner)"] + copied)
  }

  private init(bootingCopyOf original: Container, machineID: URL?, credential: String?) async throws {
    suite = original.suite
    name = "\(original.name)-copy"
    let copied = machineID.map { ["-c", "\($0.path):/etc/machine-id"] } ?? []
    let given = credential.map { ["-s", $0] } ?? []
    try await tool(
      ["up", name, suite, "-d", original.name, "-p", "\(ProcessInfo.processInfo.processIdentifier)"] + copied + given)
  }

  /// Boots another container with a copy of the disk of this one, in its network, and powers it off at the end.
  ///
  /// - Parameters:
  ///   - machineID: the machine-id of the copy, empty for one that systemd makes; nil for that of the disk.
  ///   - credential: a credential of the copy's system, `NAME:VALUE`, as a hypervisor gives one to a machine.
  func withCopy(
    machineID: String?, credential: String? = nil, _ body: (Container) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "machine-id")
    if let machineID { try Data((machineID.isEmpty ? "" : "\(machineID)\n").utf8).write(to: file) }
    let copy = try await Container(
      bootingCopyOf: self, machineID: machineID == nil ? nil : file, credential: credential)
    do {
      try await body(copy)
    } catch {
      try await tool(["down", copy.name])
      throw error
    }
    try await tool(["down", copy.name])
  }

  /// Returns a container in the initial state of each test: the package as shipped, the daemon restarted, and the
  /// settings of earlier tests removed.
  static func ready(_ suite: String) async throws -> Container {
    let container = try await Containers.shared.container(suite)
    try await container.shell(
      """
      rm -rf \(configurations)/* \(manifests)/*
      # Most tests leave neither, and a reload takes longer than all the rest.
      [ ! -e \(dropIns) ] || { rm -rf \(dropIns); systemctl daemon-reload; }
      [ ! -e /var/lib/dpkg/info/greeter.list ] || dpkg --purge greeter 2>&1
      [ "$(dpkg-query --show --showformat='${db:Status-Status}' identityd 2>&1)" = installed ] ||
        \(Self.install)
      systemctl reset-failed
      systemctl start identityd.socket
      systemctl restart identityd.service
      """)
    return container
  }

  /// Reboots the system in an orderly way.
  func reboot() async throws { try await tool(["reboot", name]) }

  /// Kills all processes of the system at once and boots it again.
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

  /// The folder of the packages under test.
  static let packages = "/packages"
  /// The folder of the other packages: those of the fleet and the portal, and the Debian package of the page for Cockpit.
  static let others = "\(packages)/others"
  /// Whether a package is for every test. The page for Cockpit has tests of its own, and is installed here as an RPM only.
  /// The library for C has tests of its own, too.
  static func isForSystem(_ package: URL) -> Bool {
    let name = package.lastPathComponent
    // The system has no Python.
    guard !name.hasPrefix("python3-"), !name.hasPrefix("libidentity") else { return false }
    return !name.hasPrefix("identity-") && (package.pathExtension == "rpm" || !name.hasPrefix("cockpit-"))
  }
  /// Installs the Debian packages, or upgrades to them.
  static let install = "dpkg --install \(packages)/*.deb"
  /// Purges both packages with all that they left.
  static let purge = "dpkg --purge identityd identityd-client"

  /// The folder for drop-ins of the unit, which last for this boot only.
  static let dropIns = "/run/systemd/system/identityd.service.d"
  /// The folder for configuration files of tests.
  static let configurations = "/etc/identityd/identityd.conf.d"

  /// The folder for manifests of tests.
  static let manifests = "/etc/identityd/apps.d"

  /// Runs a shell script inside as root, in a transient service, whether it succeeds or fails.
  func attempt(_ script: String) async throws -> Outcome {
    try await run(Self.tool, ["exec", name, "/bin/sh", "-euc", script])
  }

  /// Runs a shell script inside, which must succeed.
  ///
  /// - Returns: its output, without the last line feed.
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

  /// Copies a file of this machine into the container.
  func copy(_ file: URL, to path: String) async throws { try await tool(["copy", name, file.path, path]) }

  /// Runs a read-only shell script inside, outside of any unit.
  private func look(_ script: String) async throws -> String {
    try await tool(["look", name, "/bin/sh", "-euc", script]).output.trimmingCharacters(in: .newlines)
  }

  /// Returns a property of a unit, as `systemctl show` prints it.
  func property(_ property: String, of unit: String = "identityd.service") async throws -> String {
    try await look("systemctl show --property=\(property) --value \(unit)")
  }

  /// Returns the persistent identifiers of an app, which is always the same one.
  ///
  /// The client runs in a scope, which is not a service, so its app is always `user:0`.
  func identifiers() async throws -> Identifiers {
    let answers = try await shell(
      "systemd-run --quiet --scope sh -euc 'identityctl get device; identityctl get installation'")
    let lines = answers.split(separator: "\n").map(String.init)
    guard lines.count == 2, lines.allSatisfy({ UUID(uuidString: $0) != nil }) else { throw Failure(answers) }
    return Identifiers(device: lines[0], installation: lines[1])
  }

  /// Returns the daemon's `whoami` for a client that `systemd-run` starts with these options.
  func whoami(_ options: String) async throws -> Peer {
    try peer(await shell("systemd-run --quiet --wait --pipe --collect \(options) identityctl --json whoami"))
  }

  /// Parses the output of `identityctl --json whoami`.
  func peer(_ json: String) throws -> Peer { try JSONDecoder().decode(Peer.self, from: Data(json.utf8)) }

  // MARK: The journal

  /// Returns the time inside, for ``journal(since:_:)``.
  ///
  /// Tests use no cursor: with a cursor and a filter, systemd 252 leaves out the first entry.
  func now() async throws -> String { try await look("date +@%s.%6N") }

  /// Returns the journal's messages of the daemon's units since a time, one message per element.
  func journal(since time: String, _ options: String = "") async throws -> [String] {
    let text = try await look(
      """
      journalctl --sync
      journalctl --quiet --since=\(time) --output=cat \(options) --unit=identityd.service --unit=identityd.socket
      """)
    return text.split(separator: "\n").map(String.init)
  }
}

/// The persistent identifiers of an app.
struct Identifiers: Equatable {
  let device: String
  let installation: String
}

/// The answer to `whoami`.
struct Peer: Decodable {
  let app: String
  let uid: Int
  let unit: String?
  let container: String?
  let admin: Bool
}

/// The containers of this run: one per suite, booted when the first test asks for it.
private actor Containers {
  static let shared = Containers()
  private var booting: [String: Task<Container, any Error>] = [:]

  func container(_ suite: String) async throws -> Container {
    let files = try #require(Requirement.debs) + (Requirement.rpms ?? [])
    let task = booting[suite] ?? Task { try await Container(booting: suite, with: files) }
    booting[suite] = task
    return try await task.value
  }
}
