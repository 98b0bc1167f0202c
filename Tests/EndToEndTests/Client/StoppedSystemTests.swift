import Foundation
import TestSupport
import Testing

/// `identityctl --root=DIR seal`: deletes the identity of a system on which no daemon runs.
@Suite(.enabled(if: isRoot, "a machine-id of one's own needs a mount")) struct StoppedSystemTests {
  private let daemon: DaemonUnderTest
  /// The root folder of the system, in which the state directory of the daemon lies while no daemon runs.
  private let root: URL
  private var state: URL { root.appending(path: "var/lib/identityd") }
  private var credentials: URL { root.appending(path: "etc/credstore.encrypted") }
  private static let machine = String(repeating: "5", count: 32)

  init() throws {
    daemon = try DaemonUnderTest()
    root = daemon.folder.appending(path: "root")
    for folder in ["var/lib", "etc/credstore.encrypted"] {
      try FileManager.default.createDirectory(at: root.appending(path: folder), withIntermediateDirectories: true)
    }
    try write("\(Self.machine)\n", to: "etc/machine-id")
  }

  private func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: root.appending(path: path))
  }

  /// Starts the daemon on the state directory of the system, and returns identifiers of each stored level.
  private func run(on machine: String = machine) throws -> [String] {
    if FileManager.default.fileExists(atPath: state.path) {
      try FileManager.default.moveItem(at: state, to: daemon.state)
    }
    try daemon.start(through: try daemon.onMachine(withID: "\(machine)\n"))
    return try ["get device", "get vendor", "get installation"].map { try daemon.uuid($0) }
  }

  /// Ends the daemon, and puts its state directory into the system.
  private func stop() throws {
    daemon.end()
    try FileManager.default.moveItem(at: daemon.state, to: state)
  }

  private func seal(_ options: String...) throws -> (status: Int32, output: String, errors: String) {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    return try TestSupport.run([program, "--root=\(root.path)"] + options + ["seal"])
  }

  /// Seals without a question, and expects that to succeed without a word.
  private func sealAll() throws {
    let sealed = try seal("--yes")
    #expect(sealed.status == 0 && sealed.output == "" && sealed.errors == "", "\(sealed)")
  }

  private func names(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  @Test(arguments: [machine, String(repeating: "6", count: 32)])
  func `the next start is a first start, on this machine and on another`(next: String) throws {
    let before = try run()
    #expect(try daemon.ask("item put service=s account=a data=c2VjcmV0") == "OK created")
    try stop()
    // Files beside the store, too.
    try write("x", to: "var/lib/identityd/identityd.db.damaged-1")
    for name in ["identityd.key", "identityd.key.previous", "identity-fleet.invitation", "other.key"] {
      try write("x", to: "etc/credstore.encrypted/\(name)")
    }
    try FileManager.default.removeItem(at: state.appending(path: "lock"))
    let dry = try seal("--dry-run")
    #expect(try !names(in: state).contains("lock"))
    #expect(dry.status == 0 && dry.errors == "")
    let shown = dry.output.split(separator: "\n").map(String.init)
    for path in ["identityd.db", "store.key", "master.key", "witness", "identityd.db.damaged-1"] {
      #expect(shown.contains(state.appending(path: path).path), "\(dry.output)")
    }
    #expect(try names(in: credentials).count == 4)
    #expect(!shown.contains { $0.hasSuffix("other.key") || $0.hasSuffix("lock") })

    try sealAll()
    #expect(try names(in: state) == ["sealed-here"])
    #expect(try names(in: credentials) == ["other.key"])
    #expect(try seal("--dry-run").output == "")
    // A repetition keeps the mark.
    try sealAll()

    let after = try run(on: next)
    #expect(Set(after).isDisjoint(with: before))
    #expect(try daemon.ask("item find group=*").hasPrefix("ERR not-found"))
    #expect(try daemon.ask("resolve \(before[0])").hasPrefix("ERR not-found"))
    #expect(try !names(in: daemon.state).contains("sealed-here"))
    // The identifier of the former machine-id is used up there for good.
    try stop()
    #expect(try run(on: next) == after)
  }

  @Test func `each copy of an image whose machine-id was reset derives its identifier from its own`() throws {
    let other = String(repeating: "7", count: 32)
    let derived = try run(on: other)[0]
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    _ = try run()
    try stop()
    try write("", to: "etc/machine-id")
    #expect(try seal("--yes").status == 0)
    #expect(try names(in: state).isEmpty)
    #expect(try run(on: other)[0] == derived)
  }

  @Test func `a damaged store is no obstacle`() throws {
    _ = try run()
    try stop()
    try write("damaged", to: "var/lib/identityd/identityd.db")
    try write("damaged", to: "var/lib/identityd/store.key")
    try sealAll()
    _ = try run()
  }

  @Test func `nothing is deleted while a daemon runs`() throws {
    let before = try run()
    try FileManager.default.createSymbolicLink(atPath: state.path, withDestinationPath: daemon.state.path)
    // The link leads out of the root, so below the root there is nothing.
    try sealAll()
    try FileManager.default.removeItem(at: state)
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: false)
    let bind = "mount --bind \(daemon.state.path) \(state.path)"
    let mounted = ["unshare", "--mount", "sh", "-c", "\(bind) && exec \"$@\"", "-"]
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let refused = try TestSupport.run(mounted + [program, "--root=\(root.path)", "--yes", "seal"])
    #expect(refused.status == 7 && refused.output == "")
    #expect(refused.errors.contains("systemctl stop identityd.socket identityd.service"), "\(refused.errors)")
    daemon.end()
    try FileManager.default.removeItem(at: state)
    #expect(try run() == before)
  }

  @Test func `symbolic links are followed below the root only, and folders stay`() throws {
    _ = try run()
    try stop()
    let elsewhere = root.appending(path: "data")
    try FileManager.default.moveItem(at: state, to: elsewhere)
    // An absolute link, as a system has it from its own point of view.
    try FileManager.default.createSymbolicLink(atPath: state.path, withDestinationPath: "/data")
    try FileManager.default.createDirectory(
      at: elsewhere.appending(path: "lost+found"), withIntermediateDirectories: false)
    let outside = daemon.folder.appending(path: "outside")
    try Data("x".utf8).write(to: outside)
    try FileManager.default.createSymbolicLink(
      at: elsewhere.appending(path: "link"), withDestinationURL: outside)
    try sealAll()
    #expect(try names(in: elsewhere) == ["lost+found", "sealed-here"])
    #expect(FileManager.default.fileExists(atPath: outside.path))
  }

  @Test func `the mark belongs to the owner of the state directory`() throws {
    _ = try run()
    try stop()
    try FileManager.default.setAttributes(
      [.ownerAccountID: 65_534, .groupOwnerAccountID: 65_534], ofItemAtPath: state.path)
    try sealAll()
    let mark = try FileManager.default.attributesOfItem(atPath: state.appending(path: "sealed-here").path)
    #expect(mark[.ownerAccountID] as? Int == 65_534 && mark[.posixPermissions] as? Int == 0o600)
  }

  @Test func `an interrupted seal leaves nothing that a daemon takes into use, and can be repeated`() throws {
    _ = try run()
    try stop()
    // The keys go first.
    for key in ["store.key", "master.key"] { try FileManager.default.removeItem(at: state.appending(path: key)) }
    try FileManager.default.moveItem(at: state, to: daemon.state)
    try daemon.start(through: try daemon.onMachine(withID: "\(Self.machine)\n"))
    #expect(try daemon.ask("get device").hasPrefix("ERR "))
    try stop()
    try sealAll()
    #expect(try names(in: state) == ["sealed-here"])
  }

  @Test func `a system without an identity has nothing to delete, and one without a root folder is a fault`() throws {
    try sealAll()
    try FileManager.default.removeItem(at: root)
    let missing = try seal("--yes")
    #expect(missing.status == 7 && missing.errors.contains("No such file"), "\(missing.errors)")
  }

  @Test(arguments: [["--socket=/x"], ["--user"], ["--json"], []])
  func `it asks at a terminal, and combines with no daemon`(options: [String]) throws {
    _ = try run()
    try stop()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let yes = options.isEmpty ? [] : ["--yes"]
    let refused = try TestSupport.run([program, "--root=\(root.path)"] + options + yes + ["seal"])
    #expect(refused.status == 2, "\(refused)")
    #expect(try TestSupport.run([program, "--root=/", "status"]).status == 2)
    #expect(try TestSupport.run([program, "--root=", "--yes", "seal"]).status == 2)
    #expect(try TestSupport.run([program, "--root=\(root.path)", "--yes", "seal", "x"]).status == 2)
    #expect(try names(in: state).contains("identityd.db"))
  }

  @Test func `the question shows the files`() throws {
    _ = try run()
    try stop()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let terminal = try ClientTerminal(daemon.socket, "\(program) --root=\(root.path) seal")
    try terminal.type("n\n", after: "Go on?")
    let shown = try terminal.end()
    #expect(shown.contains(state.appending(path: "identityd.db").path) && shown.contains("nothing was changed"))
    #expect(try names(in: state).contains("identityd.db"))
  }
}
