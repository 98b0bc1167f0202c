import Foundation
import IdentityWire
import TestSupport
import Testing

/// Help, corrections, and the summary that `identityctl` shows without a verb.
@Suite(.tags(.plain)) struct HelpTests {
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  private func help(_ words: String...) throws -> String {
    let result = try run([program] + words, environment: ["IDENTITYD_SOCKET": "/nonexistent"])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
    return result.output
  }

  /// Returns a text without line ends, at which help may be wrapped.
  private func joined(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

  @Test func `help and version need no daemon`() throws {
    let all = joined(try help("--help", "--all"))
    #expect(try joined(help("help", "--all")) == all)
    // Options take the place of some words.
    let isSpelledOtherwise = /data=|TOKEN|dry-run=/
    for verb in VerbTable.verbs where !verb.usage.contains(isSpelledOtherwise) {
      #expect(all.contains(verb.usage), "\(verb.usage)")
    }
    for verb in VerbTable.verbs { #expect(all.contains(" \(verb.words) "), "\(verb.words)") }
    #expect(try help("--version").hasPrefix("identityctl "))
  }

  @Test func `help lists commands in groups, and leaves out the verbs of programs`() throws {
    let text = try help("help")
    let titles = [
      "Identifiers:", "Secrets:", "Versions:", "Push tokens:", "Account and fleet:", "Events:", "Administration:",
    ]
    #expect(text.split(separator: "\n").map(String.init).filter(titles.contains) == titles)
    for verb in [
      "devices put", "fleet open", "fleet next", "fleet records", "fleet twin", "fleet said", "restore begin",
      "restore end",
    ] {
      #expect(!text.contains("  \(verb)"), "\(verb)")
    }
    for command in [
      "get device", "item put", "version changed", "token put", "account join", "monitor", "status", "backup",
    ] {
      #expect(text.contains("\n  \(command)"), "\(command)")
    }
    #expect(text.contains("\nIdentifiers:\n  get device "))
    #expect(try help("--help") == text)
  }

  @Test func `help needs no /proc`() throws {
    // Uses the release build, because a sanitizer itself needs /proc.
    let program = DaemonUnderTest.released.appending(path: "identityctl").path
    let hidden = [
      "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"",
    ]
    let result = try run(hidden + ["-", program, "help", "item", "find"])
    #expect(result.status == 0 && result.output.contains("item find [service=S]"), "\(result)")
  }

  @Test func `the help of a command lists its own options`() throws {
    let monitor = try help("monitor", "--help")
    #expect(monitor.hasPrefix("identityctl [OPTION…] monitor [TOPIC…]\n"))
    #expect(monitor.contains("  --since=SEQ   Begin after") && !monitor.contains("--data-file"))
    #expect(
      try joined(help("item", "put", "--help")).hasPrefix(
        "identityctl [OPTION…] item put --data-file=PATH service=S account=A [group=G]"))
    #expect(try joined(help("help", "token", "put")).contains(" token put --token-file=PATH PROVIDER ["))
    #expect(
      try joined(help("item", "update", "--help")).contains(
        " item update [service=S] [account=A] [group=G] [where.label=L] [where.attr.NAME=V]… [label=L] [attr.NAME=V]… "
          + "[--data-file=PATH]"))
    #expect(try joined(help("seal", "--help")).contains(" seal [--dry-run] "))
    let version = try joined(help("version", "compare", "--help"))
    #expect(
      version.contains("compare A B ") && version.contains("compare A lt|le|eq|ne|ge|gt B ")
        && !version.contains("changed"))
  }

  @Test func `help may follow a complete command`() throws {
    let item = try help("item", "put", "--help")
    #expect(try help("item", "PUT", "service=mail", "account=alice", "--help") == item)
    #expect(try help("renew", "device", "--help") == (try help("help", "renew")))
  }

  @Test func `help for an unknown verb suggests a known one`() throws {
    let result = try run([program, "--help", "stauts"])
    #expect(
      result.status == 2
        && result.errors == "identityctl: no verb begins with 'stauts'; did you mean 'status'?\n", "\(result)")
  }

  @Test(arguments: [40, 60, 80, 120]) func `help fits the width of the terminal`(columns: Int) throws {
    for words in ["help", "help item put", "help monitor"] {
      let terminal = try ClientTerminal("/nonexistent", script: "stty cols \(columns) rows 1000; \(program) \(words)")
      let lines = try terminal.end().replacing("\r\n", with: "\n").split(separator: "\n")
      // Only a single word may be longer than a line.
      for line in lines where line.count > columns {
        #expect(line.split(separator: " ").contains { $0.count > columns - 10 }, "\(line)")
      }
      #expect(lines.contains { $0.count > columns * 2 / 3 })
    }
  }

  @Test func `help in a pipe has 80 columns`() throws {
    let result = try run([program, "help"], environment: ["COLUMNS": "200"])
    #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(result.output)")
  }

  // MARK: Corrections

  @Test(
    arguments: [
      ("stauts", "status"), ("monitro", "monitor"), ("itme find", "item find"), ("item fnid", "item find"),
      ("get devcie", "get device"), ("GET DEVISE", "get device"), ("renew vendro", "vendor"),
      ("history instalation", "installation"),
      ("item find servce=mail", "service="), ("token list stael=1", "stale="), ("devices forgot x", "devices forget"),
      ("monitor tokne", "token"), ("migrate devize x", "migrate device"), ("version chnaged", "version changed"),
    ])
  func `a mistyped verb, attribute, level or topic gets one suggestion`(typed: String, meant: String) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run(
      [program, "--yes"] + typed.split(separator: " ").map(String.init),
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.errors.contains("; did you mean '\(meant)'? ("), "\(result)")
    #expect([12, 13].contains(result.status))
  }

  @Test(
    arguments: [
      ("status --jsno", "--json"), ("status --jsno=wire", "--json"), ("--hlep", "--help"), ("status -help", "--help"),
      ("monitor --sicne=4", "--since"), ("item add --datafile=x", "--data-file"),
      ("stats --promethius", "--prometheus"),
    ])
  func `a mistyped option gets one suggestion`(typed: String, meant: String) throws {
    let result = try run([program] + typed.split(separator: " ").map(String.init))
    #expect(result.status == 2 && result.errors.hasSuffix("'; did you mean '\(meant)'?\n"), "\(result)")
  }

  @Test(arguments: ["status --frobnicate", "status -x", "get device --sicne=4"])
  func `without a similar option of the command there is no suggestion`(typed: String) throws {
    let result = try run([program] + typed.split(separator: " ").map(String.init))
    #expect(result.status == 2 && result.errors.hasSuffix("; see 'identityctl --help'\n"), "\(result)")
  }

  @Test(arguments: [
    "frobnicate", "get", "item", "item find x", "item find color=red", "stats x=1", "version report", "token put x y z",
  ])
  func `without a similar word there is no suggestion`(typed: String) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run(
      [program] + typed.split(separator: " ").map(String.init), environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect([12, 13].contains(result.status) && !result.errors.contains("did you mean"), "\(result)")
  }

  // MARK: Without a verb

  @Test func `without a verb the client shows the state of the daemon`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run([program], environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 0 && result.errors.isEmpty, "\(result)")
    #expect(result.output.contains(" Store: ok\n") && !result.output.contains("Socket"), "\(result)")
    #expect(joined(result.output).hasSuffix("'identityctl help' lists all commands."), "\(result)")
  }

  @Test func `without a daemon it says what to do, and names the command that finds the cause`() throws {
    let result = try run([program], environment: ["IDENTITYD_SOCKET": "/nonexistent"])
    #expect(result.status == 3)
    #expect(
      result.errors.contains("no identityd at /nonexistent")
        && result.errors.contains("systemctl restart identityd.socket"))
    #expect(result.output.hasPrefix("'identityctl check' finds the cause"), "\(result)")
  }

  @Test func `the summary shows values that need attention`() throws {
    let daemon = try PlayedDaemon { _ in
      .lines("* version=0.1.0\n* socket=/x\n* store=full\n* store-reason=\"no space\"\n* manifest-fault=broken\nOK\n")
    }
    let result = try run([program, "--socket=\(daemon.socket)"])
    for line in ["Store: full\n", "Store reason: no space\n", "Manifest fault: broken\n"] {
      #expect(result.output.contains(line), "\(result)")
    }
    #expect(!result.output.contains("/x"))
  }
}
