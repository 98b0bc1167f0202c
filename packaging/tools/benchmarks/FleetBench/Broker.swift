import Foundation
import Glibc

/// A broker for a measurement: one Mosquitto, or a NATS cluster with its MQTT gateway, on the loopback interface.
final class Broker {
  /// The kinds of brokers, by the word for them in the options.
  enum Engine: String, CaseIterable {
    case mosquitto, nats
  }

  private let engine: Engine
  private let folder: URL
  /// Nil for a broker without TLS.
  let security: TransportSecurity?
  /// The MQTT ports of the nodes.
  let ports: [UInt16]
  private var nodes: [Process] = []

  /// Starts a broker.
  ///
  /// - Parameter base: the first of up to nine free ports.
  init(
    _ engine: Engine, base: UInt16, _ security: TransportSecurity? = nil, keepsMessages: Bool = false
  ) throws {
    self.engine = engine
    self.security = security
    folder = FileManager.default.temporaryDirectory.appending(path: "fleet-bench-\(Foundation.UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    switch engine {
    case .mosquitto:
      ports = [base]
      let lines = [
        "listener \(base) 127.0.0.1",
        security.map { "certfile \($0.certificate)\nkeyfile \($0.key)" } ?? "", "allow_anonymous true",
        "persistence \(keepsMessages)",
        "persistence_location \(folder.path)/", "autosave_interval 1800", "max_queued_messages 0",
        "log_dest none", getuid() == 0 ? "user root" : "",
      ]
      try Data(lines.joined(separator: "\n").utf8).write(to: folder.appending(path: "mosquitto.conf"))
    case .nats:
      ports = [base, base + 1, base + 2]
      let nodes = (base + 6..<base + 9).map { "127.0.0.1:\($0)" }
      for node in 0..<3 {
        let configuration = ClusterNode(
          number: node,
          addresses: ("127.0.0.1:\(Int(base) + 3 + node)", "127.0.0.1:\(Int(base) + node)", nodes[node]),
          nodes: nodes, store: folder.appending(path: "node\(node)").path, users: ["{ user: site, password: site }"],
          certificate: security.map { ($0.certificate, $0.key) })
        try Data(configuration.text.utf8).write(to: folder.appending(path: "node\(node).conf"))
      }
    }
    try start()
  }

  deinit {
    kill()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Starts the nodes, one after the other, and waits until each answers a subscriber.
  func start() throws {
    for place in ports.indices {
      let process = Process()
      switch engine {
      case .mosquitto:
        process.executableURL = URL(filePath: "/usr/sbin/mosquitto")
        process.arguments = ["-c", folder.appending(path: "mosquitto.conf").path]
      case .nats:
        process.executableURL = URL(
          filePath: ProcessInfo.processInfo.environment["IDENTITYD_NATS_SERVER"] ?? "/usr/sbin/nats-server")
        process.arguments = ["-c", folder.appending(path: "node\(place).conf").path]
      }
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      nodes.append(process)
      // Nodes that start at the same moment sometimes find no place for their streams.
      if engine == .nats {
        let route = ports[0] + 6 + UInt16(place)
        try wait(for: route) { try Self.isListening(route) }
      }
    }
    for port in ports { try wait(for: port) { try Probe.answers(port, security) } }
  }

  /// Waits until a port answers. The program behind it has to be one of the nodes, not one that was there before.
  private func wait(for port: UInt16, until answers: () throws -> Bool) throws {
    let deadline = Date(timeIntervalSinceNow: 60)
    var isAnswered = false
    while !isAnswered {
      isAnswered = try answers()
      guard nodes.allSatisfy(\.isRunning), Date() < deadline else {
        throw BenchError("\(engine.rawValue) does not answer at port \(port)")
      }
      if !isAnswered { usleep(50_000) }
    }
  }

  /// Returns whether a program listens at a port of the loopback interface.
  private static func isListening(_ port: UInt16) throws -> Bool {
    // The state 0A is LISTEN.
    try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
      .contains(String(format: " 0100007F:%04X 00000000:0000 0A ", port))
  }

  /// Kills all nodes with SIGKILL.
  func kill() {
    for process in nodes where process.isRunning {
      _ = Glibc.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
    nodes = []
  }

  /// Ends all nodes, which save their messages first.
  func end() {
    for process in nodes where process.isRunning {
      process.terminate()
      process.waitUntilExit()
    }
    nodes = []
  }

  /// The resident memory of each node on average, in kilobytes.
  var memory: Double { average { Self.field("VmRSS:", of: $0) } }

  /// The CPU time of all nodes together so far, in seconds.
  var processorTime: Double {
    nodes.reduce(0) { sum, process in
      let stat = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)) ?? ""
      let fields = stat.split(separator: " ")
      guard fields.count > 14, let user = Double(fields[13]), let system = Double(fields[14]) else { return sum }
      return sum + (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
  }

  private func average(_ value: (Int32) -> Double) -> Double {
    nodes.isEmpty ? 0 : nodes.reduce(0) { $0 + value($1.processIdentifier) } / Double(nodes.count)
  }

  private static func field(_ name: String, of process: Int32) -> Double {
    let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
    return line.flatMap { Double($0.split(whereSeparator: { !$0.isNumber }).first ?? "") } ?? 0
  }

  /// The resident memory of this program, in kilobytes.
  static var ownMemory: Double { field("VmRSS:", of: getpid()) }
}
