import Foundation
import LinuxSystem
import TestSupport
import Testing

private let tellsGroups =
  (try? ProcessFacts.controlGroup(of: PeerCredentials.processDescriptor(number: getpid()))) != nil

/// The system calls of the daemon, compared with the filter in its unit.
@Suite(.enabled(if: isRoot, "tracing the daemon needs root")) struct SystemCallTests {
  /// Returns systemd's sets of system calls with their members, which may be sets too (systemd.exec(5)).
  private func sets() throws -> [String: [String]] {
    var sets: [String: [String]] = [:]
    var current = ""
    for line in try run(["systemd-analyze", "--no-pager", "syscall-filter"]).output.split(separator: "\n") {
      let word = line.trimmingCharacters(in: .whitespaces)
      if line.hasPrefix("@") { current = word } else if !word.hasPrefix("#") { sets[current, default: []].append(word) }
    }
    return sets
  }

  private func members(_ name: String, of sets: [String: [String]]) -> Set<String> {
    guard name.hasPrefix("@") else { return [name] }
    return (sets[name] ?? []).reduce(into: []) { $0.formUnion(members($1, of: sets)) }
  }

  /// Returns the system calls that `SystemCallFilter=` of the shipped unit allows.
  private func allowed() throws -> Set<String> {
    let unit = Document.root.appending(path: "systemd/identityd.service")
    let sets = try sets()
    // Every filter allows @default.
    var allowed = members("@default", of: sets)
    for line in try String(contentsOf: unit, encoding: .utf8).split(separator: "\n") {
      guard line.hasPrefix("SystemCallFilter=") else { continue }
      let list = line.dropFirst("SystemCallFilter=".count)
      let calls = list.trimmingPrefix("~").split(separator: " ").map { members(String($0), of: sets) }
      for group in calls { if list.hasPrefix("~") { allowed.subtract(group) } else { allowed.formUnion(group) } }
    }
    return allowed
  }

  /// Returns the loop's calls for each connection, from its accept to the next wait, or to the timer of all connections
  /// before that wait.
  private func callsOfConnections(in trace: URL, of process: Int32) throws -> [[String]] {
    var connections: [[String]] = []
    var isOpen = false
    for line in try String(contentsOf: trace, encoding: .utf8).split(separator: "\n") {
      guard let call = line.firstMatch(of: /^([0-9]+) +([a-z0-9_]+)\(/), call.1 == "\(process)" else { continue }
      if call.2 == "accept4" {
        connections.append([])
        isOpen = true
      } else if call.2.hasPrefix("epoll_") || call.2 == "timerfd_settime" {
        isOpen = false
      }
      // Maps the names of calls that some machines make instead.
      let name = ["newfstatat": "fstat", "ppoll": "poll"][String(call.2)] ?? String(call.2)
      if isOpen { connections[connections.count - 1].append(name) }
    }
    return connections
  }

  /// Connects clients with one request each. The daemon is stopped until all of them have sent all their bytes.
  private func connect(_ count: Int, to daemon: DaemonUnderTest) throws {
    kill(daemon.process.processIdentifier, SIGSTOP)
    let clients = try (0..<count).map { _ in
      let client = try daemon.client()
      try client.send("get boot\n")
      try client.endWriting()
      return client
    }
    kill(daemon.process.processIdentifier, SIGCONT)
    for client in clients { #expect(try client.rest().count == 1) }
  }

  @Test(
    .enabled(if: tellsGroups, "kernels before 6.13 do not tell the control group by the process"),
    arguments: [false, true])
  func `an admin's connection with one request costs 14 system calls`(isManaged: Bool) throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    let manager = try isManaged ? PlayedManager(in: daemon.folder) : nil
    let socket = manager.map { ["-E", "NOTIFY_SOCKET=\($0.path)"] } ?? []
    try daemon.start(through: ["strace", "-D", "-f", "-o", trace.path] + socket)
    let process = daemon.process.processIdentifier
    // Memory that is released later would have to be allocated again by the first measured connection.
    try daemon.waitForRelease(in: trace)
    try connect(4, to: daemon)
    let before = try callsOfConnections(in: trace, of: process).count
    try connect(4, to: daemon)
    daemon.end()
    // Leaves out the last accept4, which belongs to the stop.
    let calls = try callsOfConnections(in: trace, of: process).dropFirst(before).prefix(4)
    #expect(calls.count == 4)
    for calls in calls {
      #expect(
        calls == [
          // The facts about the peer: two from the socket, then the cgroup, the inode, for an admin the user namespace,
          // and whether the process is alive.
          "accept4", "getsockopt", "getsockopt", "ioctl", "fstat", "openat", "read", "close", "poll",
          // The request, the answer, the end of the stream.
          "recvmsg", "sendto", "recvmsg",
          // The pidfd of the connection before, which is kept until now, and the socket.
          "close", "close",
        ])
    }
  }

  @Test func `row 52: the filter of the unit allows every system call that the daemon makes`() throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    let manager = try PlayedManager(in: daemon.folder)
    let tracing = [
      "strace", "-D", "-f", "-o", trace.path, "-E", "NOTIFY_SOCKET=\(manager.path)", "-E", "WATCHDOG_USEC=300000",
    ]
    let key = Data(repeating: 7, count: 32).base64EncodedString()
    let settings =
      "[Store]\nCheckpointSize=64K\n[Apps]\nDirectories=\(daemon.folder.path)/apps \(daemon.folder.path)/more\n"
    try FileManager.default.createDirectory(
      at: daemon.folder.appending(path: "apps"), withIntermediateDirectories: true)
    try daemon.start(through: tracing, configuration: settings)
    let subscriber = try daemon.client()
    _ = try subscriber.subscribe()
    let client = try daemon.client()
    for request in [
      "get device", "get installation", "get vendor", "get session", "get boot", "get key k", "get uuid count=10000",
      "item put service=s account=a data=eA==", "item read service=s account=a", "key rotate", "item delete account=a",
      "version report 1.0", "token put p t", "account set x", "renew device", "backup key=\(key)", "status", "app list",
    ] {
      #expect(try client.ask(request).last?.hasPrefix("OK") == true, "\(request)")
    }
    for number in 0..<40 {
      let big = String(repeating: "A", count: 8_000)
      #expect(try client.ask("item put service=s account=a\(number) data=\(big)") == ["OK created"])
    }
    // Installs a manifest, loses the store so that it is rewritten, and reloads the configuration.
    try Data("[App]\nUser=daemon\n".utf8).write(to: daemon.folder.appending(path: "apps/org.example.app"))
    try daemon.waitForLog("org.example is installed")
    try FileManager.default.removeItem(at: daemon.state.appending(path: "identityd.db"))
    try daemon.eventually("account set y")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try daemon.ask("seal") == "OK")
    #expect(daemon.end() == 0)
    // Starts the daemon again on that state, which is sealed.
    try daemon.start(through: tracing)
    #expect(daemon.end() == 0)
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let called = Set(lines.compactMap { $0.firstMatch(of: /^[0-9]+ +([a-z0-9_]+)\(/).map { String($0.1) } })
    // execve starts the program. SQLite calls fchown only as root, and the unit's daemon is not root.
    let denied = called.subtracting(try allowed()).subtracting(["execve", "fchown"])
    #expect(denied.isEmpty, "\(denied.sorted())")
    // Makes sure that the trace is the daemon's.
    #expect(
      called.isSuperset(of: ["fdatasync", "accept4", "getrandom", "memfd_create", "renameat"]), "\(called.sorted())")
  }
}
