import Foundation
import IdentityWire
import TestSupport
import Testing

/// The question before verbs that cannot be undone.
@Suite(.enabled(if: isRoot, "the verbs take an admin")) struct ConsentTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  private static let other = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  /// A daemon with an identifier of each level, an account, another device, and an app without a manifest.
  private func filled() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    for request in [
      "get device", "get installation", "get vendor", "account set alice@example.org", "devices put \(Self.other)",
    ] {
      #expect(try daemon.ask(request).hasPrefix("OK"))
    }
    return daemon
  }

  /// Returns the answers that show whether anything changed.
  private func state(_ daemon: DaemonUnderTest) throws -> [[String]] {
    try [
      "get device", "get installation", "get vendor", "account", "devices", "app list", "subscribe",
    ].map { try daemon.client().ask($0) }
  }

  /// One command for each destructive verb, and the words that the question shows for it.
  private static let commands: [(words: String, shown: [String])] = [
    ("seal", ["LEVEL", "device  ", "installation  ", "vendor  ", "all items"]),
    ("renew device", ["device  ", "random ones replace"]),
    ("account clear", ["leaves its account", "\(other)  no"]),
    ("app forget user:0", ["user:0  user:0", "uninstalled"]),
    ("devices remove \(other)", ["\(other)  no", "leaves the list"]),
    ("devices forget \(other.uppercased())", ["UUID", "\(other)  no"]),
    ("key rotate", ["new master key"]),
  ]

  @Test func `each destructive verb that the client sends is tested here`() {
    let tested = Self.commands.map(\.words)
    for verb in VerbTable.verbs where verb.consequence != nil && verb.words != "restore end" {
      #expect(tested.contains { $0.hasPrefix(verb.words) }, "\(verb.words)")
    }
  }

  @Test(arguments: commands.map(\.words))
  func `without a terminal the verb needs --yes and changes nothing else`(words: String) throws {
    let daemon = try filled()
    let before = try state(daemon)
    let arguments = words.split(separator: " ").map(String.init)
    let refused = try run([Self.program] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket], input: "y\n")
    #expect(refused.status == 2 && refused.errors.contains("--yes"), "\(refused)")
    #expect(try state(daemon) == before)
    let done = try run([Self.program, "-y"] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
  }

  @Test(arguments: commands.map(\.words), ["\n", "n\n", "yesterday\n", "\u{4}"])
  func `on a terminal every answer but yes changes nothing`(words: String, answer: String) throws {
    let daemon = try filled()
    let before = try state(daemon)
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) \(words)")
    try terminal.type(answer, after: "Go on? [y/N] ")
    let shown = try terminal.end()
    let expected = try #require(Self.commands.first { $0.words == words }).shown
    for text in expected { #expect(shown.contains(text), "\(text): \(shown)") }
    #expect(shown.contains("nothing was changed") && shown.contains("status 1"), "\(shown)")
    #expect(try state(daemon) == before)
  }

  @Test(arguments: ["y\n", "YES\n"]) func `yes on a terminal lets the verb proceed`(answer: String) throws {
    let daemon = try filled()
    let device = try daemon.uuid("get device")
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) renew device")
    try terminal.type(answer, after: "Go on? [y/N] ")
    let shown = try terminal.end()
    #expect(shown.contains("Previous: \(device)") && shown.contains("status 0"), "\(shown)")
    #expect(try daemon.uuid("get device") != device)
  }

  @Test(arguments: ["renew device dry-run=yes", "seal dry-run=yes", "app forget unused=1 dry-run=yes"])
  func `a dry run never asks`(words: String) throws {
    let daemon = try filled()
    let result = try run(
      [Self.program] + words.split(separator: " ").map(String.init), environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
  }

  @Test(arguments: [("n\n", 1), ("y\n", 0)])
  func `restore on a terminal shows its dry run and asks, also for a pipe`(answer: String, status: Int) throws {
    let daemon = try filled()
    let backup = daemon.folder.appending(path: "backup").path
    #expect(try identityctl(at: daemon.socket, ["backup", backup, "--passphrase-fd=3"]).status == 0)
    #expect(try daemon.ask("account set bob@example.org") == "OK")
    let secret = daemon.folder.appending(path: "secret")
    try Data("correct horse".utf8).write(to: secret)
    let terminal = try ClientTerminal(
      daemon.socket, "\(Self.program) restore <(cat \(backup)) --passphrase-fd=3 3<\(secret.path)")
    try terminal.type(answer, after: "Go on? [y/N] ")
    let shown = try terminal.end()
    #expect(shown.contains("value=alice@example.org") && shown.contains("status \(status)"), "\(shown)")
    #expect(try daemon.ask("account") == (status == 0 ? "OK alice@example.org" : "OK bob@example.org"))
  }

  @Test func `help lists the destructive verbs apart`() throws {
    // Without the line ends, at which usages may be wrapped.
    let text = try run([Self.program, "-h"]).output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let parts = text.split(separator: "Verbs that cannot be undone", maxSplits: 1)
    try #require(parts.count == 2)
    for verb in VerbTable.verbs {
      #expect(parts[verb.consequence == nil ? 0 : 1].contains(" \(verb.words) "), "\(verb.words)")
    }
    #expect(parts[1].contains(" restore FILE "))
  }
}
