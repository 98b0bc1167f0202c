import Foundation
import TestSupport
import Testing

/// The identity that a machine is given by credentials at its first start (identityd(8), "First boot").
@Suite(.enabled(if: isRoot, "a machine-id of one's own needs a mount")) struct ProvisionTests {
  private static let device = "557e5958-d390-4cbf-b928-2a2b19a1399a"
  private static let other = "0f8fad5b-d9cb-469f-a165-70867728950e"
  private let daemon: DaemonUnderTest
  private let credentials: URL

  init() throws {
    daemon = try DaemonUnderTest()
    credentials = daemon.folder.appending(path: "credentials")
    try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
  }

  /// Gives the machine a credential, or takes it away.
  private func give(_ name: String, _ content: Data?) throws {
    let file = credentials.appending(path: "identityd.\(name)")
    if let content { try content.write(to: file) } else { try FileManager.default.removeItem(at: file) }
  }

  private func give(_ name: String, _ content: String) throws { try give(name, Data(content.utf8)) }

  private func start(machine: Int = 1) throws {
    let machine = try daemon.onMachine(withID: "\(machine)\(String(repeating: "0", count: 31))\n")
    try daemon.start(through: ["env", "CREDENTIALS_DIRECTORY=\(credentials.path)"] + machine)
  }

  private func restart(machine: Int = 1) throws {
    daemon.end()
    try start(machine: machine)
  }

  private func startOver() throws {
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
  }

  private func fault() throws -> String? {
    try daemon.client().ask("status").first { $0.hasPrefix("* provision-reason=") }
  }

  /// Returns a backup with an item and an account, made by the client on another machine.
  private func backup(passphrase: String = "battery staple") throws -> Data {
    let source = try DaemonUnderTest()
    let machine = try source.onMachine(withID: "\(String(repeating: "9", count: 32))\n")
    try source.start(through: machine)
    for request in [
      "get device", "get installation", "account set alice@example.org", "item put service=s account=a data=c2VjcmV0",
    ] {
      #expect(try source.ask(request).hasPrefix("OK"))
    }
    let file = source.folder.appending(path: "backup")
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let made = try run(
      [program, "--socket=\(source.socket)", "--passphrase-fd=0", "backup", file.path], input: passphrase)
    #expect(made.status == 0, "\(made)")
    return try Data(contentsOf: file)
  }

  @Test func `the first start adopts a device identifier, and later ones change nothing`() throws {
    try give("device", "\(Self.device.uppercased())\n")
    try start()
    #expect(try daemon.ask("get device").hasPrefix("OK \(Self.device) level=device "))
    #expect(try daemon.ask("get device").contains("origin=migrated"))
    #expect(try fault() == nil)
    try daemon.waitForLog("has the identity that its credentials give")
    // Another one comes too late.
    try give("device", Self.other)
    try restart()
    #expect(try daemon.uuid("get device") == Self.device)
    #expect(try fault() == nil)
    // A machine with an identity of its own keeps that.
    try startOver()
    try give("device", nil)
    try start()
    let own = try daemon.uuid("get device")
    try give("device", Self.other)
    try restart()
    #expect(try daemon.uuid("get device") == own)
  }

  @Test func `the first start restores a backup, before any client is served`() throws {
    try give("items", try backup())
    try give("items-passphrase", "battery staple\n")
    try give("device", Self.device)
    try start()
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=c2VjcmV0 "))
    #expect(try daemon.ask("account") == "OK alice@example.org")
    // The identifiers of the backup belong to another machine.
    #expect(try daemon.uuid("get device") == Self.device)
    #expect(try daemon.ask("item delete service=s account=a") == "OK 1")
    try restart()
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("ERR not-found "))
  }

  @Test(arguments: ["seal", "--root"])
  func `a factory reset does not bring the identity back, and other credentials give another`(way: String) throws {
    try give("device", Self.device)
    try start()
    if way == "seal" {
      #expect(try daemon.ask("seal") == "OK")
      daemon.end()
    } else {
      daemon.end()
      let root = daemon.folder.appending(path: "root")
      let state = root.appending(path: "var/lib/identityd")
      try FileManager.default.createDirectory(
        at: root.appending(path: "var/lib"), withIntermediateDirectories: true)
      try FileManager.default.moveItem(at: daemon.state, to: state)
      let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
      #expect(try run([program, "--root=\(root.path)", "--yes", "seal"]).status == 0)
      try FileManager.default.moveItem(at: state, to: daemon.state)
    }
    try start()
    let after = try daemon.uuid("get device")
    #expect(after != Self.device)
    #expect(try fault() == nil)
    #expect(try daemon.ask("seal") == "OK")
    try give("device", Self.other)
    try restart()
    #expect(try daemon.uuid("get device") == Self.other)
  }

  /// Credentials that cannot be applied, with a part of the reason.
  private static let faults = [
    "no UUID": "is not a UUID", "a placeholder": "00000000", "no backup": "is not a backup",
    "no passphrase": "identityd.items-passphrase is missing", "another passphrase": "passphrase is wrong",
    "a cut backup": "truncated",
  ]

  @Test(arguments: faults.keys.sorted())
  func `credentials that cannot be applied change nothing, and the reason is told`(kind: String) throws {
    let whole = try backup()
    try give("device", Self.device)
    try give("items", whole)
    try give("items-passphrase", "battery staple")
    switch kind {
    case "no UUID": try give("device", "hostname")
    case "a placeholder": try give("device", "00000000-0000-0000-0000-000000000000")
    case "no backup": try give("items", "secret-of-someone")
    case "no passphrase": try give("items-passphrase", nil)
    case "another passphrase": try give("items-passphrase", "secret-of-someone")
    default: try give("items", whole.dropLast(10))
    }
    try start()
    let reason = try #require(try fault())
    let wanted = try #require(Self.faults[kind])
    #expect(reason.contains(wanted), "\(reason)")
    try daemon.waitForLog("The machine was not given the identity of its credentials")
    #expect(!daemon.log.contains("secret-of-someone") && !reason.contains("secret-of-someone"))
    #expect(try daemon.ask("item find group=*").hasPrefix("ERR not-found "))
    #expect(try daemon.ask("account") == "OK \"\"")
    let finding = try daemon.diagnosis()["store"]
    #expect(finding.result == "warning" && finding.cause?.contains(wanted) == true, "\(finding)")
    // A start with correct credentials makes up for it, as long as nothing is stored.
    try give("device", Self.device)
    try give("items", whole)
    try give("items-passphrase", "battery staple")
    try restart()
    #expect(try fault() == nil)
    #expect(try daemon.diagnosis()["store"].result == "ok")
    #expect(try daemon.uuid("get device") == Self.device)
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=c2VjcmV0 "))
  }

  @Test func `a damaged record of the credentials is kept, and they are not applied`() throws {
    try give("device", Self.device)
    try start()
    #expect(try daemon.ask("seal") == "OK")
    daemon.end()
    let file = daemon.state.appending(path: "provisioned")
    try Data("damaged".utf8).write(to: file)
    try start()
    #expect(try fault()?.contains("remove the file") == true)
    #expect(try String(contentsOf: file, encoding: .utf8) == "damaged")
    // The advice leads to an identity.
    try FileManager.default.removeItem(at: file)
    try restart()
    #expect(try daemon.uuid("get device") == Self.device)
  }

  @Test func `an identity that came in between stays, in spite of a fault`() throws {
    try give("device", "hostname")
    try start()
    let own = try daemon.uuid("get device")
    try give("device", Self.device)
    try restart()
    #expect(try daemon.uuid("get device") == own)
    #expect(try fault() == nil)
  }

  @Test func `a start that ended between the changes and their record counts as done`() throws {
    try give("device", Self.device)
    try start()
    daemon.end()
    let file = daemon.state.appending(path: "provisioned")
    let done = try String(contentsOf: file, encoding: .utf8)
    #expect(done.hasSuffix(" done\n") && !done.contains(Self.device))
    try Data(done.replacing(" done", with: " begun").utf8).write(to: file)
    try start()
    #expect(try String(contentsOf: file, encoding: .utf8) == done)
    // One that ended before the changes is repeated.
    daemon.end()
    for name in try FileManager.default.contentsOfDirectory(atPath: daemon.state.path) where name != "provisioned" {
      try FileManager.default.removeItem(at: daemon.state.appending(path: name))
    }
    try Data(done.replacing(" done", with: " begun").utf8).write(to: file)
    try start()
    #expect(try daemon.uuid("get device") == Self.device)
  }
}
