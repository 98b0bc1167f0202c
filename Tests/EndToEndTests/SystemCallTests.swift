import Foundation
import LinuxSystem
import TestSupport
import Testing

private let tellsGroups =
  (try? ProcessFacts.controlGroup(of: PeerCredentials.processDescriptor(number: getpid()))) != nil

/// What the daemon asks of the kernel, against what its unit lets it ask.
@Suite(.enabled(if: isRoot, "tracing the daemon needs root")) struct SystemCallTests {
  /// The sets of system calls that systemd knows, each with its members, which may be sets (systemd.exec(5)).
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

  /// What `SystemCallFilter=` of the shipped unit allows.
  private func allowed() throws -> Set<String> {
    let unit = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../systemd/identityd.service")
    let sets = try sets()
    // With any filter at all @default is allowed.
    var allowed = members("@default", of: sets)
    for line in try String(contentsOf: unit, encoding: .utf8).split(separator: "\n") {
      guard line.hasPrefix("SystemCallFilter=") else { continue }
      let list = line.dropFirst("SystemCallFilter=".count)
      let calls = list.trimmingPrefix("~").split(separator: " ").map { members(String($0), of: sets) }
      for group in calls { if list.hasPrefix("~") { allowed.subtract(group) } else { allowed.formUnion(group) } }
    }
    return allowed
  }

  /// What the loop calls for each connection, from its accepting to the next wait. A timer of all is set before that.
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
      // What some machines call a call by another name.
      let name = ["newfstatat": "fstat", "ppoll": "poll"][String(call.2)] ?? String(call.2)
      if isOpen { connections[connections.count - 1].append(name) }
    }
    return connections
  }

  /// Has clients ask one thing each. All that each does is done before the daemon sees any of it.
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
  func `a connection of one request costs eleven system calls, also where a service manager keeps those that last`(
    isManaged: Bool
  ) throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    let manager = try isManaged ? PlayedManager(in: daemon.folder) : nil
    let socket = manager.map { ["-E", "NOTIFY_SOCKET=\($0.path)"] } ?? []
    try daemon.start(through: ["strace", "-D", "-f", "-o", trace.path] + socket)
    let process = daemon.process.processIdentifier
    // The memory that it gives back then is not had again for the first of them.
    try daemon.waitForRelease(in: trace)
    try connect(4, to: daemon)
    let before = try callsOfConnections(in: trace, of: process).count
    try connect(4, to: daemon)
    daemon.end()
    // The stop asks whether there is another one.
    let calls = try callsOfConnections(in: trace, of: process).dropFirst(before).prefix(4)
    #expect(calls.count == 4)
    for calls in calls {
      #expect(
        calls == [
          // Who it is, by the kernel's word: twice of the socket, then its group, its number, and whether it lives.
          "accept4", "getsockopt", "getsockopt", "ioctl", "fstat", "poll",
          // The request, the answer, the end of the stream.
          "recvmsg", "sendto", "recvmsg",
          // The process of the connection before, and the connection.
          "close", "close",
        ])
    }
  }

  @Test func `row 52: everything that it does in its life is allowed by the filter of its unit`() throws {
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
    // A manifest comes, the store is lost and written anew, the configuration is read again.
    try Data("[App]\nUser=daemon\n".utf8).write(to: daemon.folder.appending(path: "apps/org.example.app"))
    try daemon.waitForLog("org.example is installed")
    try FileManager.default.removeItem(at: daemon.state.appending(path: "identityd.db"))
    try daemon.eventually("account set y")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try daemon.ask("seal") == "OK")
    #expect(daemon.end() == 0)
    // And it is started where all of that is there.
    try daemon.start(through: tracing)
    #expect(daemon.end() == 0)
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let called = Set(lines.compactMap { $0.firstMatch(of: /^[0-9]+ +([a-z0-9_]+)\(/).map { String($0.1) } })
    // The first starts the program; the second SQLite asks of root alone, which the unit's daemon is not.
    let denied = called.subtracting(try allowed()).subtracting(["execve", "fchown"])
    #expect(denied.isEmpty, "\(denied.sorted())")
    // Else the trace was not of it.
    #expect(
      called.isSuperset(of: ["fdatasync", "accept4", "getrandom", "memfd_create", "renameat"]), "\(called.sorted())")
  }
}
