import Foundation
import TestSupport
import Testing

/// Failures of `identityctl backup`. An existing file stays as it is, and no other file is left behind.
struct BackupFaultTests {
  private static let pieces = [
    Data((0..<45_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }), Data(repeating: 10, count: 45_000),
    Data([0, 255, 10]),
  ]
  private static let rows = pieces.map { "* data=\($0.base64EncodedString())\n" }.joined()

  private static let store = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  /// Returns a daemon that gives this answer to `backup`.
  private func daemon(_ answer: PlayedDaemon.Answer = PlayedDaemon.backup(pieces)) throws -> PlayedDaemon {
    try PlayedDaemon { $0 == "status" ? .lines("* store=ok\n* store-id=\(Self.store)\nOK\n") : answer }
  }

  @Test func `a backup file is a header line about passphrase and store, then the daemon's bytes`() throws {
    let daemon = try daemon()
    let file = daemon.folder.appending(path: "file")
    let result = try identityctl(at: daemon.socket, ["backup", file.path, "--passphrase-fd=3"])
    #expect(result.status == 0, "\(result)")
    #expect(result.output == "90003\n")
    let content = try Data(contentsOf: file)
    let end = try #require(content.firstIndex(of: 10))
    let header = String(decoding: content[..<end], as: UTF8.self)
    #expect(
      header.wholeMatch(of: /identityd-backup 2 argon2id ops=3 memory=268435456 salt=[0-9a-f]{32} store=[0-9a-f]{32}/)
        != nil)
    #expect(Data(content[(end + 1)...]) == Data(Self.pieces.joined()))
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try daemon.files() == ["file"])
    let key = try #require(daemon.requests.last?.split(separator: "=", maxSplits: 1).last)
    #expect(daemon.requests == ["status", "backup key=\(key)"])
    #expect(Data(base64Encoded: String(key))?.count == 32)
  }

  @Test func `backup to standard output writes the same bytes and nothing else`() throws {
    let daemon = try daemon()
    let file = daemon.folder.appending(path: "file")
    let words = ["backup", "-", "--passphrase-fd=3", "--json"]
    let result = try identityctl(at: daemon.socket, words, shell: "> '\(file.path)'")
    #expect(result.status == 0, "\(result)")
    let content = try Data(contentsOf: file)
    #expect(content.starts(with: Data("identityd-backup 1 ".utf8)))
    #expect(content.count == 90_003 + (content.firstIndex(of: 10) ?? 0) + 1)
  }

  @Test(
    arguments: [
      (.lines("ERR denied no\n"), 15, "no (denied)"),
      (.lines("\(rows)ERR internal broken\n"), 25, "broken (internal)"),
      (.lastLines(""), 4, "closed the connection"), (.lastLines(rows), 4, "closed the connection"),
      (.lastLines("\(rows)* data=AAA"), 4, "closed the connection"),
      (.lines("\(rows)OK 90002\n"), 4, "90003 bytes were received"),
      (.lines("\(rows)OK 90004\n"), 4, "90003 bytes were received"),
      (.lines("\(rows)OK\n"), 4, "90003 bytes were received"), (.lines("OK 0\n"), 4, "0 bytes were received"),
      (.lines("\(rows)* data=AAA\nOK 90005\n"), 4, "without data"),
      (.lines("\(rows)* size=3\nOK 90003\n"), 4, "without data"),
      (.lines("\(rows)HELLO\n"), 4, "violates the protocol"),
    ] as [(PlayedDaemon.Answer, Int32, String)])
  func `an incomplete or malformed answer does not replace an existing backup file`(
    answer: PlayedDaemon.Answer, status: Int32, said: String
  ) throws {
    let daemon = try daemon(answer)
    let file = daemon.folder.appending(path: "file")
    try Data("before".utf8).write(to: file)
    let result = try identityctl(at: daemon.socket, ["backup", file.path, "--passphrase-fd=3", "--yes"])
    #expect((result.status, result.output) == (status, ""), "\(result.errors.prefix(500))")
    #expect(result.errors.contains(said), "\(result.errors.prefix(500))")
    #expect(try Data(contentsOf: file) == Data("before".utf8))
    #expect(try daemon.files() == ["file"])
  }

  @Test func `a failed write leaves an existing backup file as it was`() throws {
    let daemon = try daemon()
    let file = daemon.folder.appending(path: "file")
    try Data("before".utf8).write(to: file)
    // Uses the release build, because a sanitizer maps files larger than the limit below.
    let program = DaemonUnderTest.released.appending(path: "identityctl").path
    // `ulimit -f 50` limits files to 50 blocks of 1,024 bytes.
    let result = try run(
      [
        "bash", "-c", "ulimit -f 50; echo secret | \"$0\" backup \"$1\" --passphrase-fd=0 --yes", program, file.path,
      ], environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect((result.status, result.output) == (7, ""), "\(result)")
    #expect(result.errors.contains("File too large"))
    #expect(try Data(contentsOf: file) == Data("before".utf8))
    #expect(try daemon.files() == ["file"])
    let full = try identityctl(at: daemon.socket, ["backup", "-", "--passphrase-fd=3"], shell: "> /dev/full")
    #expect(full.status == 5, "\(full)")
    #expect(full.errors.contains("standard output could not be written"))
    let closed = try identityctl(at: daemon.socket, ["backup", "-", "--passphrase-fd=3"], shell: ">&-")
    #expect(closed.status == 5, "\(closed)")
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
  func `a signal during a backup leaves no temporary file and ends the client as usual`(signal: Int32) throws {
    let daemon = try daemon(.lines(Self.rows))
    let file = daemon.folder.appending(path: "file")
    try Data("before".utf8).write(to: file)
    let process = Process()
    process.executableURL = DaemonUnderTest.binaries.appending(path: "identityctl")
    process.arguments = ["backup", file.path, "--passphrase-fd=0", "--yes", "--socket=\(daemon.socket)"]
    let input = Pipe()
    process.standardInput = input
    try process.runUnmasked()
    try input.fileHandleForWriting.write(contentsOf: Data("secret\n".utf8))
    try daemon.waitForRequest("backup")
    let deadline = Date(timeIntervalSinceNow: patience)
    while try daemon.files().count < 2, Date() < deadline { usleep(5_000) }
    #expect(try daemon.files().count == 2)
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    #expect((process.terminationReason, process.terminationStatus) == (.uncaughtSignal, signal))
    #expect(try Data(contentsOf: file) == Data("before".utf8))
    #expect(try daemon.files() == ["file"])
  }

  @Test(arguments: [
    ("/dev/null", "not a regular file"), ("/dev/stdout", "symbolic link"), ("FOLDER", "directory"),
    ("FOLDER/", "directory"), ("FOLDER/socket", "not a regular file"), ("FOLDER/device", "symbolic link"),
    ("FOLDER/nowhere", "symbolic link"), ("/nonexistent/file", "No such file"), ("", "No such file"),
    ("FOLDER/missing/", "directory"),
  ])
  func `an unusable backup path is refused before the daemon is asked`(path: String, said: String) throws {
    let daemon = try daemon()
    let folder = daemon.folder.path
    try FileManager.default.createSymbolicLink(atPath: "\(folder)/device", withDestinationPath: "/dev/null")
    try FileManager.default.createSymbolicLink(atPath: "\(folder)/nowhere", withDestinationPath: "/nonexistent/file")
    let words = ["backup", path.replacing("FOLDER", with: folder), "--passphrase-fd=3"]
    let result = try identityctl(at: daemon.socket, words)
    #expect((result.status, result.output) == (7, ""), "\(result)")
    #expect(result.errors.contains(said), "\(result.errors)")
    #expect(daemon.requests.isEmpty)
    #expect(try daemon.files() == ["device", "nowhere"])
  }

  @Test func `a symbolic link as backup path is refused, and its target stays unchanged`() throws {
    let daemon = try daemon()
    let link = daemon.folder.appending(path: "link").path
    let file = daemon.folder.appending(path: "file")
    try Data("before".utf8).write(to: file)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "file")
    let result = try identityctl(at: daemon.socket, ["backup", link, "--passphrase-fd=3"])
    #expect(result.status == 7)
    #expect(result.errors == "identityctl: \(link) is a symbolic link; name its target\n")
    #expect(try Data(contentsOf: file) == Data("before".utf8))
    #expect(try daemon.files() == ["file", "link"])
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `a folder without write permission is reported before the daemon is asked`() throws {
    let daemon = try daemon()
    let words = ["backup", daemon.folder.appending(path: "file").path, "--passphrase-fd=3"]
    let result = try identityctl(at: daemon.socket, words, asUser: 65_534)
    #expect(result.status == 7, "\(result)")
    #expect(result.errors.contains("Permission denied"))
    #expect(daemon.requests.isEmpty)
  }
}
