import Foundation

/// A real cluster of three nats-servers with JetStream and MQTT. Each node, and a place for clients, is in a network
/// namespace of its own, so that nothing leaves the machine and nodes can be cut off. Needs root.
package final class ClusterUnderTest: MessageBroker {
  /// The path of nats-server; nil if there is none. packaging/test fetches it.
  package static let program = ProcessInfo.processInfo.environment["IDENTITYD_NATS_SERVER"]
  /// The reason why no cluster boots; nil if one does.
  package static let missing: String? =
    program == nil
    ? "IDENTITYD_NATS_SERVER is not set: packaging/test sets it to the nats-server that it fetches"
    : Trial.isShort ? "a cluster would repeat what a sanitizer sees with one broker" : nil
  /// The numbers of the nodes.
  package static let nodes = 1...3

  private let folder: TemporaryFolder
  /// The processes that hold the namespaces: that of the switch and the clients, and those of the nodes.
  private var holders: [Process] = []
  private var servers: [Int: Process] = [:]
  private var users: [String: String] = [:]

  /// Boots a cluster, and waits until all nodes store and show messages.
  package init() throws {
    folder = try TemporaryFolder()
    for _ in 0...Self.nodes.upperBound { holders.append(try Self.spawn(["unshare", "--net", "sleep", "infinity"])) }
    try waitForNamespaces()
    try inside(0, "ip link add bridge type bridge && ip address add 192.0.2.1/24 dev bridge && ip link set bridge up")
    for node in Self.nodes {
      let process = holders[node].processIdentifier
      try inside(
        0,
        "ip link add port\(node) type veth peer name wire netns \(process) && ip link set port\(node) master bridge up")
      try inside(
        node, "ip link set lo up && ip address add \(Self.address(node))/24 dev wire && ip link set wire up")
    }
    try boot()
  }

  deinit { for process in servers.values + holders { Self.kill(process) } }

  private static func address(_ node: Int) -> String { "192.0.2.\(10 + node)" }

  private static func spawn(_ command: [String]) throws -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    return process
  }

  private static func kill(_ process: Process) {
    guard process.isRunning else { return }
    _ = Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  // MARK: Networks

  private func waitForNamespaces() throws {
    func namespace(_ process: String) throws -> String {
      try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/ns/net")
    }
    let own = try namespace("self")
    try wait("the namespaces exist") {
      try holders.allSatisfy { try namespace("\($0.processIdentifier)") != own }
    }
  }

  /// The command that starts another one in the network of a node; 0 for that of the clients.
  package func place(of node: Int) -> [String] {
    ["nsenter", "--net=/proc/\(holders[node].processIdentifier)/ns/net"]
  }

  private func inside(_ node: Int, _ script: String) throws {
    let result = try run(place(of: node) + ["sh", "-c", script])
    guard result.status == 0 else { throw Failure("\(script): \(result.errors)") }
  }

  /// Separates a node, and everything else in its network, from all others.
  package func cut(_ node: Int) throws { try inside(0, "ip link set port\(node) down") }

  /// Ends the separation.
  package func heal(_ node: Int) throws { try inside(0, "ip link set port\(node) up") }

  // MARK: Nodes

  private func boot() throws {
    // Nodes that start at the same moment sometimes find no place for their streams.
    for attempt in 1...3 {
      for node in Self.nodes { try start(node) }
      do {
        return try wait("the cluster works", for: attempt == 3 ? patience : 30) {
          Self.nodes.allSatisfy(isReady)
        }
      } catch {
        guard attempt < 3 else { throw Failure("\(error): \(Self.nodes.map(log))") }
        for node in Self.nodes { try wipe(node) }
      }
    }
  }

  /// Starts a node, and waits until it listens to the others.
  package func start(_ node: Int) throws {
    guard let program = Self.program else { throw Failure("no nats-server") }
    try configure(node)
    servers[node] = try Self.spawn(place(of: node) + [program, "--config", folder["\(node).conf"]])
    try wait("node \(node) listens") {
      try run(place + ["bash", "-c", "exec 3<>/dev/tcp/\(Self.address(node))/6222"]).status == 0
    }
  }

  private func configure(_ node: Int) throws {
    func user(_ name: String, _ password: String, _ topics: String...) -> String {
      let list = topics.map { "\"identityd.v1.\($0)>\"" }.joined(separator: ", ")
      return "{ user: \(name), password: \"\(password)\", "
        + "permissions: { publish: [\(list)], subscribe: [\(list), \"$MQTT.sub.>\"] } }"
    }
    // One user for each account. Anybody else is the user of a whole site.
    let accounts = users.map { user($0, $1, "\($0).", "join.") }
    let configuration = ClusterNode(
      number: node, addresses: ("127.0.0.1:4222", "\(Self.address(node)):1883", "\(Self.address(node)):6222"),
      nodes: Self.nodes.map { "\(Self.address($0)):6222" }, store: folder["\(node)"],
      users: ["{ user: admin, password: admin }", user("site", "site", "")] + accounts)
    try folder.write("\(node).conf", configuration.text)
  }

  /// Whether a node stores a message and shows it.
  private func isReady(_ node: Int) -> Bool {
    let broker = ["-h", Self.address(node), "-t", "identityd/v1/ready"]
    let stored = try? run(place + ["mosquitto_pub"] + broker + ["-q", "1", "-r", "-m", "ready"])
    let shown = try? run(place + ["mosquitto_sub"] + broker + ["-C", "1", "-W", "1"])
    return stored?.status == 0 && shown?.output == "ready\n"
  }

  /// Waits until a node stores a message and shows it.
  package func waitUntilReady(_ node: Int) throws {
    try wait("node \(node) works") { isReady(node) }
  }

  /// Lets another user in, who may use the topics of an account.
  package func admit(_ user: String, password: String) throws {
    users[user] = password
    try reload()
  }

  /// Lets a user in no longer.
  package func dismiss(_ user: String) throws {
    users[user] = nil
    try reload()
  }

  private func reload() throws {
    for (node, process) in servers where process.isRunning {
      try configure(node)
      _ = Foundation.kill(process.processIdentifier, SIGHUP)
    }
  }

  /// Deletes the retained messages of an account, of which no subscriber hears. Returns their number.
  package func purge(_ account: String) throws -> Int {
    let answer = try administer("PURGE", #"{"filter":"$MQTT.rmsgs.identityd.v1.\#(account).>"}"#)
    guard let count = answer.firstMatch(of: /"purged":(\d+)/).flatMap({ Int($0.1) }) else { throw Failure(answer) }
    return count
  }

  /// Returns the number of the retained messages of an account. Nodes show some of them from a cache.
  package func stored(_ account: String) throws -> Int {
    let filter = "$MQTT.rmsgs.identityd.v1.\(account)."
    return try administer("INFO", #"{"subjects_filter":"\#(filter)>"}"#).components(separatedBy: filter).count - 1
  }

  /// Asks a node about the stream with the retained messages, as an admin does. Returns the answer.
  private func administer(_ action: String, _ request: String) throws -> String {
    let lines = [
      #"CONNECT {"user":"admin","pass":"admin","verbose":false}"#, "SUB answer 1",
      "PUB $JS.API.STREAM.\(action).$MQTT_rmsgs answer \(request.utf8.count)", request,
    ]
    let script = "exec 3<>/dev/tcp/127.0.0.1/4222 && cat >&3 && timeout \(Int(patience)) sed -n '/io.nats/{p;q}' <&3"
    let answer = try runClient(place(of: 1) + ["bash", "-c", script], input: lines.map { "\($0)\r\n" }.joined())
    guard answer.status == 0, answer.output.contains("io.nats"), !answer.output.contains("\"error\"") else {
      throw Failure("\(action): status \(answer.status): \(answer.output)\(answer.errors)")
    }
    return answer.output
  }

  /// Kills a node with SIGKILL.
  package func kill(_ node: Int) { servers.removeValue(forKey: node).map(Self.kill) }

  /// Kills a node, and deletes its state, as if it had a new disk.
  package func wipe(_ node: Int) throws {
    kill(node)
    try? FileManager.default.removeItem(atPath: folder["\(node)"])
  }

  /// The log of a node so far.
  package func log(_ node: Int) -> String { (try? folder.text("\(node).log")) ?? "" }

  // MARK: MessageBroker

  package var configuration: String {
    Self.nodes.map { "Broker=mqtt://\(Self.address($0))\n" }.joined() + "AllowPlaintext=yes"
  }
  package var place: [String] { place(of: 0) }
  package var address: (host: String, port: UInt16) { (Self.address(servers.keys.min() ?? 1), 1883) }

  package func forget() throws {
    for node in Self.nodes { try wipe(node) }
    try boot()
  }
}
