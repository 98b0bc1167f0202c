import Foundation

/// The memory of idle servers.
extension LimitBenchmark {
  /// Measures all rows about memory.
  func memory(_ answers: Answers) throws -> [Row] {
    Program.say("memory")
    return try rest(answers) + [idle(answers)]
  }

  /// Returns the time in which a server becomes idle, in microseconds. Redis frees the memory of a connection
  /// after two seconds.
  private static func rest(_ language: Language) -> UInt32 { language == .redis ? 3_500_000 : 1_000_000 }

  /// Measures new servers, each with its own configuration for a usual number of connections.
  private func rest(_ answers: Answers) throws -> [Row] {
    let servers = try started([
      .limit(answers, guardian: guardian), .identityd(guardian: guardian), .redis(guardian: guardian),
      .memcached(guardian: guardian), .uuidd(guardian: guardian), .mosquitto(guardian: guardian),
    ])
    defer { for server in servers { try? server.stop() } }
    usleep(Self.rest(.redis))
    let names = servers.map(\.name)
    let results = try servers.map { server in
      [[Double(try server.proportionalMemory()) / 1e6, Double(try server.privateMemory()) / 1e6]]
    }
    return [
      row("memory at rest, PSS", .megabytes, names, results, target: .atMost(6.5)),
      row("memory at rest, private dirty", .megabytes, names, results, place: 1, target: .atMost(1.0)),
    ]
  }

  /// Measures the memory that each connection adds after one request.
  private func idle(_ answers: Answers) throws -> Row {
    let servers = try started([
      .limit(answers, guardian: guardian), .identityd(settings: MeasuredServer.manyConnections, guardian: guardian),
      .redis(guardian: guardian), .memcached(guardian: guardian), .mosquitto(guardian: guardian),
    ])
    defer { for server in servers { try? server.stop() } }
    // The first connection allocates memory that all connections share.
    let questions = try servers.map { server in
      switch server.language {
      case .lines: try Question("get device\n", asking: server)
      default: try server.language.read(answers, on: server) ?? server.greeting
      }
    }
    usleep(Self.rest(.lines))
    try Placement.together.apply(to: servers)
    let measurements = try zip(servers, questions).map { server, question in
      let before = try server.privateMemory()
      let generator = try Generator(question, of: server, connections: Self.waiting)
      usleep(Self.rest(server.language))
      let grown = try server.privateMemory() - before
      return withExtendedLifetime(generator) { Measurement(server.name, [Double(grown) / Double(Self.waiting)]) }
    }
    return Row(
      "memory of the server per idle connection, of \(Self.waiting.grouped)", .bytes, measurements,
      target: .atMost(512), remark: "private dirty; each connection has asked once")
  }
}
