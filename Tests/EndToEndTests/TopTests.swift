import Foundation
import TestSupport
import Testing

/// `top` on a real terminal, which tmux(1) provides.
struct TopTests {
  private static let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  @Test func `top shows the daemon's activity and restores the terminal`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask(#"account set "a\u001b[31mb""#) == ["OK"])
    let terminal = try Tmux(daemon, "\(Self.program) top --interval=0.2")
    let shown = try terminal.wait { $0.contains("requests/s 1") || $0.contains("requests/s 2") }
    #expect(shown.contains("identityd 0."))
    #expect(shown.contains("LATENCY") && shown.contains("commit "))
    #expect(shown.contains("user:\(geteuid())"))
    #expect(shown.contains(#"account changed  value="a\u001b[31mb""#), "\(shown)")
    #expect(shown.split(separator: "\n").allSatisfy { $0.count <= 80 })
    #expect(try terminal.state() == "1 0")
    try terminal.type("q")
    try terminal.expectEnd("status 0")
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `a user who may not monitor the daemon sees its health and the user's own app`() throws {
    let daemon = try DaemonUnderTest().start()
    let asOther = "setpriv --reuid=4711 --regid=4711 --clear-groups"
    let terminal = try Tmux(daemon, "\(asOther) \(Self.program) top --interval=0.2")
    let shown = try terminal.wait { $0.contains("user:4711") }
    #expect(shown.contains("most metrics are for admins and MonitorGroup=  q quits"), "\(shown)")
    #expect(shown.contains("requests/s -") && shown.contains("store -, writable"), "\(shown)")
    #expect(!shown.contains("user:0"))
    try terminal.type("q")
    try terminal.expectEnd("status 0")
  }

  @Test(arguments: [("INT", 130), ("TERM", 143), ("HUP", 129), ("C-c", 130)])
  func `however top is ended, it restores the terminal`(signal: String, status: Int) throws {
    let daemon = try DaemonUnderTest().start()
    let terminal = try Tmux(daemon, "\(Self.program) top --interval=0.2")
    _ = try terminal.wait { $0.contains("q quits") }
    if signal == "C-c" { try terminal.type("C-c") } else { try terminal.send(signal) }
    try terminal.expectEnd("status \(status)")
  }

  @Test func `top adapts to the size of the terminal`() throws {
    let daemon = try DaemonUnderTest().start()
    let terminal = try Tmux(daemon, "\(Self.program) top --interval=1000")
    let before = try terminal.wait { $0.contains("EVENTS") }
    #expect(before.contains("p99 now"))
    try terminal.resize(40, 8)
    // The screen changes long before the next refresh.
    let small = try terminal.wait { !$0.contains("EVENTS") && $0.contains("LATENCY") }
    #expect(small.split(separator: "\n").allSatisfy { $0.count <= 40 })
    try terminal.resize(100, 30)
    _ = try terminal.wait { $0.contains("EVENTS") }
    try terminal.type("q")
    try terminal.expectEnd("status 0")
  }

  @Test func `top waits for a daemon that goes away`() throws {
    let daemon = try DaemonUnderTest().start()
    let terminal = try Tmux(daemon, "\(Self.program) top --interval=0.2")
    _ = try terminal.wait { $0.contains("identityd 0.") }
    #expect(daemon.end() == 0)
    let gone = try terminal.wait { $0.contains("the daemon is gone") }
    #expect(gone.contains("LATENCY"))
    try daemon.start()
    _ = try terminal.wait { $0.contains("identityd 0.") && !$0.contains("the daemon is gone") }
    try terminal.type("q")
    try terminal.expectEnd("status 0")
  }

  @Test func `a stop gives the terminal back, and continuing takes it again`() throws {
    let daemon = try DaemonUnderTest().start()
    let terminal = try Tmux(daemon, "\(Self.program) top --interval=0.2")
    _ = try terminal.wait { $0.contains("q quits") }
    try terminal.type("C-z")
    try terminal.wait(forState: "0 1")
    _ = try terminal.wait { $0.contains("stopped") }
    try terminal.resume()
    try terminal.wait(forState: "1 0")
    _ = try terminal.wait { $0.contains("q quits") }
    try terminal.type("q")
    try terminal.expectEnd("status 0")
  }

  @Test func `without a terminal top names the alternative`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try identityctl(daemon, "top")
    #expect((result.status, result.output) == (2, ""))
    #expect(result.errors.contains("'top' requires a terminal; 'stats'"))
  }

  @Test func `without a daemon at the beginning top does not touch the terminal`() throws {
    let daemon = try DaemonUnderTest()
    let terminal = try Tmux(daemon, "\(Self.program) top")
    let shown = try terminal.wait { $0.contains("status ") }
    #expect(shown.contains("no identityd at"))
    try terminal.expectEnd("status 3")
  }

  @Test(arguments: ["--interval=0", "--interval=0.01", "--interval=x", "--json", "word"])
  func `invalid options of top are refused`(word: String) throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try identityctl(daemon, "top", word).status == 2)
  }
}

/// A terminal of 80 by 24 characters that runs one command.
private final class Tmux {
  private let name = "identityd-\(UUID().uuidString)"
  private let folder: URL
  private let server = Process()

  init(_ daemon: DaemonUnderTest, _ command: String) throws {
    folder = daemon.folder
    // Job control is on: a process can be stopped only if its shell could resume it (POSIX, orphaned process groups).
    let script = """
      set -m
      trap : INT
      settings() { stty -a | sed 1d; } # the first line is the size
      settings >\(folder.path)/before
      sh -c 'echo $$ >\(folder.path)/process; exec \(command)'
      status=$?
      if [ "$(jobs -s)" ]; then
        echo stopped
        while [ ! -e \(folder.path)/resume ]; do sleep 0.05; done
        fg
        status=$?
      fi
      echo "status $status"
      settings >\(folder.path)/after.new && mv \(folder.path)/after.new \(folder.path)/after
      exec sleep 1000
      """
    let file = folder.appending(path: "script")
    try Data(script.utf8).write(to: file)
    // Runs the server as a child. A server that a client starts would inherit the descriptor by which Foundation
    // detects the end of that client.
    server.executableURL = URL(filePath: "/usr/bin/env")
    server.arguments = ["tmux", "-L", name, "-D", "-f", "/dev/null"]
    server.environment = ProcessInfo.processInfo.environment.merging(
      ["IDENTITYD_SOCKET": daemon.socket, "TERM": "xterm"]) { $1 }
    server.standardInput = FileHandle.nullDevice
    server.standardOutput = FileHandle.nullDevice
    server.standardError = FileHandle.nullDevice
    try server.runUnmasked()
    let deadline = Date(timeIntervalSinceNow: patience)
    while true {
      do {
        try tmux("new-session", "-d", "-x", "80", "-y", "24", "bash \(file.path)")
        return
      } catch {
        guard Date() < deadline, server.isRunning else { throw error }
        usleep(20_000)
      }
    }
  }

  deinit {
    kill(server.processIdentifier, SIGKILL)
    server.waitUntilExit()
  }

  @discardableResult
  private func tmux(_ words: String...) throws -> String {
    let outcome = try run(["tmux", "-N", "-L", name] + words)
    guard outcome.status == 0 else { throw Failure("tmux \(words): \(outcome.errors)") }
    return outcome.output
  }

  /// Returns whether the alternate screen and the cursor are shown, each as 0 or 1.
  func state() throws -> String {
    try tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").trimmingCharacters(in: .newlines)
  }

  /// Waits until `isRight` accepts the screen, and returns the screen.
  @discardableResult
  func wait(until isRight: (String) -> Bool) throws -> String {
    let deadline = Date(timeIntervalSinceNow: patience)
    var shown = ""
    while Date() < deadline {
      shown = try tmux("capture-pane", "-p")
      if isRight(shown) { return shown }
      usleep(20_000)
    }
    throw Failure("in vain waited for another screen than this:\n\(shown)")
  }

  func wait(forState wanted: String) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if try state() == wanted { return }
      usleep(20_000)
    }
    throw Failure("in vain waited for state \(wanted); it is \(try state())")
  }

  func type(_ key: String) throws { try tmux("send-keys", key) }

  func resize(_ columns: Int, _ lines: Int) throws {
    try tmux("resize-window", "-x", "\(columns)", "-y", "\(lines)")
  }

  /// Makes the shell resume the stopped command.
  func resume() throws { try Data().write(to: folder.appending(path: "resume")) }

  func send(_ signal: String) throws {
    let process = try String(contentsOf: folder.appending(path: "process"), encoding: .utf8)
    let sent = try run(["sh", "-c", "kill -\(signal) \(process)"])
    guard sent.status == 0 else { throw Failure(sent.errors) }
  }

  /// Expects that the command has ended with a status, and that the terminal is in its original state.
  func expectEnd(_ status: String) throws {
    let shown = try wait { $0.contains("status ") }
    #expect(shown.contains(status + "\n"), "\(shown)")
    #expect(!shown.contains("LATENCY"), "\(shown)")
    #expect(try state() == "0 1")
    let deadline = Date(timeIntervalSinceNow: patience)
    let after = folder.appending(path: "after")
    while !FileManager.default.fileExists(atPath: after.path), Date() < deadline { usleep(20_000) }
    let before = try String(contentsOf: folder.appending(path: "before"), encoding: .utf8)
    #expect(try String(contentsOf: after, encoding: .utf8) == before)
    #expect(before.contains(" echo "))
  }
}
