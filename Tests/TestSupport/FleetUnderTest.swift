package import Foundation

/// A real fleet service beside a real daemon: one device.
package final class FleetUnderTest {
  /// The daemon.
  package let daemon: DaemonUnderTest
  private var place: [String]
  private var process = Process()

  /// The ID of the service's process.
  package var processID: Int32 { process.processIdentifier }

  /// The socket of the service.
  package var socket: String { folder.appending(path: "fleet").path }
  /// The folder of the socket.
  private var folder: URL { user == nil ? daemon.folder : daemon.folder.appending(path: "run") }
  private let user: String?
  private var configuration: URL { daemon.folder.appending(path: "identity-fleet.conf") }
  private var logFile: URL { daemon.folder.appending(path: "fleet.log") }

  /// Starts a daemon and its service.
  ///
  /// - Parameters:
  ///   - place: the command that starts the service where it reaches its broker.
  ///   - user: the user of the service, which then has a manifest with the right `fleet`; by default this user, without a
  ///     manifest.
  package init(_ configuration: String, at place: [String] = [], as user: String? = nil) throws {
    self.place = place
    self.user = user
    daemon = try DaemonUnderTest()
    try installService()
    try daemon.start()
    // All daemons on a machine derive the same first identifier.
    guard try daemon.ask("renew device").hasPrefix("OK ") else { throw Failure("no other identifier") }
    try Data("[Fleet]\n\(configuration)\n".utf8).write(to: self.configuration)
    try Data().write(to: logFile)
    try start()
  }

  /// Starts a daemon and its service with a copy of the disk of a device.
  ///
  /// - Parameters:
  ///   - user: the user of the service, as in ``init(_:at:as:)``.
  ///   - machineID: the machine-id of the copy; by default, the original's.
  package init(copying state: URL, _ configuration: String, as user: String? = nil, machineID: String? = nil) throws {
    (place, self.user) = ([], user)
    daemon = try DaemonUnderTest()
    try FileManager.default.copyItem(at: state, to: daemon.state)
    try installService()
    try boot(machineID: machineID)
    try Data("[Fleet]\n\(configuration)\n".utf8).write(to: self.configuration)
    try Data().write(to: logFile)
    try start()
  }

  deinit { end(with: SIGKILL) }

  /// Installs the manifest of the service if it has a user of its own.
  private func installService() throws {
    guard let user else { return }
    let apps = daemon.folder.appending(path: "apps.d")
    for folder in [apps, folder] {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }
    try FileManager.default.setAttributes([.ownerAccountName: user], ofItemAtPath: folder.path)
    try Data("[App]\nUser=\(user)\nRights=fleet\n".utf8).write(to: apps.appending(path: "identity-fleet.app"))
    try daemon.configure("[Apps]\nDirectories=\(apps.path)\n")
  }

  /// Starts the service, and waits until it answers.
  package func start(through wrapper: [String] = []) throws {
    try launch(through: wrapper)
    try wait("the service starts") { try ask("fleet status").last == "OK" }
  }

  /// Starts the service without waiting.
  package func launch(through wrapper: [String] = []) throws {
    process = Process()
    let program = DaemonUnderTest.binaries.appending(path: "identity-fleet").path
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      place + wrapper + (user.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? [])
      + [program, "--daemon", daemon.socket, "--socket", socket, "--config", configuration.path]
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["CREDENTIALS_DIRECTORY": daemon.folder.appending(path: "credentials").path]
    ) { $1 }
    process.standardInput = FileHandle.nullDevice
    let log = try FileHandle(forWritingTo: logFile)
    try log.seekToEnd()
    process.standardError = log
    try process.runUnmasked()
  }

  /// Starts the daemon, on a machine with another machine-id if one is given.
  package func boot(machineID: String? = nil) throws {
    try daemon.start(through: try machineID.map { try daemon.onMachine(withID: "\($0)\n") } ?? [])
  }

  /// Copies the disk of the daemon, as a snapshot of a running machine has it. Returns the folder.
  package func snapshot() throws -> URL {
    let copy = daemon.folder.appending(path: "snapshot")
    try? FileManager.default.removeItem(at: copy)
    kill(daemon.process.processIdentifier, SIGSTOP)
    defer { kill(daemon.process.processIdentifier, SIGCONT) }
    try FileManager.default.copyItem(at: daemon.state, to: copy)
    return copy
  }

  /// Sends a signal, and waits until the service has ended.
  package func end(with signal: Int32) {
    guard process.isRunning else { return }
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
  }

  /// Replaces the configuration, and makes the service read it.
  package func reload(_ text: String) throws {
    // The service may be reading the former one.
    try Data("[Fleet]\n\(text)\n".utf8).write(to: configuration, options: .atomic)
    if process.isRunning { kill(process.processIdentifier, SIGHUP) }
  }

  /// Makes the service use another broker from its next start on.
  package func move(to broker: any MessageBroker) throws {
    place = broker.place
    try reload("\(broker.configuration)\nSpread=0")
  }

  /// Gives the service a credential from its next start on, as systemd does.
  package func give(_ credential: String, as name: String) throws {
    let folder = daemon.folder.appending(path: "credentials")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(credential.utf8).write(to: folder.appending(path: name))
  }

  /// The log so far.
  package var log: String { (try? String(contentsOf: logFile, encoding: .utf8)) ?? "" }

  /// Sends one request to the service, and returns the lines of its answer.
  ///
  /// The status is that after the turn in which the service is, because the test may have seen what this turn has done
  /// already. A request to the service itself waits for the end of the turn.
  package func ask(_ request: String) throws -> [String] {
    let client = try Client(socket)
    if request == "fleet status" { _ = try client.ask("fleet peers") }
    return try client.ask(request)
  }

  /// Runs the client against the service, with a passphrase in descriptor 3.
  package func identityctl(
    _ words: String..., passphrase: String = "correct horse", input: String? = nil
  ) throws -> (status: Int32, output: String, errors: String) {
    let file = daemon.folder.appending(path: "passphrase")
    try Data("\(passphrase)\n".utf8).write(to: file)
    return try run(
      [
        "sh", "-c", "exec 3<'\(file.path)'; exec \"$@\"", "sh",
        DaemonUnderTest.binaries.appending(path: "identityctl").path,
      ] + words,
      environment: ["IDENTITYD_SOCKET": daemon.socket, "IDENTITY_FLEET_SOCKET": socket], input: input)
  }

  /// The names of the devices in the list of this device, sorted. A device without a name is `?`.
  package func devices() throws -> [String] {
    try daemon.client().ask("devices").dropLast().map { row in
      row.firstMatch(of: /name=("[^"]*"|\S+)/).map { String($0.1.replacing("\"", with: "")) } ?? "?"
    }.sorted()
  }

  /// Waits until this device lists exactly these devices.
  package func wait(for names: [String]) throws {
    try wait("the list is \(names)") { try devices() == names.sorted() }
  }

  /// Waits until the service is in a state.
  package func wait(state: String, for seconds: Double = patience) throws {
    try wait("the state is \(state)", for: seconds) { try ask("fleet status").contains("* state=\(state)") }
  }

  /// Waits until a condition holds. An error of the condition counts as no.
  package func wait(_ what: String, for seconds: Double = patience, _ condition: () throws -> Bool) throws {
    do {
      try TestSupport.wait(what, for: seconds, until: condition)
    } catch {
      throw Failure("\(error), but \((try? devices()) ?? []), \((try? ask("fleet status")) ?? []): \(log)")
    }
  }
}
