import Foundation
import TestSupport
import Testing

/// `identityctl item …`. A secret that is read from a file comes back byte for byte.
struct ItemClientTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  /// Every byte value, and a line feed at the end, which a shell would cut off.
  private static let bytes = Data((0...255).map { UInt8($0) } + [10])
  private static let name = ["service=s", "account=a"]

  /// Runs the client with a file of this content as standard input. `FILE` in the words is replaced by the path of
  /// this file.
  private func client(
    _ socket: String, in folder: URL, _ words: [String], content: Data = bytes, shell: String = ""
  ) throws -> (status: Int32, output: String, errors: String) {
    let file = folder.appending(path: "secret")
    try content.write(to: file)
    let given = words.map { $0.replacing("FILE", with: file.path) }
    return try run(
      ["sh", "-c", "exec \"$@\" < '\(file.path)' \(shell)", "sh", Self.program] + given,
      environment: ["IDENTITYD_SOCKET": socket])
  }

  private func client(_ daemon: DaemonUnderTest, _ words: [String], content: Data = bytes) throws -> (
    status: Int32, output: String, errors: String
  ) { try client(daemon.socket, in: daemon.folder, words, content: content) }

  /// Returns the output of `item read --raw`.
  private func raw(_ daemon: DaemonUnderTest) throws -> Data {
    let file = daemon.folder.appending(path: "raw")
    let words = ["item", "read"] + Self.name + ["--raw"]
    let result = try client(daemon.socket, in: daemon.folder, words, shell: "> '\(file.path)'")
    #expect((result.status, result.errors) == (0, ""))
    return try Data(contentsOf: file)
  }

  // MARK: - With the daemon

  @Test(arguments: ["FILE", "-", "/dev/stdin"], ["add", "Put"])
  func `a secret from a file or from standard input is read back unchanged`(path: String, verb: String) throws {
    let daemon = try DaemonUnderTest().start()
    let stored = try client(daemon, ["item", verb] + Self.name + ["label=my key", "--data-file=\(path)"])
    #expect(stored.status == 0, "\(stored)")
    #expect(try raw(daemon) == Self.bytes)
    let shown = try client(daemon, ["item", "read"] + Self.name)
    #expect(shown.output.contains("data=\(Self.bytes.base64EncodedString())"), "\(shown)")
    #expect(shown.output.contains("label=my key"))
    let found = try client(daemon, ["item", "find", "service=s"])
    #expect(found.status == 0)
    #expect(!found.output.contains(Self.bytes.base64EncodedString()))
  }

  @Test func `item update replaces the secret only if --data-file is given`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try client(daemon, ["item", "add"] + Self.name + ["--data-file=FILE"]).status == 0)
    #expect(try client(daemon, ["item", "add"] + Self.name + ["--data-file=FILE"]).status == 17)
    #expect(try client(daemon, ["item", "update"] + Self.name + ["label=new"]).status == 0)
    #expect(try raw(daemon) == Self.bytes)
    let other = Data("other\n".utf8)
    #expect(try client(daemon, ["item", "update"] + Self.name + ["--data-file=FILE"], content: other).status == 0)
    #expect(try raw(daemon) == other)
    let put = try client(daemon, ["item", "put"] + Self.name + ["--data-file=-"])
    #expect((put.status, put.output) == (0, "replaced\n"))
    #expect(try raw(daemon) == Self.bytes)
  }

  @Test func `a secret of the maximum length can be stored and read back`() throws {
    let daemon = try DaemonUnderTest().start()
    let longest = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    #expect(try client(daemon, ["item", "add"] + Self.name + ["--data-file=FILE"], content: longest).status == 0)
    #expect(try raw(daemon) == longest)
  }

  @Test(arguments: [["--raw"], ["--raw", "--json"], ["--raw", "--quiet"]])
  func `item read --raw of a missing item writes nothing to standard output`(options: [String]) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try client(daemon, ["item", "read"] + Self.name + options)
    #expect((result.status, result.output) == (16, ""))
    #expect(result.errors.contains("(not-found)"))
  }

  @Test func `a command that fails does not erase the secret that it should have sent`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try client(daemon, ["item", "put"] + Self.name + ["--data-file=-"]).status == 0)
    let words = "item put service=s account=a --data-file=-"
    func pipe(_ options: String = "") throws -> (status: Int32, output: String, errors: String) {
      try run(
        ["sh", "-c", "false | '\(Self.program)' \(words) \(options)"], environment: ["IDENTITYD_SOCKET": daemon.socket])
    }
    let refused = try pipe()
    #expect((refused.status, refused.output) == (7, ""))
    #expect(refused.errors.contains("standard input is empty, and nothing was sent"), "\(refused)")
    #expect(try raw(daemon) == Self.bytes)
    #expect(try pipe("--allow-empty").status == 0)
    #expect(try raw(daemon).isEmpty)
  }

  // MARK: - With a fake daemon

  private func played(_ answer: String = "OK\n") throws -> PlayedDaemon { try PlayedDaemon { _ in .lines(answer) } }

  private func client(_ daemon: PlayedDaemon, _ words: [String], content: Data = bytes) throws -> (
    status: Int32, output: String, errors: String
  ) { try client(daemon.socket, in: daemon.folder, words, content: content) }

  @Test(arguments: [
    (["item", "add", "service=s", "--data-file=FILE"], "item add service=s data=YQo="),
    (["--data-file", "-", "Item", "PUT", "label=a b"], "Item PUT label=\"a b\" data=YQo="),
    (["item", "update", "service=s"], "item update service=s"),
    (
      ["item", "update", "service=s", "attr.data=1", "--data-file=FILE"], "item update service=s attr.data=1 data=YQo="
    ),
    (["item", "add", "service=s", "data=AAAA"], "item add service=s data=AAAA"),
    (["item", "put", "service=s", "DATA=AAAA"], "item put service=s DATA=AAAA"),
  ])
  func `the secret is sent as the last attribute, its line end included`(words: [String], request: String) throws {
    let daemon = try played()
    #expect(try client(daemon, words, content: Data("a\n".utf8)).status == 0)
    #expect(daemon.requests == [request])
  }

  @Test(arguments: [(0, "\"\""), (1, "eA=="), (65_536, nil)] as [(Int, String?)])
  func `a secret of any length up to the maximum is sent`(length: Int, text: String?) throws {
    let daemon = try played()
    let content = Data(repeating: UInt8(ascii: "x"), count: length)
    let options = length == 0 ? ["--allow-empty"] : []
    #expect(try client(daemon, ["item", "add", "--data-file=-"] + options, content: content).status == 0)
    #expect(daemon.requests == ["item add data=\(text ?? content.base64EncodedString())"])
  }

  @Test(
    arguments: [
      (["item", "add", "service=s"], 2, "--data-file=-"), (["Item", "Put", "service=s"], 2, "--data-file=-"),
      (["item", "add", "data=AAAA", "--data-file=FILE"], 2, "'data=' cannot be combined"),
      (["item", "update", "Data=AAAA", "--data-file=-"], 2, "'data=' cannot be combined"),
      (
        ["item", "read", "--data-file=FILE"], 2,
        "'item put', 'item update', 'credential put', 'key protect' and 'key recover'"
      ),
      (["item", "--data-file=FILE"], 2, "'--data-file' is only for"),
      (["status", "--data-file=FILE"], 2, "is only for"),
      (["item", "find", "--raw"], 2, "'--raw' is only for 'item read'"), (["get", "device", "--raw"], 2, "'--raw'"),
      (["item", "add", "--data-file=FILE", "--raw"], 2, "'--raw'"),
      (["item", "add", "--data-file=/nonexistent/file"], 7, "/nonexistent/file: No such file"),
      (["item", "add", "--data-file=/etc"], 7, "Is a directory"), (["item", "add", "--data-file="], 7, "No such file"),
      (["item", "add", "--data-file=/dev/zero"], 7, "/dev/zero is longer than 65536 bytes"),
    ] as [([String], Int32, String)])
  func `wrong options and unreadable files are reported before the daemon is asked`(
    words: [String], status: Int32, said: String
  ) throws {
    let daemon = try played()
    let result = try client(daemon, words)
    #expect((result.status, result.output) == (status, ""), "\(result)")
    #expect(result.errors.contains(said), "\(result)")
    #expect(daemon.requests.isEmpty)
  }

  @Test(
    arguments: [
      (["item", "add", "--data-file=FILE"], 7, "--allow-empty"),
      (["item", "put", "--data-file=-"], 7, "--allow-empty"),
      (["item", "update", "--data-file=/dev/null"], 7, "/dev/null is empty"),
      (["item", "put", "data="], 2, "--allow-empty"), (["item", "update", "Data="], 2, "nothing was sent"),
      (["token", "put", "fcm", "--token-file=-"], 7, "never empty"),
      (["token", "invalidate", "fcm", "--token-file=FILE"], 7, "'token delete'"),
      (
        ["item", "read", "--allow-empty"], 2,
        "'--allow-empty' is only for 'item add', 'item put', 'item update' and 'credential put'"
      ),
    ] as [([String], Int32, String)])
  func `an empty value is refused before the daemon is asked`(words: [String], status: Int32, said: String) throws {
    let daemon = try played()
    let result = try client(daemon, words, content: Data())
    #expect((result.status, result.output) == (status, ""), "\(result)")
    #expect(result.errors.contains(said), "\(result)")
    #expect(daemon.requests.isEmpty)
  }

  @Test(arguments: ["FILE", "-"])
  func `a secret that is too long is refused, from a file and from standard input`(path: String) throws {
    let daemon = try played()
    let words = ["item", "add", "--data-file=\(path)"]
    let result = try client(daemon, words, content: Data(repeating: 0, count: 65_537))
    #expect((result.status, result.output) == (7, ""))
    #expect(result.errors.contains("is longer than 65536 bytes"), "\(result)")
    #expect(daemon.requests.isEmpty)
  }

  @Test(arguments: [
    ("OK service=s", 4), ("OK data=AAA service=s", 4), ("OK data=\"\" service=s", 0), ("OK data=eAo=", 0),
  ])
  func `item read --raw writes only the bytes of a valid secret`(answer: String, status: Int32) throws {
    let daemon = try played(answer + "\n")
    let result = try client(daemon, ["item", "read", "--raw"])
    #expect(result.status == status, "\(result)")
    #expect(result.output == (answer.contains("eAo=") ? "x\n" : ""))
    let full = try client(daemon.socket, in: daemon.folder, ["item", "read", "--raw"], shell: "> /dev/full")
    if answer.contains("eAo=") { #expect(full.status == 5) }
  }

  @Test func `closed standard output is an error, and the answer goes nowhere else`() throws {
    let daemon = try played("OK data=eAo=\n")
    for option in ["--raw", "--json"] {
      let result = try client(daemon.socket, in: daemon.folder, ["item", "read", option], shell: ">&-")
      #expect(result.status == 5, "\(result)")
    }
    // The answer did not go to the daemon either, as it would if the socket took the number of standard output.
    #expect(daemon.requests == ["item read", "item read"])
  }

  @Test(
    .enabled(if: isRoot, "acting as another user needs root"),
    arguments: [["add", "--data-file=-", "--allow-empty"], ["read"]])
  func `other users cannot inspect a client that holds a secret`(words: [String]) throws {
    let daemon = try PlayedDaemon { _ in .lines("") }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      [
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Self.program, "--socket=\(daemon.socket)",
        "item",
      ]
      + words
    process.standardInput = FileHandle.nullDevice
    try process.runUnmasked()
    try daemon.waitForRequest("item")
    // The /proc files of a process that is not dumpable belong to root (PR_SET_DUMPABLE, proc(5)).
    let owner = try FileManager.default.attributesOfItem(atPath: "/proc/\(process.processIdentifier)/mem")
    #expect(owner[.ownerAccountID] as? Int == 0)
    process.terminate()
    process.waitUntilExit()
  }
}
