import Foundation
import IdentityWire
import TestSupport
import Testing

/// The question before verbs that cannot be undone.
@Suite(.enabled(if: isRoot, "the verbs take an admin"), .tags(.plain)) struct ConsentTests {
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
      "get device", "get installation", "get vendor", "account", "devices", "app list", "item find group=*",
      "token list app=*", "subscribe",
    ].map { try daemon.client().ask($0) }
  }

  /// One command for each verb that always asks, and the words that the question shows for it.
  private static let commands: [(words: String, shown: [String])] = [
    ("seal", ["LEVEL", "device  ", "installation  ", "vendor  ", "all items"]),
    ("renew device", ["device  ", "random ones replace"]),
    ("account clear", ["leaves its account", other]),
    ("app forget user:0", ["user:0  user:0", "uninstalled"]),
    ("devices remove \(other)", ["\(other)  no", "leaves the list"]),
    ("devices forget \(other.uppercased())", ["UUID", "\(other)  no"]),
    ("key rotate", ["new master key"]),
  ]

  /// Commands of verbs that ask if more is lost than they name, and the words that the question shows for it. In
  /// ``filled()``, and with items and tokens of root and of another user, each of them loses more.
  private static let broad: [(words: String, shown: [String])] = [
    ("item delete service=s", ["Every item that matches when", "a1", "a2"]),
    ("item delete service=s account=a1 group=user:65534", ["Every item that matches when", "user:65534", "no"]),
    ("account set bob@example.org", ["all other devices leave", other]),
    ("token delete fcm app=user:65534", ["another app", "theirs", "user:65534"]),
    ("machine acknowledge", ["which the original may have, too", "fcm", "user:65534", "item"]),
  ]
  private static let all = commands + broad

  /// Commands of the same verbs that lose no more than they name.
  private static let narrow = [
    "item delete service=s account=a1", "item delete service=s attr.kind=x", "account set alice@example.org",
    "token delete fcm", "token delete fcm app=user:0",
  ]

  /// Returns a daemon with more items and tokens than ``filled()``.
  private func owned() throws -> DaemonUnderTest {
    let daemon = try filled()
    let requests = [
      "item put service=s account=a1 data=eA== attr.kind=x", "item put service=s account=a2 data=eA==",
      "token put fcm mine", "item put service=s account=a3 data=eA== this-device-only=yes",
    ]
    for request in requests { #expect(try daemon.ask(request).hasPrefix("OK")) }
    for words in ["token put fcm theirs", "item put service=s account=a1 data=eA=="] {
      let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Self.program]
      let result = try run(
        user + words.split(separator: " ").map(String.init), environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect(result.status == 0, "\(result)")
    }
    // Then the tokens are left to an original.
    for request in ["fleet twin copy=yes", "renew device"] { #expect(try daemon.ask(request).hasPrefix("OK")) }
    return daemon
  }

  @Test func `each verb that asks is tested here`() {
    func verbs(_ commands: [(words: String, shown: [String])]) -> Set<String> {
      Set(commands.compactMap { VerbTable.verb(of: $0.words.split(separator: " ").map(String.init))?.words })
    }
    for verb in VerbTable.verbs where verb.words != "restore end" {
      switch verb.loss {
      case .nothing, .named: #expect(!verbs(Self.all).contains(verb.words), "\(verb.words)")
      case .ask: #expect(verbs(Self.commands).contains(verb.words), "\(verb.words)")
      case .askIfMore, .askIfAny:
        #expect(verbs(Self.broad).contains(verb.words), "\(verb.words)")
        #expect(verb.attributes.contains { $0.name == "dry-run" }, "\(verb.words)")
      }
    }
  }

  @Test(arguments: narrow) func `a verb that loses no more than it names does not ask`(words: String) throws {
    let daemon = try owned()
    let result = try run(
      [Self.program] + words.split(separator: " ").map(String.init), environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
  }

  @Test func `one own thing that the request does not name is asked for`() throws {
    let daemon = try DaemonUnderTest().start()
    for request in ["token put fcm mine", "fleet twin copy=yes", "renew device"] {
      #expect(try daemon.ask(request).hasPrefix("OK"))
    }
    let words = [Self.program, "machine", "acknowledge"]
    let refused = try run(words, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(refused.status == 2 && refused.errors.contains("--dry-run"), "\(refused)")
    #expect(try daemon.client().ask("token list").count == 2)
    #expect(try run(words + ["-y"], environment: ["IDENTITYD_SOCKET": daemon.socket]).status == 0)
    #expect(try daemon.client().ask("token list") == ["OK 0"])
    // Then nothing is left to lose.
    #expect(try run(words, environment: ["IDENTITYD_SOCKET": daemon.socket]).status == 0)
  }

  @Test(arguments: broad.map(\.words)) func `a dry run lists what would be lost, and loses nothing`(words: String)
    throws
  {
    let daemon = try owned()
    let before = try state(daemon)
    let arguments = (words + " dry-run=yes").split(separator: " ").map(String.init)
    let result = try run([Self.program] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 0 && result.errors.isEmpty && !result.output.isEmpty, "\(result)")
    #expect(try state(daemon) == before)
    #expect(try run([Self.program, "-y"] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket]).status == 0)
    #expect(try state(daemon) == before)
  }

  @Test func `a refusal of the dry run is the answer, in each form of output`() throws {
    let daemon = try owned()
    for options in [[], ["--json"]] as [[String]] {
      let result = try run(
        [Self.program] + options + ["item", "delete", "service=none"], environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect(result.status == 16, "\(result)")
      let shown = options.isEmpty ? result.errors : result.output
      #expect(shown.contains("not-found") && shown.contains("no item matches"), "\(result)")
    }
  }

  @Test(arguments: all.map(\.words))
  func `without a terminal the verb needs --yes and changes nothing else`(words: String) throws {
    let daemon = try owned()
    let before = try state(daemon)
    let arguments = words.split(separator: " ").map(String.init)
    let refused = try run([Self.program] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket], input: "y\n")
    #expect(refused.status == 2 && refused.errors.contains("--yes"), "\(refused)")
    #expect(try state(daemon) == before)
    let done = try run([Self.program, "-y"] + arguments, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
  }

  @Test(arguments: all.map(\.words), ["\n", "n\n", "yesterday\n", "\u{4}"])
  func `on a terminal every answer but yes changes nothing`(words: String, answer: String) throws {
    let daemon = try owned()
    let before = try state(daemon)
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) \(words)")
    try terminal.type(answer, after: "Go on? [y/N] ")
    let shown = try terminal.end()
    let expected = try #require(Self.all.first { $0.words == words }).shown
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

  @Test(arguments: [
    "renew device dry-run=yes", "seal dry-run=yes", "app forget unused=1 dry-run=yes",
    "devices forget unused=1 dry-run=yes",
  ])
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

  @Test func `yes lets a verb lose more than it names`() throws {
    let daemon = try owned()
    let terminal = try ClientTerminal(daemon.socket, "\(Self.program) item delete service=s")
    try terminal.type("y\n", after: "Go on? [y/N] ")
    let shown = try terminal.end()
    #expect(shown.contains("status 0"), "\(shown)")
    #expect(try daemon.ask("item find service=s").hasPrefix("ERR not-found"))
    #expect(try daemon.client().ask("item find service=s group=user:65534").last == "OK 1")
  }

  @Test func `restore names the times of items that are newer here, in its dry run and before it asks`() throws {
    let daemon = try owned()
    let file = daemon.folder.appending(path: "backup").path
    #expect(try identityctl(at: daemon.socket, ["backup", file, "--passphrase-fd=3"]).status == 0)
    func modified() throws -> String {
      let row = try daemon.client().ask("item find service=s account=a1")[0]
      return try #require(row.split(separator: " ").first { $0.hasPrefix("modified=") }).description
    }
    let there = try modified()
    #expect(try daemon.ask("item put service=s account=a1 data=bmV3") == "OK replaced")
    let here = try modified()
    #expect(here != there)
    let dry = try identityctl(at: daemon.socket, ["restore", file, "--passphrase-fd=3", "--dry-run"])
    #expect(dry.output.contains("\(there)  previous-\(here)"), "\(dry)")
    let terminal = try ClientTerminal(
      daemon.socket, "\(Self.program) restore \(file) --passphrase-fd=3 3< <(echo correct horse)")
    try terminal.type("n\n", after: "Go on? [y/N] ")
    let shown = try terminal.end()
    let (old, new) = (there.dropFirst("modified=".count), here.dropFirst("modified=".count))
    #expect(shown.contains("1 item here is newer than in the backup"), "\(shown)")
    #expect(shown.contains("the newest is from \(new), in the backup from \(old)."), "\(shown)")
    #expect(try daemon.ask("item read service=s account=a1").hasPrefix("OK data=bmV3 "))
  }

  @Test func `help marks the commands that cannot be undone`() throws {
    // Without the line ends, at which usages may be wrapped.
    let help = try run([Self.program, "-h", "--all"]).output
    let text = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    for verb in VerbTable.verbs {
      #expect(text.contains("\(verb.summary) *") == (verb.loss.consequence != nil), "\(verb.words)")
    }
    for summary in ["Restore the backup in FILE.", "Write a backup to FILE, encrypted with a passphrase."] {
      #expect(text.contains("\(summary) *"), "\(summary)")
    }
  }
}
