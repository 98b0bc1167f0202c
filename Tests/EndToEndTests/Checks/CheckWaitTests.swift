import Foundation
import TestSupport
import Testing

/// The waits of `identityctl check`. A trace of its system calls shows each wait, however fast the machine is.
@Suite(.tags(.plain)) struct CheckWaitTests {
  /// A wait of the client or of a process that it started.
  private struct Wait {
    /// Whether it ended because its time was up.
    let isInVain: Bool
    /// Its time limit in milliseconds; nil for no limit, and for a sleep.
    let limit: Int?
    let line: String
  }

  /// The system calls of a run, each in one line.
  private struct Trace {
    var lines: [String] = []

    /// Reads a trace. A call during which another process made a call is in two lines.
    init(_ file: URL) throws {
      var begun: [Substring: String] = [:]
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let process = line.prefix { $0 != " " }
        if let end = line.range(of: " <unfinished ...>") {
          begun[process] = String(line[..<end.lowerBound])
        } else if let end = line.range(of: " resumed>"), let head = begun.removeValue(forKey: process) {
          lines.append(head + line[end.upperBound...])
        } else {
          lines.append(String(line))
        }
      }
    }

    /// Returns the number of calls that succeeded.
    func count(_ call: String, _ part: String? = nil) -> Int {
      lines.count { $0.contains(" \(call)(") && (part.map($0.contains) ?? true) && !$0.contains(" = -1 ") }
    }

    /// All waits. A sleep counts as one that ended in vain.
    var waits: [Wait] {
      lines.compactMap { line in
        if CheckWaitTests.sleeps.contains(where: { line.contains(" \($0)(") }) {
          return Wait(isInVain: true, limit: nil, line: line)
        }
        guard let found = line.firstMatch(of: /\spoll\(.*, [0-9]+, (-?[0-9]+)\) +=\s/), let limit = Int(found.1) else {
          return nil
        }
        return Wait(isInVain: line.hasSuffix("(Timeout)"), limit: limit < 0 ? nil : limit, line: line)
      }
    }

    var waitsInVain: [Wait] { waits.filter(\.isInVain) }
  }

  /// The calls that count as a sleep. poll(2) is the only call with which the client waits.
  private static let sleeps = [
    "nanosleep", "clock_nanosleep", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "ppoll",
  ]

  /// The command that traces the client's waits, its connections and the processes that it starts.
  private static func tracing(to file: String) -> String {
    "strace -f -o \(file) -e trace=\((["connect", "execve", "sendto", "poll"] + sleeps).joined(separator: ","))"
  }
  private static let program = DaemonUnderTest.released.appending(path: "identityctl").path

  private func diagnosis(_ output: String) throws -> Diagnosis {
    try JSONDecoder().decode(Diagnosis.self, from: Data(output.utf8))
  }

  @Test func `where nothing is wrong, no time is up, nothing sleeps, and each answer is asked for once`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    let file = daemon.folder.appending(path: "trace")
    let command = "\(Self.tracing(to: file.path)) \(Self.program) --socket='\(daemon.socket)' check --json"
    let checked = try run(["sh", "-c", command])
    #expect(try diagnosis(checked.output).ok, "\(checked)")
    let trace = try Trace(file)
    #expect(trace.waitsInVain.isEmpty, "\(trace.waitsInVain.map(\.line))")
    // Proves that the trace shows waits.
    #expect(trace.waits.count >= 4, "\(trace.lines)")
    let requests = trace.lines.filter { $0.contains(" sendto(") }
      .compactMap { $0.split(separator: "\"").dropFirst().first }
    #expect(requests.count >= 4 && requests.count <= 6, "\(requests)")
    #expect(Set(requests).count == requests.count, "\(requests)")
    #expect(trace.count("connect", daemon.socket) <= 2)
    #expect(trace.count("execve") == 1)
  }

  // MARK: A daemon that crashes in a loop

  /// Runs the checks of the system's daemon with a service manager that answers as given, and a daemon that accepts
  /// connections and never answers.
  ///
  /// - Parameters:
  ///   - first: The properties of the service in the first answer.
  ///   - later: Those in all other answers.
  private func check(_ first: String, _ later: String) throws -> (found: Diagnosis, trace: Trace) {
    let folder = try TemporaryFolder()
    func file(_ name: String) -> String { "\(folder.path)/\(name)" }
    let systemctl = """
      #!/bin/sh
      if [ -e \(file("asked")) ]; then state='\(later)'; else state='\(first)'; fi
      touch \(file("asked"))
      printf 'Id=identityd.socket\\nLoadState=loaded\\nActiveState=active\\nSubState=listening\\nUnitFileState=enabled\\n\\n'
      printf 'Id=identityd.service\\nLoadState=loaded\\nUnitFileState=enabled\\n%b' "$state"

      """
    try FileManager.default.createDirectory(atPath: file("bin"), withIntermediateDirectories: true)
    try Data(systemctl.utf8).write(to: URL(filePath: file("bin/systemctl")))
    let script = """
      chmod 0755 \(file("bin")) \(file("bin/systemctl"))
      mount -t overlay -o lowerdir=\(file("bin")):/usr/bin overlay /usr/bin
      mount -t tmpfs -o mode=0755 tmpfs /run
      mkdir -p /run/systemd/system /run/identityd
      socat -u UNIX-LISTEN:/run/identityd/identityd.sock,fork,mode=0666 OPEN:/dev/null >&2 &
      until [ -S /run/identityd/identityd.sock ]; do sleep 0.02; done
      \(Self.tracing(to: file("trace"))) \(Self.program) check --json || [ $? = 8 ]
      kill $!
      """
    let checked = try run(["unshare", "--mount", "sh", "-euc", script])
    return (try diagnosis(checked.output), try Trace(URL(filePath: file("trace"))))
  }

  /// Expects the finding of a loop. Where the tests run, the user of the service may be missing too.
  private func expectLoop(_ found: Diagnosis, _ end: String = "") throws {
    let cause = "identityd.service ends and is restarted again and again, 5 times so far\(end); see "
    #expect(try found["unit"].findings.contains { $0.result == "failed" && $0.cause.hasPrefix(cause) }, "\(found)")
    for name in ["socket", "store"] { #expect(try found[name].result == "skipped", "\(found)") }
  }

  private static let restarting = #"ActiveState=activating\nSubState=auto-restart\nNRestarts=5\n"#
  private static let exited = #"ExecMainCode=1\nExecMainStatus=42\n"#

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a daemon that crashes in a loop is found without a wait and without a connection`() throws {
    let (found, trace) = try check(Self.restarting + Self.exited, Self.restarting + Self.exited)
    try expectLoop(found, ": exit status 42")
    #expect(trace.waitsInVain.isEmpty, "\(trace.waitsInVain.map(\.line))")
    #expect(trace.count("connect", "identityd.sock") == 0)
  }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a loop whose reason systemd does not tell at once costs ten short waits at most`() throws {
    let (found, trace) = try check(Self.restarting, Self.restarting)
    try expectLoop(found)
    // On a loaded machine, systemctl may take a moment to end, which is a wait of 5 ms.
    #expect(trace.waitsInVain.count { $0.limit != 5 } == 10, "\(trace.waitsInVain.map(\.line))")
    #expect(trace.waitsInVain.allSatisfy { $0.limit.map { $0 <= 50 } == true }, "\(trace.waitsInVain.map(\.line))")
    #expect(trace.count("execve", "systemctl") == 10)
    #expect(trace.count("connect", "identityd.sock") == 0)
  }

  @Test(.enabled(if: isRoot, "mounting needs root"))
  func `a daemon that begins to crash during the checks costs a second at most`() throws {
    let running = #"ActiveState=active\nSubState=running\nNRestarts=0\n"#
    let (found, trace) = try check(running, Self.restarting + Self.exited)
    try expectLoop(found, ": exit status 42")
    #expect(trace.waitsInVain.count == 1, "\(trace.waitsInVain.map(\.line))")
    #expect(trace.waitsInVain.allSatisfy { $0.limit.map { $0 <= 1_000 } == true }, "\(trace.waitsInVain.map(\.line))")
    #expect(trace.count("connect", "identityd.sock") == 1)
  }
}
