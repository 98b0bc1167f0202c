import Foundation
import TestSupport
import Testing

/// Tables, colours and the pager of `identityctl` on a terminal.
@Suite(.tags(.plain)) struct TerminalOutputTests {
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  /// Runs shell commands on a terminal of 90 columns and 100 lines, and returns the lines that it shows.
  private func lines(_ daemon: DaemonUnderTest, _ commands: String) throws -> [String] {
    let terminal = try ClientTerminal(
      daemon.socket, script: "stty cols 90 rows 100; export TERM=xterm; unset NO_COLOR; \(commands)")
    return try terminal.end().replacing("\r\n", with: "\n").split(separator: "\n").map(String.init)
  }

  private func daemonWithItem() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    try #require(try daemon.ask("item put service=mail account=alice data=eA==").hasPrefix("OK"))
    return daemon
  }

  @Test func `a list is a table on a terminal, and lines with names and values in a pipe`() throws {
    let daemon = try daemonWithItem()
    let app = "user:\(geteuid())"
    let width = max(app.count, "GROUP".count)
    let title = "SERVICE  ACCOUNT  \("GROUP".padding(toLength: width, withPad: " ", startingAt: 0))  CREATED  MODIFIED"
    let row = "mail     alice    \(app.padding(toLength: width, withPad: " ", startingAt: 0))  now      now"
    #expect(try lines(daemon, "NO_COLOR=1 \(program) item find") == [title, row])
    #expect(try lines(daemon, "TERM=dumb \(program) item find") == [title, row])
    #expect(try lines(daemon, "\(program) --color=never item find") == [title, row])
    #expect(try lines(daemon, "\(program) item find")[0].hasPrefix("\u{1b}[1mSERVICE\u{1b}[0m  "))
    #expect(try lines(daemon, "TERM=dumb \(program) item find --color=always")[0].hasPrefix("\u{1b}[1mSERVICE"))
    #expect(
      try lines(daemon, "\(program) item find | cat")[0].wholeMatch(
        of: /service=mail account=alice group=user:\d+ created=\S+Z modified=\S+Z/) != nil)
  }

  @Test func `the report of check has colours on a terminal that takes them`() throws {
    let daemon = try daemonWithItem()
    let escape = "\u{1b}"
    #expect(try lines(daemon, "\(program) check").contains { $0.hasSuffix("  \(escape)[32mok\(escape)[0m") })
    #expect(try lines(daemon, "\(program) check --color=always | cat").contains { $0.contains(escape) })
    for plain in ["NO_COLOR=1 \(program)", "TERM=dumb \(program)", "\(program) --color=never"] {
      #expect(try !lines(daemon, "\(plain) check").contains { $0.contains(escape) }, "\(plain)")
    }
    #expect(try !lines(daemon, "\(program) check | cat").contains { $0.contains(escape) })
  }

  @Test func `the width of the terminal decides the form, and COLUMNS overrides it`() throws {
    let daemon = try daemonWithItem()
    let properties = ["  Service: mail", "  Account: alice"]
    #expect(try lines(daemon, "stty cols 30; NO_COLOR=1 \(program) item find").prefix(2) == properties[...])
    #expect(try lines(daemon, "COLUMNS=30 NO_COLOR=1 \(program) item find").prefix(2) == properties[...])
    let full = try lines(daemon, "COLUMNS=30 NO_COLOR=1 \(program) item find -l")
    #expect(full.count == 2 && full[1].hasSuffix("Z"), "\(full)")
  }

  // MARK: Pager

  /// Runs `get uuid count=9` on a terminal of eight lines.
  private func paged(_ environment: String, _ options: String = "") throws -> [String] {
    let daemon = try DaemonUnderTest().start()
    return try lines(
      daemon,
      "stty rows 8; \(environment) \(program) --color=never \(options) get uuid count=9; echo status $?")
  }

  private func script(_ text: String) throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try folder.write("less", "#!/bin/sh\n\(text)\n")
    try folder.setMode("less", 0o755)
    return folder
  }

  @Test func `output with more lines than the terminal goes through the pager`() throws {
    let shown = try paged("SYSTEMD_PAGERSECURE=0 PAGER='sed s/^/paged:/'")
    #expect(shown.count == 11 && shown[0] == "paged:UUID" && shown[9].hasPrefix("paged:") && shown[10] == "status 0")
    #expect(try paged("SYSTEMD_PAGERSECURE=0 PAGER='sed s/^/paged:/' LINES=50")[0] == "UUID")
    #expect(try paged("SYSTEMD_PAGERSECURE=0 PAGER='sed s/^/paged:/' TERM=dumb")[0] == "UUID")
  }

  @Test func `the report of check goes through the pager too`() throws {
    let daemon = try DaemonUnderTest().start()
    let shown = try lines(
      daemon, "stty rows 8; SYSTEMD_PAGERSECURE=0 PAGER='sed s/^/paged:/' \(program) check")
    #expect(shown.count > 8 && shown.allSatisfy { $0.hasPrefix("paged:") }, "\(shown)")
  }

  @Test(arguments: [
    ("IDENTITYCTL_PAGER=", ""), ("PAGER=cat", ""), ("PAGER=false", "--no-pager"), ("PATH=/nonexistent", ""),
  ])
  func `without a pager the output is plain`(environment: String, option: String) throws {
    let shown = try paged("SYSTEMD_PAGERSECURE=0 \(environment)", option)
    #expect(shown.count == 11 && shown[0] == "UUID" && shown[10] == "status 0", "\(shown)")
  }

  @Test func `a pager that ends early or is interrupted does not change the exit status`() throws {
    #expect(try paged("SYSTEMD_PAGERSECURE=0 PAGER='head -n 1'") == ["UUID", "status 0"])
    let interrupting = try script("kill -INT $PPID; sed s/^/paged:/")
    let shown = try paged("SYSTEMD_PAGERSECURE=0 PAGER=\(interrupting["less"])")
    #expect(shown.first == "paged:UUID" && shown.last == "status 0", "\(shown)")
  }

  @Test func `behind sudo the pager is less in its secure mode`() throws {
    let less = try script("cat >/dev/null; echo less $LESS $LESSSECURE")
    let secure = "PATH=\(less.path):$PATH SUDO_UID=\(geteuid() + 1) PAGER='sed s/^/paged:/'"
    // With a login UID, that decides.
    let login = try String(contentsOfFile: "/proc/self/loginuid", encoding: .utf8)
    let expected = login == "\(geteuid())" ? "paged:UUID" : "less FRSXMK 1"
    #expect(try paged(secure).first == expected)
  }
}
