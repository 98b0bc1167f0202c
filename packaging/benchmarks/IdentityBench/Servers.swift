import Foundation
import LinuxSystem

/// The servers, each with the command that its own documentation recommends for these requests.
extension MeasuredServer {
  /// More connections than any row has.
  private static let connections = 10_500

  /// Returns the identityd in the folder of this program.
  ///
  /// - Parameters:
  ///   - settings: the configuration, except for the folder of manifests, which does not exist.
  ///   - wrapper: a command that runs the program with its arguments.
  ///   - program: another file with the same program.
  static func identityd(
    _ name: String = "identityd", settings: String = "[Log]\nLevel=warning\n", guardian: Guardian,
    wrapper: [String] = [], program: String? = nil
  ) throws -> MeasuredServer {
    let program = try program ?? besideThis("identityd")
    return try MeasuredServer(
      name, .lines, guardian: guardian, greeting: Question("ping\n", reply: "OK\n"),
      // The folder does not exist, so that no manifest of this machine has an effect.
      configuration: { "[Apps]\nDirectories=\($0.appending(path: "apps.d").path)\n\(settings)" }
    ) { folder in
      wrapper + [
        program, "--state-directory", folder.appending(path: "state").path, "--socket", socket(in: folder),
        "--config", configurationFile(in: folder).path,
      ]
    }
  }

  /// The configuration of identityd for many connections.
  static let manyConnections = """
    [Limits]
    Connections=\(connections)
    Subscribers=\(connections)
    [Log]
    Level=warning

    """

  /// Returns the limit: a server that answers one request with given bytes and does nothing else.
  static func limit(_ answers: Answers, guardian: Guardian, wrapper: [String] = []) throws -> MeasuredServer {
    let program = try besideThis("LimitServer")
    return try MeasuredServer("the limit", .lines, guardian: guardian, greeting: answers.read) { folder in
      wrapper + [program, socket(in: folder), "get device", answers.text, answers.event]
    }
  }

  /// Returns Redis with all data in memory. Nil if it is not installed.
  static func redis(guardian: Guardian, wrapper: [String] = []) throws -> MeasuredServer? {
    try redis("redis", ["--appendonly", "no"], guardian, wrapper)
  }

  /// Returns Redis with every change on disk before the answer. Nil if it is not installed.
  static func durableRedis(guardian: Guardian) throws -> MeasuredServer? {
    try redis("redis, fsync always", ["--appendonly", "yes", "--appendfsync", "always"], guardian, [])
  }

  private static func redis(
    _ name: String, _ persistence: [String], _ guardian: Guardian, _ wrapper: [String]
  ) throws -> MeasuredServer? {
    guard let program = installed("redis-server") else { return nil }
    return try MeasuredServer(
      name, .redis, guardian: guardian, greeting: Question(Redis.request("PING"), reply: Array("+PONG\r\n".utf8))
    ) { folder in
      wrapper + [
        program, "--port", "0", "--unixsocket", socket(in: folder), "--dir", folder.path, "--save", "",
        "--maxclients", "\(connections)",
      ] + persistence
    }
  }

  /// Returns memcached with one thread, because it has one CPU in the comparisons. Nil if it is not installed.
  static func memcached(guardian: Guardian) throws -> MeasuredServer? {
    guard let program = installed("memcached") else { return nil }
    return try MeasuredServer(
      "memcached", .memcached, guardian: guardian, greeting: Question("get nothing\r\n", reply: "END\r\n")
    ) { folder in
      [program, "--unix-socket=\(socket(in: folder))", "--threads=1", "--conn-limit=\(connections)", "--user=root"]
    }
  }

  /// Returns uuidd, which makes a random UUID for each connection. Nil if it is not installed.
  static func uuidd(guardian: Guardian) throws -> MeasuredServer? {
    guard let program = installed("uuidd") else { return nil }
    return try MeasuredServer("uuidd", .uuidd, guardian: guardian, greeting: Language.randomUUID) { folder in
      [program, "--no-fork", "--no-pid", "--quiet", "--socket", socket(in: folder)]
    }
  }

  /// Returns mosquitto, which stores nothing. Nil if it is not installed.
  static func mosquitto(guardian: Guardian) throws -> MeasuredServer? {
    guard let program = installed("mosquitto") else { return nil }
    return try MeasuredServer(
      "mosquitto", .mqtt, guardian: guardian, greeting: Question(MQTT.connect, reply: MQTT.connected),
      configuration: {
        "listener 0 \(socket(in: $0))\nallow_anonymous true\npersistence false\nlog_type error\nuser root\n"
      }
    ) { folder in [program, "-c", configurationFile(in: folder).path] }
  }

  /// Returns dbus-broker with the limits of a user's session, and a service on it. Nil if it is not installed.
  static func dbusBroker(_ answers: Answers, guardian: Guardian) throws -> MeasuredServer? {
    guard let broker = installed("dbus-broker") else { return nil }
    let program = try besideThis("BusService")
    return try MeasuredServer("dbus-broker, service", .dbus, guardian: guardian, greeting: DBus.authenticate) {
      [program, broker, socket(in: $0), answers.text]
    }
  }

  /// Returns the path of a program. Nil if it is not installed.
  static func installed(_ name: String) -> String? {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"].map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Returns the path of a program in the folder of this one.
  static func besideThis(_ name: String) throws -> String {
    let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: name)
    guard FileManager.default.isExecutableFile(atPath: program.path) else {
      throw Failure("there is no \(program.path): run packaging/bench, which builds it")
    }
    return program.path
  }
}
