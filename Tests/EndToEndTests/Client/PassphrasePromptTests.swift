import Foundation
import TestSupport
import Testing

/// The passphrase prompt, on a terminal that script(1) creates.
struct PassphrasePromptTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  private static let header = "identityd-backup 1 argon2id ops=1 memory=8192 salt=000102030405060708090a0b0c0d0e0f\n"

  private func daemon() throws -> PlayedDaemon {
    let daemon = try PlayedDaemon { request in
      request.hasPrefix("backup") ? PlayedDaemon.backup([Data("content".utf8)]) : .lines("OK\n")
    }
    try Data(Self.header.utf8).write(to: daemon.folder.appending(path: "old"))
    return daemon
  }

  @Test func `a new passphrase is asked for twice and never shown`() throws {
    let daemon = try daemon()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) backup \(daemon.folder.path)/new")
    try terminal.type("hunter2 is no good\n", after: "Passphrase for the backup: ")
    try terminal.type("hunter2 is no good\n", after: "Once more: ")
    let shown = try terminal.end()
    #expect(shown.contains("\r\nPassphrase for the backup: \r\nOnce more: \r\n7\r\n"), "\(shown)")
    #expect(!shown.contains("hunter"))
    #expect(shown.contains(" echo "), "\(shown)")
    #expect(shown.contains("status 0"))
    #expect(try daemon.files() == ["new", "old"])
  }

  @Test func `two different passphrases make no backup`() throws {
    let daemon = try daemon()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) backup \(daemon.folder.path)/new")
    try terminal.type("hunter2\n", after: "Passphrase for the backup: ")
    try terminal.type("hunter3\n", after: "Once more: ")
    let shown = try terminal.end()
    #expect(shown.contains("identityctl: the two passphrases differ"))
    #expect(!shown.contains("hunter"))
    #expect(shown.contains("status 7"))
    #expect(try daemon.files() == ["old"])
    #expect(daemon.requests == ["status"])
  }

  @Test func `restore asks for the passphrase once, even if input and output are redirected`() throws {
    let daemon = try daemon()
    let old = "\(daemon.folder.path)/old"
    let terminal = try ClientTerminal(
      daemon.socket, "\(Self.program) restore --yes - < \(old) > /dev/null 2> /dev/null")
    try terminal.type("correct horse battery staple\n", after: "Passphrase of the backup: ")
    let shown = try terminal.end()
    #expect(shown.contains("status 0"), "\(shown)")
    #expect(!shown.contains("horse"))
    #expect(
      daemon.requests == ["restore begin key=0X6mNBypPaYHnqL2TcSqMd0ar5yqZ/tCrEr9BxRwbyY=", "restore end"])
  }

  @Test(arguments: [
    ("\n", "is empty"), ("\u{4}", "is empty"), (String(repeating: "x", count: 1_100) + "\n", "longer than"),
  ])
  func `an empty or too long passphrase is refused`(typed: String, said: String) throws {
    let daemon = try daemon()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) restore --yes \(daemon.folder.path)/old")
    try terminal.type(typed, after: "Passphrase of the backup: ")
    let shown = try terminal.end()
    #expect(shown.contains(said), "\(shown)")
    #expect(shown.contains("status 7"))
    #expect(shown.contains(" echo "))
    #expect(!shown.contains("xx"))
  }

  /// The terminal itself sends the signals for ^C and ^\. Text typed before them is not shown either.
  @Test(arguments: [("hunter\u{3}", 130), ("hunter\u{1c}", 131)])
  func `a key that ends the prompt leaves the terminal with echo on`(typed: String, status: Int) throws {
    let daemon = try daemon()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) backup \(daemon.folder.path)/new")
    try terminal.type(typed, after: "Passphrase for the backup: ")
    let shown = try terminal.end()
    #expect(shown.contains("status \(status)"), "\(shown)")
    #expect(shown.contains(" echo "))
    #expect(!shown.contains("hunter"))
    #expect(try daemon.files() == ["old"])
  }

  @Test(arguments: [(SIGTERM, 143), (SIGHUP, 129), (SIGINT, 130)])
  func `a signal that ends the prompt leaves the terminal with echo on`(signal: Int32, status: Int) throws {
    let daemon = try daemon()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) restore --yes \(daemon.folder.path)/old")
    try terminal.type("", after: "Passphrase of the backup: ")
    try terminal.kill(signal)
    let shown = try terminal.end()
    #expect(shown.contains("status \(status)"), "\(shown)")
    #expect(shown.contains(" echo "))
  }

  @Test func `stopping the prompt turns echo on, and continuing it asks again`() throws {
    let daemon = try daemon()
    // Only job control can continue a stopped process.
    let terminal = try ClientTerminal(
      daemon.socket,
      script: "set -m; \(Self.program) restore -y \(daemon.folder.path)/old; stty -a; fg; echo status $?; stty -a")
    try terminal.type("hunter\u{1a}", after: "Passphrase of the backup: ")
    try terminal.type("", after: " echo ")
    try terminal.type("correct horse battery staple\n", after: "Passphrase of the backup: ")
    let shown = try terminal.end()
    #expect(shown.contains("status 0"), "\(shown)")
    #expect(!shown.contains("horse") && !shown.contains("hunter"), "\(shown)")
    #expect(daemon.requests.first == "restore begin key=0X6mNBypPaYHnqL2TcSqMd0ar5yqZ/tCrEr9BxRwbyY=")
  }
}
