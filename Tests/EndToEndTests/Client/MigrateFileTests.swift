import Foundation
import TestSupport
import Testing

/// `identityctl migrate device --file=PATH`, which takes the identifier from a file of an earlier system.
@Suite(.tags(.plain)) struct MigrateFileTests {
  private static let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  /// Runs the client with a file `old` in the daemon's folder. `FILE` in the words is replaced by the path of
  /// this file.
  private func migrate(_ daemon: DaemonUnderTest, _ content: Data, _ words: [String], input: String? = nil) throws -> (
    status: Int32, output: String, errors: String
  ) {
    let file = daemon.folder.appending(path: "old")
    try content.write(to: file)
    return try run(
      [program] + words.map { $0.replacing("FILE", with: file.path) },
      environment: ["IDENTITYD_SOCKET": daemon.socket], input: input)
  }

  @Test(arguments: [
    (" \(uuid)\r\n", ["migrate", "device", "--file=FILE"]),
    ("# old\nname=x\nID=\"\(uuid)\"\n", ["migrate", "device", "--file=FILE", "--field=ID"]),
    (
      "Name: x\nDevice: 557E5958D3904CBFB9282A2B19A1399A\n",
      ["migrate", "device", "--field", "Device", "--file", "FILE"]
    ),
    ("\(uuid)\n", ["Migrate", "Installation", "--file=FILE"]),
  ])
  func `migrate --file is a dry run unless commit=yes is given`(content: String, words: [String]) throws {
    let daemon = try DaemonUnderTest().start()
    let level = words[1].lowercased()
    let dry = try migrate(daemon, Data(content.utf8), ["--json"] + words)
    #expect(dry.status == 0, "\(dry)")
    #expect(dry.output.contains("\"uuid\":\"\(Self.uuid)\""))
    #expect(dry.output.contains("\"committed\":false"))
    let done = try migrate(daemon, Data(content.utf8), words + ["commit=yes"])
    #expect((done.status, done.output) == (0, Self.uuid + "\n"))
    #expect(try daemon.uuid("get \(level)") == Self.uuid)
  }

  @Test func `migrate --file=- reads standard input, and a refusal has its usual status`() throws {
    let daemon = try DaemonUnderTest().start()
    let words = ["migrate", "device", "--file=-", "--field=ID", "commit=yes"]
    #expect(try migrate(daemon, Data(), words, input: "ID: \(Self.uuid)\n").status == 0)
    let other = "ID: 00000000-0000-4000-8000-000000000001\n"
    let refused = try migrate(daemon, Data(), words, input: other)
    #expect(refused.status == 18, "\(refused)")
    guard isRoot else { return }
    #expect(try migrate(daemon, Data(), words + ["force=yes"], input: other).status == 0)
  }

  @Test(
    arguments: [
      ("ID=\(uuid)\n", ["--file=FILE"], 7, ["/old\"", "\"ID\""]), ("a=b\n", ["--file=FILE"], 7, ["/old\""]),
      ("ID=\(uuid)\n", ["--file=FILE", "--field=id"], 7, ["/old\"", "\"id\""]),
      ("ID=\(uuid)\nID=\(uuid)\n", ["--file=FILE", "--field=ID"], 7, ["/old\"", "2 fields \"ID\""]),
      ("ID=secret\n", ["--file=FILE", "--field=ID"], 14, ["/old\"", "\"ID\""]),
      ("secret\n", ["--file=FILE"], 14, ["/old\""]), ("", ["--file=/dev/null"], 14, ["/dev/null"]),
      (String(repeating: "x", count: 1 << 20 + 1), ["--file=FILE"], 7, ["longer than 1048576 bytes"]),
      ("", ["--file=/nonexistent/file"], 7, ["/nonexistent/file"]), ("", ["--file=/etc"], 7, ["regular file"]),
      ("\(uuid)\n", ["--file=FILE", "\(uuid)"], 2, ["--file"]), ("", ["\(uuid)", "--field=ID"], 2, ["--file"]),
    ] as [(String, [String], Int32, [String])])
  func `an ambiguous or invalid file is refused, and its values are not printed`(
    content: String, words: [String], status: Int32, said: [String]
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try migrate(daemon, Data(content.utf8), ["migrate", "device"] + words + ["commit=yes"])
    #expect((result.status, result.output) == (status, ""))
    for text in said { #expect(result.errors.contains(text), "\(result.errors)") }
    #expect(!result.errors.contains("secret"))
    #expect(try daemon.ask("history device") == "OK 0")
  }

  @Test(arguments: [["get", "device"], ["renew", "device"], ["migrate"], ["migrate", "vendor"], ["monitor"]])
  func `--file is accepted only with the commands that read or write one`(words: [String]) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try migrate(daemon, Data(Self.uuid.utf8), words + ["--file=FILE"])
    #expect(result.status == 2, "\(result)")
    let fleet = "'account invite', 'account join', 'fleet setup' and 'fleet keygen'"
    let commands = "'migrate device', 'migrate installation', \(fleet)"
    #expect(result.errors.contains("'--file' is only for \(commands)"), "\(result)")
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `migrate --file reads the file with the permissions of the caller`() throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "secret")
    try Data(Self.uuid.utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    let result = try identityctl(daemon, "migrate", "device", "--file=\(file.path)", asUser: 65_534)
    #expect(result.status == 7)
    #expect(result.errors.contains("Permission denied"))
  }
}
