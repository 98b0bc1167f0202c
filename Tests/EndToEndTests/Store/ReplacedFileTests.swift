import Foundation
import TestSupport
import Testing

/// Files that exist before a command writes to them.
@Suite(.enabled(if: isRoot, "backups are for admins")) struct ReplacedFileTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  /// Returns a daemon that has an identifier.
  private func filled() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    return daemon
  }

  private func backup(
    _ daemon: DaemonUnderTest, to file: URL, _ options: String..., passphrase: String = QuickBackup.passphrase
  ) throws -> (status: Int32, output: String, errors: String) {
    try identityctl(
      at: daemon.socket, passphrase: passphrase, ["backup", file.path, "--passphrase-fd=3"] + options)
  }

  @Test func `a nightly backup replaces that of the same store without a question`() throws {
    let daemon = try filled()
    let file = daemon.folder.appending(path: "file")
    var contents: [Data] = []
    for change in ["ping", "renew device", "item put service=s account=a data=eA=="] {
      #expect(try daemon.ask(change).hasPrefix("OK"))
      let result = try backup(daemon, to: file)
      #expect(result.status == 0 && result.errors == "", "\(result)")
      contents.append(try Data(contentsOf: file))
    }
    #expect(Set(contents).count == 3)
    // A restart and another passphrase make no other store.
    daemon.end()
    try daemon.start()
    #expect(try backup(daemon, to: file, passphrase: "another one").status == 0)
    let restored = try identityctl(
      at: daemon.socket, passphrase: "another one", ["restore", file.path, "--passphrase-fd=3", "--dry-run"])
    #expect(restored.status == 0 && restored.output.contains("device  kept"), "\(restored)")
  }

  @Test func `without a terminal a backup of another store and another file need --yes`() throws {
    let (daemon, other) = (try filled(), try filled())
    let file = daemon.folder.appending(path: "file")
    for (content, reason) in [
      (nil, "is a backup of another store"), (Data("notes\n".utf8), "is not a backup of identityd"),
      (Data("identityd-backup 9 x\n".utf8), "was made by a later identityd"),
    ] as [(Data?, String)] {
      if let content { try content.write(to: file) } else { #expect(try backup(other, to: file, "--yes").status == 0) }
      let before = try Data(contentsOf: file)
      let refused = try backup(daemon, to: file)
      #expect(refused.status == 2 && refused.output == "", "\(refused)")
      #expect(refused.errors.contains("\(file.path) exists and \(reason)"), "\(refused)")
      #expect(refused.errors.contains("--yes"), "\(refused)")
      #expect(try Data(contentsOf: file) == before)
      // The advice leads to a backup.
      #expect(try backup(daemon, to: file, "--yes").status == 0)
      #expect(try backup(daemon, to: file).status == 0)
    }
  }

  @Test(arguments: ["n\n", "y\n"]) func `on a terminal the client names the file and asks`(answer: String) throws {
    let daemon = try filled()
    let file = daemon.folder.appending(path: "file")
    try Data("notes\n".utf8).write(to: file)
    let terminal = try ClientTerminal(
      daemon.socket, "\(Self.program) backup \(file.path) --passphrase-fd=3 3< <(echo secret)")
    try terminal.type(answer, after: "Go on? [y/N] ")
    let shown = try terminal.end()
    #expect(shown.contains("\(file.path) is not a backup of identityd"), "\(shown)")
    #expect(shown.contains("status \(answer == "y\n" ? 0 : 1)"), "\(shown)")
    #expect(try Data(contentsOf: file).starts(with: Data("notes".utf8)) == (answer == "n\n"))
  }

  @Test func `an empty file loses nothing, and neither does a backup in the earlier format that opens`() throws {
    let daemon = try filled()
    let file = daemon.folder.appending(path: "file")
    try Data().write(to: file)
    #expect(try backup(daemon, to: file).status == 0)
    // The first release names no store in the first line.
    let earlier = try Data(QuickBackup.header.utf8) + daemon.backup(key: QuickBackup.key)
    try earlier.write(to: file)
    let closed = try backup(daemon, to: file, passphrase: "wrong horse")
    #expect(closed.status == 2 && closed.errors.contains("is a backup that does not name its store"), "\(closed)")
    #expect(try Data(contentsOf: file) == earlier)
    #expect(try backup(daemon, to: file).status == 0)
    #expect(try Data(contentsOf: file).starts(with: Data("identityd-backup 2 ".utf8)))
  }

  @Test func `a dry run of a backup tells what would happen to the file, and writes nothing`() throws {
    let daemon = try filled()
    let file = daemon.folder.appending(path: "file")
    func dry() throws -> String {
      let result = try run([Self.program, "--socket=\(daemon.socket)", "--json", "backup", file.path, "--dry-run"])
      #expect(result.status == 0 && result.errors == "", "\(result)")
      #expect(try JSONSchema.faults(in: [("backup", result.output)]) == "", "\(result)")
      return result.output
    }
    #expect(try dry() == "{\"outcome\":\"created\"}\n")
    #expect(!FileManager.default.fileExists(atPath: file.path))
    try Data("notes\n".utf8).write(to: file)
    #expect(try dry() == "{\"outcome\":\"replaced\",\"reason\":\"is not a backup of identityd\"}\n")
    #expect(try Data(contentsOf: file) == Data("notes\n".utf8))
    #expect(try backup(daemon, to: file, "--yes").status == 0)
    #expect(try dry() == "{\"outcome\":\"replaced\"}\n")
  }

  @Test func `an invitation replaces another file only with --yes`() throws {
    let folder = try TemporaryFolder()
    let words = ["account", "invite", "--file=\(folder["file"])", "--no-passphrase", "--socket=\(folder["none"])"]
    try folder.write("file", "notes\n")
    let refused = try run([Self.program] + words)
    #expect(refused.status == 2 && refused.errors.contains("is not an invitation"), "\(refused)")
    // Nobody listens to the socket: with consent, the client gets as far as that.
    #expect(try run([Self.program, "--yes"] + words).status == 3)
    try folder.write("file", "identity-fleet-invitation 1\neA==\n")
    #expect(try run([Self.program] + words).status == 3)
  }
}
