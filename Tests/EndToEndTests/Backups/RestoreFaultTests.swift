import Foundation
import TestSupport
import Testing

/// `identityctl restore` against a fake daemon, and the errors of `restore` and `backup` about a passphrase.
struct RestoreFaultTests {
  private static let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

  private func daemon(_ answers: [String: String] = [:]) throws -> PlayedDaemon {
    try PlayedDaemon { request in
      for (beginning, answer) in answers where request.hasPrefix(beginning) { return .lines(answer) }
      return .lines("OK\n")
    }
  }

  private func restore(_ daemon: PlayedDaemon, _ content: Data, _ options: [String] = []) throws -> (
    status: Int32, output: String, errors: String
  ) {
    let file = daemon.folder.appending(path: "file")
    try content.write(to: file)
    return try identityctl(
      at: daemon.socket, passphrase: QuickBackup.passphrase,
      ["restore", file.path, "--passphrase-fd=3", "--yes"] + options)
  }

  @Test(arguments: [0, 1, 44_999, 45_000, 45_001, 90_000, 100_000])
  func `restore uploads the file in pieces`(length: Int) throws {
    let daemon = try daemon(["restore end": "* device 557e5958-d390-4cbf-b928-2a2b19a1399a\nOK 1\n"])
    let result = try restore(daemon, Data(QuickBackup.header.utf8) + Self.content.prefix(length), ["--format=plain"])
    #expect((result.status, result.output) == (0, "device  557e5958d3904cbfb9282a2b19a1399a\n"), "\(result)")
    #expect(daemon.requests.first == "restore begin key=\(QuickBackup.key)")
    #expect(daemon.requests.last == "restore end")
    let pieces = try daemon.requests.dropFirst().dropLast().map { request in
      try #require(request.hasPrefix("restore add data=") ? Data(base64Encoded: String(request.dropFirst(17))) : nil)
    }
    #expect(pieces.reduce(Data(), +) == Self.content.prefix(length))
    #expect(pieces.count == (length + 44_999) / 45_000)
    #expect(daemon.requests.allSatisfy { $0.utf8.count < 65_536 })
  }

  @Test func `restore from a pipe uploads full pieces, however small the reads`() throws {
    let daemon = try daemon()
    let file = daemon.folder.appending(path: "file")
    try (Data("secret\n\(QuickBackup.header)".utf8) + Self.content).write(to: file)
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    // Standard input has the passphrase first, then the backup.
    let result = try run(
      ["sh", "-c", "dd if='\(file.path)' bs=1000 status=none | \(program) restore - --passphrase-fd=0 --yes"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 0, "\(result)")
    let sizes = daemon.requests.dropFirst().dropLast().map { Data(base64Encoded: String($0.dropFirst(17)))?.count ?? 0 }
    #expect(sizes == [45_000, 45_000, 10_000])
  }

  @Test(arguments: [
    (["--dry-run"], "restore end dry-run=yes"), (["--adopt-device"], "restore end adopt-device=yes"),
    (["--adopt-device", "--dry-run"], "restore end dry-run=yes adopt-device=yes"),
  ])
  func `options of restore become attributes of the request`(options: [String], last: String) throws {
    let daemon = try daemon(["restore end": "* device x\nOK 1\n"])
    let result = try restore(daemon, Data(QuickBackup.header.utf8) + Self.content, options + ["--json"])
    #expect(daemon.requests.last == last)
    #expect(result.output == "[{\"record\":\"device\",\"outcome\":\"x\"}]\n")
  }

  @Test(arguments: [("restore begin", 1), ("restore add", 2), ("restore end", 5)])
  func `a refusal ends the restore with the exit status of its code`(request: String, count: Int) throws {
    let daemon = try daemon([request: "ERR conflict another passphrase\n"])
    let result = try restore(daemon, Data(QuickBackup.header.utf8) + Self.content)
    #expect((result.status, result.output) == (18, ""))
    #expect(result.errors == "identityctl: another passphrase (conflict)\n")
    #expect(daemon.requests.count == count)
    let document = try restore(daemon, Data(QuickBackup.header.utf8) + Self.content, ["--json"])
    #expect((document.status, document.errors) == (18, ""))
    #expect(document.output == "{\"error\":{\"code\":\"conflict\",\"message\":\"another passphrase\"}}\n")
  }

  @Test(arguments: [
    ("", "is not a backup of identityd"), ("\n", "is not a backup of identityd"),
    ("identityd-backup 1 argon2id", "is not a backup of identityd"),
    (String(QuickBackup.header.dropLast()), "is not a backup of identityd"),
    (" " + QuickBackup.header, "is not a backup of identityd"),
    (String(repeating: "x", count: 1_000), "is not a backup of identityd"),
    (QuickBackup.header.replacing(" 1 ", with: " 3 "), "was made by a later identityd"),
    ("identityd-backup 3 " + String(repeating: "x", count: 1_000), "was made by a later identityd"),
    (QuickBackup.header.replacing("ops=1", with: "ops=11"), "demands too costly a key derivation"),
    (QuickBackup.header.replacing("8192", with: "1073741825"), "demands too costly a key derivation"),
  ])
  func `an unreadable backup file is reported before the daemon is asked`(content: String, said: String) throws {
    let daemon = try daemon()
    let result = try restore(daemon, Data(content.utf8))
    #expect((result.status, result.output) == (7, ""), "\(result)")
    #expect(result.errors.contains("/file \(said)"), "\(result)")
    #expect(daemon.requests.isEmpty)
  }

  @Test func `a missing file or a directory is reported`() throws {
    let daemon = try daemon()
    for (path, said) in [("/nonexistent/file", "No such file"), ("/", "Is a directory")] {
      let result = try identityctl(at: daemon.socket, ["restore", path, "--passphrase-fd=3", "--yes"])
      #expect((result.status, result.output) == (7, ""))
      #expect(result.errors.contains(said), "\(result)")
    }
    #expect(daemon.requests.isEmpty)
  }

  @Test(
    arguments: [
      (["backup"], "one FILE"), (["backup", "a", "b"], "one FILE"), (["restore"], "one FILE"),
      (["Restore", "a", "dry-run=yes"], "one FILE"), (["backup", "key=AAAA"], "looks like an attribute"),
      (["restore", "begin", "key=AAAA"], "one FILE"),
      (["status", "--dry-run"], "'--dry-run' is only for 'seal', "),
      (["backup", "a", "--adopt-device"], "'--adopt-device' is only for 'restore'"),
      (
        ["status", "--passphrase-fd=3"],
        "'--passphrase-fd' is only for 'backup', 'restore', 'account invite', 'account join' and 'fleet setup'"
      ),
      (["backup", "a", "--passphrase-fd="], "number of an open file descriptor"),
      (["backup", "a", "--passphrase-fd=-1"], "number of an open file descriptor"),
      (["backup", "a", "--passphrase-fd=3x"], "number of an open file descriptor"),
      (["backup", "a", "--passphrase-fd=99999999999"], "number of an open file descriptor"),
      (["restore", "a", "--format=round"], "--format"),
    ] as [([String], String)])
  func `a wrong command line is reported before anything is done`(words: [String], said: String) throws {
    let daemon = try daemon()
    let result = try identityctl(at: daemon.socket, words)
    #expect((result.status, result.output) == (2, ""), "\(result)")
    #expect(result.errors.contains(said), "\(result)")
    #expect(daemon.requests.isEmpty)
  }

  @Test(
    arguments: [
      ("", 3, "is empty"), (String(repeating: "x", count: 1_025), 3, "longer than 1024 bytes"),
      ("secret", 9, "descriptor 9: Bad file descriptor"),
    ] as [(String, Int, String)], [["backup", "FOLDER/new"], ["restore", "FOLDER/file", "--yes"]])
  func `an invalid passphrase is reported and nothing is done`(passphrase: (String, Int, String), words: [String])
    throws
  {
    let daemon = try daemon()
    try Data(QuickBackup.header.utf8).write(to: daemon.folder.appending(path: "file"))
    let result = try identityctl(
      at: daemon.socket, passphrase: passphrase.0,
      words.map { $0.replacing("FOLDER", with: daemon.folder.path) } + ["--passphrase-fd=\(passphrase.1)"])
    #expect((result.status, result.output) == (7, ""), "\(result)")
    #expect(result.errors.contains(passphrase.2), "\(result)")
    #expect(daemon.requests.isEmpty)
    #expect(try daemon.files() == ["file"])
  }

  @Test(arguments: [["backup", "/nonexistent/new"], ["restore", "/etc/hostname", "--yes"]])
  func `without a terminal and a descriptor no passphrase can be asked for`(words: [String]) throws {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let result = try run(["setsid", "--wait", program] + words, environment: ["IDENTITYD_SOCKET": "/nonexistent"])
    #expect(result.status == 2, "\(result)")
    #expect(result.errors.contains("--passphrase-fd=N"))
  }
}
