import Foundation
import IdentityCore
import TestSupport
import Testing

/// Clients that exhaust the daemon's descriptors, its loop, or its log.
@Suite(.enabled(if: isRoot, "acting as another user needs root"), .serialized, .tags(.threads)) struct ResourceTests {
  /// Returns the processor time that the daemon has used, in hundredths of a second (proc(5), fields 14 and 15).
  private func processorTime(_ daemon: DaemonUnderTest) throws -> Int {
    let line = try String(contentsOfFile: "/proc/\(daemon.process.processIdentifier)/stat", encoding: .utf8)
    let fields = line.split(separator: ")").last?.split(separator: " ") ?? []
    return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
  }

  @Test func `row 26: out of descriptors the daemon does not spin, and serves all clients in time`() throws {
    let daemon = try DaemonUnderTest().start(through: ["prlimit", "--nofile=64:64"])
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    var held = try (0..<200).map { _ in try daemon.client() }
    // The daemon may refuse and close a connection before the request is sent.
    for one in held { try? one.send("ping\n") }
    try daemon.waitForLog("out of descriptors")
    let before = try processorTime(daemon)
    for _ in 0..<10 {
      usleep(50_000)
      #expect(try client.ask("get device")[0].hasPrefix("OK "))
    }
    // A busy loop would have used all of that half second, in ticks of 10 ms.
    #expect(try processorTime(daemon) - before < 25)
    #expect(try client.statusValue("store") == "ok")
    // Some clients were refused with an answer, and none is left without one.
    var served = 0
    while !held.isEmpty {
      let line = try held.removeFirst().line() ?? ""
      #expect(line == "OK" || line.hasPrefix("ERR busy "), "\(line)")
      if line == "OK" { served += 1 }
    }
    #expect(served >= 10)
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test func `row 26: accept is retried a few times a second while it fails`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    try Fault.inject("accept4:error=EMFILE", into: daemon) { () throws in
      let waiting = try daemon.client()
      try daemon.waitForLog("accept: Too many open files", times: 3)
      for _ in 0..<10 {
        usleep(20_000)
        #expect(try client.ask("ping") == ["OK"])
      }
      // Each attempt is logged, and there are ten a second. A busy loop would make thousands.
      #expect(daemon.log.components(separatedBy: "accept: Too many open files").count < 100)
      _ = waiting
    }
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test(arguments: ["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "EPERM", "EPROTO", "ECONNABORTED"])
  func `row 26: accept is retried after temporary errors, and other clients do not notice`(error: String) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    try Fault.inject("accept4:error=\(error):when=1..3", into: daemon) { () throws in
      let later = try daemon.client()
      try later.send("ping\n")
      for _ in 0..<20 { #expect(try client.ask("ping") == ["OK"]) }
      #expect(try later.answer() == ["OK"])
    }
  }

  @Test func `row 31: 2,000 clients delay neither root nor the watchdog, and do not fill the log`() throws {
    let daemon = try DaemonUnderTest()
    let manager = try PlayedManager(in: daemon.folder)
    try daemon.start(
      through: ["env", "NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=3000000"],
      configuration: "[Limits]\nConnectionsPerUser=3\n")
    try manager.wait(for: "WATCHDOG=1")
    let client = try daemon.client()
    let script = """
      use IO::Socket::UNIX; use POSIX;
      POSIX::setgid(65534); POSIX::setuid(65534);
      for my $round (1 .. 2000) {
        if (fork == 0) {
          my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ARGV[0]) or POSIX::_exit(0);
          local $SIG{PIPE} = 'IGNORE'; print {$socket} "get uuid count=100\\n"; $socket->flush;
          <$socket>; POSIX::_exit(0);
        }
        wait if $round > 100;
      }
      1 while wait != -1;
      """
    let storm = Process()
    storm.executableURL = URL(filePath: "/usr/bin/perl")
    storm.arguments = ["-e", script, daemon.socket]
    try storm.runUnmasked()
    var rounds = 0
    while storm.isRunning {
      #expect(try client.ask("get device")[0].hasPrefix("OK "))
      rounds += 1
    }
    // Not 100: while other tests run, a storm may be over sooner.
    #expect(rounds > 10)
    #expect(try daemon.ask("ping") == "OK")
    try manager.wait(for: "WATCHDOG=1", times: 2)
    // Not one log line for each refusal.
    #expect(daemon.log.components(separatedBy: "A connection was refused").count < Bound.logBurst + 20)
    try daemon.waitForStatus("connections", "2")
  }

  /// Has another user open connections at once, each with one request, and keep them open until the answers are read.
  ///
  /// - Parameter meanwhile: is called once the requests are sent.
  private func storm(of count: Int, on daemon: DaemonUnderTest, meanwhile: () throws -> Void) throws {
    let script = """
      import socket, sys
      held = []
      for _ in range(\(count)):
          s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b"get boot\\n"); held.append(s)
      print("sent", flush=True); sys.stdin.read(1)
      for s in held: assert s.recv(99).startswith(b"OK ")
      print("answered", flush=True); sys.stdin.read(1)
      """
    let (process, input, output) = (Process(), Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, daemon.socket,
    ]
    (process.standardInput, process.standardOutput) = (input, output)
    try process.runUnmasked()
    func expect(_ line: String) throws {
      let bytes = try output.fileHandleForReading.read(upToCount: line.utf8.count + 1)
      #expect(String(decoding: bytes ?? Data(), as: UTF8.self) == "\(line)\n")
    }
    try expect("sent")
    try meanwhile()
    try input.fileHandleForWriting.write(contentsOf: Data("x".utf8))
    try expect("answered")
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  @Test func `row 31: a storm of connections is given to the service manager in turns of its user`() throws {
    let daemon = try DaemonUnderTest()
    let manager = try PlayedManager(in: daemon.folder)
    try daemon.start(through: ["env", "NOTIFY_SOCKET=\(manager.path)"])
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    let most = TurnBound.shared.connections
    try storm(of: 20 * most, on: daemon) {
      // Each turn has a message of its own.
      try manager.wait(for: "FDNAME=identityd-connection", times: 20)
    }
  }

  @Test func `row 31: a storm of connections is served in turns of its user, once that has no time left`() throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(through: ["strace", "-D", "-f", "-o", trace.path])
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    kill(daemon.process.processIdentifier, SIGSTOP)
    try storm(of: 20, on: daemon) { kill(daemon.process.processIdentifier, SIGCONT) }
    #expect(try client.ask("ping") == ["OK"])
    daemon.end()
    let calls = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n").compactMap { line in
      ["accept4", "recvmsg", "epoll_ctl"].first { line.contains(" \($0)(") && !line.contains(" = -1 ") }
    }
    // While it is traced, the daemon takes longer for each connection than a turn. So after the first ones, a connection
    // is only watched when it is accepted.
    #expect(zip(calls, calls.dropFirst()).count { $0 == ("accept4", "epoll_ctl") } > 10, "\(calls)")
  }

  @Test func `row 32b: clients with large requests take turns with others`() throws {
    let daemon = try DaemonUnderTest().start()
    let hogs = try (0..<4).map { _ in
      let hog = Process()
      hog.executableURL = URL(filePath: "/bin/sh")
      hog.arguments = [
        "-c", "yes 'get uuid count=10000' | head -n 2000 | socat -t 60 - UNIX-CONNECT:\(daemon.socket) > /dev/null",
      ]
      try hog.runUnmasked()
      return hog
    }
    for _ in 0..<50 { #expect(try daemon.ask("get device").hasPrefix("OK ")) }
    // No client has received all of its answers yet, 780 MB each.
    #expect(hogs.allSatisfy { $0.isRunning })
    daemon.end(with: SIGKILL)
    for hog in hogs { hog.waitUntilExit() }
  }
}
