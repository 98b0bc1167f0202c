import Foundation
import TestSupport
import Testing

/// The socket of the fleet's service: its peers, who are attested as those of identityd, and its bounds.
@Suite(.tags(.threads), .enabled(if: isRoot, "acting as other users needs root")) struct FleetSocketTests {
  /// A client, and its answers at both sockets.
  struct Case: CustomTestStringConvertible, Sendable {
    var group: String?
    var namespaces = Namespaces.own
    var user = 0
    let isAdmin: Bool
    /// Whether identityd refuses the connection.
    var isRefused = false

    var testDescription: String { "uid \(user) in \(group ?? "the cgroup of the test") \(namespaces)" }
  }

  private static let id = String(repeating: "ab", count: 32)
  private static let cases: [Case] = [
    Case(isAdmin: true), Case(namespaces: ["--mount"], isAdmin: true), Case(user: 8, isAdmin: false),
    // Root without capabilities in a PID namespace, as in a container without a user namespace.
    Case(namespaces: Namespaces.process, isAdmin: false), Case(namespaces: Namespaces.container, isAdmin: false),
    Case(namespaces: ["--user"], isAdmin: false), Case(namespaces: Namespaces.user, user: 8, isAdmin: false),
  ]
  private static let groupCases: [Case] = [
    Case(group: "a.service", isAdmin: true), Case(group: "a.scope", isAdmin: true),
    Case(group: "a.service/libpod-payload-\(id)", namespaces: Namespaces.container, isAdmin: false),
    Case(group: "docker-\(id).scope", isAdmin: false), Case(group: "docker-web.scope", isAdmin: false),
    Case(group: "machine-web.scope/payload", isAdmin: false), Case(group: "lxc/web", isAdmin: false),
    Case(group: "a.scope/payload", isAdmin: false, isRefused: true),
    Case(group: "a.scope/machine-web.scope", isAdmin: false, isRefused: true),
  ]

  private func check(_ peer: Case, _ device: FleetUnderTest) throws {
    let group = try peer.group.map { try ControlGroup($0) }
    // A refused process may be unable to send requests.
    func heard(_ requests: String..., at socket: String, isRefused: Bool) throws -> [String] {
      try contained(isRefused ? [] : requests, at: socket, in: group, peer.namespaces, as: peer.user)
    }
    let identityd = try heard("whoami", at: device.daemon.socket, isRefused: peer.isRefused)
    #expect(identityd.count == 1 && identityd[0].hasPrefix("ERR denied ") == peer.isRefused, "\(peer): \(identityd)")
    #expect(identityd.first?.hasSuffix(" admin=yes") == peer.isAdmin, "\(peer): \(identityd)")
    let fleet = try heard("fleet credentials", "account invite", at: device.socket, isRefused: !peer.isAdmin)
    if peer.isAdmin {
      #expect(
        fleet.count == 2 && fleet[0].contains(" password=") && fleet[1].hasPrefix("OK data="), "\(peer): \(fleet)")
    } else {
      #expect(fleet.count == 1 && fleet[0].hasPrefix("ERR denied "), "\(peer): \(fleet)")
    }
  }

  @Test func `an admin at one socket is an admin at the other, and no contained process is`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    #expect(try device.ask("account create alice") == ["OK"])
    for peer in Self.cases + (canMakeControlGroups ? Self.groupCases : []) { try check(peer, device) }
  }

  @Test func `a member of the admin group is served outside of containers alone`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nAdminGroup=games")
    let games = try #require(unsafe getgrnam("games")?.pointee.gr_gid)
    func heard(after input: String, through wrapper: [String] = []) throws -> String {
      let member = ["setpriv", "--reuid=8", "--regid=8", "--groups=\(games)"]
      return try run(
        wrapper + member + ["socat", "-t", "20", "-", "UNIX-CONNECT:\(device.socket)"], input: input
      ).output
    }
    #expect(try heard(after: "fleet status\n").hasSuffix("\nOK\n"))
    // A refused process may be unable to send requests.
    let contained = try heard(after: "", through: ["unshare", "--pid", "--fork"])
    #expect(contained.hasPrefix("ERR denied user:8 (uid 8) lacks admin rights"), "\(contained)")
    try device.reload("Broker=mqtt://127.0.0.1:1")
    try device.wait("the group is not the admins' any more") { try heard(after: "").hasPrefix("ERR denied ") }
  }

  @Test func `the service without its own user's rights tells its peers apart`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1", as: "games")
    #expect(try device.ask("account create alice") == ["OK"])
    for peer in Self.cases { try check(peer, device) }
  }

  @Test func `a connection ends with the process that opened it, after what that process sent`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    let script = """
      import os, socket, sys, time
      s = socket.socket(socket.AF_UNIX)
      def ask(request):
          s.sendall(request); return s.recv(1 << 16)
      reader, writer = os.pipe()
      if os.fork() == 0:
          s.connect(sys.argv[1])
          assert ask(b"fleet status\\n").endswith(b"OK\\n")
          s.sendall(b"account create alice\\n")
          os._exit(0)
      os.wait()
      # This process holds the socket too, and is the one that gets the rest.
      lines = b"".join(iter(lambda: s.recv(1 << 16), b""))
      assert lines.startswith(b"OK\\nERR denied the process that opened this connection has ended"), lines
      assert lines.count(b"\\n") == 2, lines
      """
    let result = try run(["timeout", "\(Int(patience))", "/usr/bin/python3", "-c", script, device.socket])
    #expect(result.status == 0, "\(result)")
    #expect(try device.daemon.ask("account") == "OK alice")
  }

  @Test func `admins are answered while the service waits for identityd`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    let (maker, other) = (try Client(device.socket), try Client(device.socket))
    let daemon = device.daemon.process.processIdentifier
    kill(daemon, SIGSTOP)
    defer { kill(daemon, SIGCONT) }
    try maker.send("account create alice\nfleet status\n")
    #expect(try other.ask("fleet status").contains("* state=no-account"))
    #expect(try other.ask("help fleet status").last?.hasPrefix("OK") == true)
    #expect(!maker.hasInput)
    kill(daemon, SIGCONT)
    #expect(try maker.answer() == ["OK"])
    #expect(try maker.answer().last == "OK")
  }

  @Test func `three processes that flood the socket keep no admin out`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    let flood = """
      import socket, sys
      # Each process has 300 connections that wait to be accepted, and makes them anew once all were refused.
      while True:
          opened = [socket.socket(socket.AF_UNIX) for _ in range(300)]
          for s in opened:
              s.setblocking(False)
              try: s.connect(sys.argv[1])
              except OSError: pass
          for s in opened:
              s.setblocking(True)
              try: s.recv(1)
              except OSError: pass
              s.close()
      """
    let flooders = try (0..<3).map { _ in
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [
        "setpriv", "--reuid=8", "--regid=8", "--clear-groups", "/usr/bin/python3", "-c", flood, device.socket,
      ]
      try process.runUnmasked()
      return process
    }
    defer {
      for process in flooders {
        process.terminate()
        process.waitUntilExit()
      }
    }
    let script = """
      import socket, sys
      failures = []
      for _ in range(100):
          with socket.socket(socket.AF_UNIX) as s:
              try:
                  # A connect that does not wait fails if the queue of the socket is full.
                  s.setblocking(False); s.connect(sys.argv[1]); s.setblocking(True)
                  s.sendall(b"fleet status\\n")
                  text = b""
                  while not text.endswith(b"OK\\n"):
                      part = s.recv(1 << 16)
                      if not part: raise OSError(text)
                      text += part
              except OSError as error: failures.append(repr(error))
      print(len(failures), failures[:3])
      """
    let result = try run(["/usr/bin/python3", "-c", script, device.socket])
    #expect(result.output == "0 []\n", "\(result)")
  }

  @Test func `an admin holds a share of the connections, and root gets in all the same`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nAdminGroup=games")
    let games = try #require(unsafe getgrnam("games")?.pointee.gr_gid)
    let script = """
      import socket, sys
      kept = []
      while True:
          s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(60)
          try: s.sendall(b"fleet status\\n")
          except BrokenPipeError: pass
          line = s.makefile().readline()
          if not line.startswith("*"): break
          kept.append(s)
      sys.stdout.write(f"{len(kept)} {line}"); sys.stdout.flush()
      sys.stdin.read()
      """
    let holder = Process()
    holder.executableURL = URL(filePath: "/usr/bin/env")
    holder.arguments = [
      "setpriv", "--reuid=8", "--regid=8", "--groups=\(games)", "/usr/bin/python3", "-c", script, device.socket,
    ]
    let (input, output) = (Pipe(), Pipe())
    holder.standardInput = input
    holder.standardOutput = output
    try holder.runUnmasked()
    let heard = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    #expect(heard == "32 ERR busy uid 8 has 32 connections and may have no more now\n", "\(heard)")
    let clients = try (0..<60).map { _ in try Client(device.socket) }
    for client in clients { #expect(try client.ask("fleet status").last == "OK") }
    try input.fileHandleForWriting.close()
    holder.waitUntilExit()
    // The places are free again.
    try device.wait("the holder is forgotten") {
      try run(
        [
          "setpriv", "--reuid=8", "--regid=8", "--groups=\(games)", "socat", "-t", "20", "-",
          "UNIX-CONNECT:\(device.socket)",
        ],
        input: "fleet status\n"
      ).output.hasSuffix("\nOK\n")
    }
  }
}
