import Foundation

/// Reads of small stored values: their latency and their throughput.
extension LimitBenchmark {
  /// A server in a comparison.
  private struct Side {
    let server: MeasuredServer
    let generator: Generator
  }

  /// Measures all rows about reads, and stops the servers at the end.
  func reads(_ answers: Answers, _ identityd: MeasuredServer) throws -> [Row] {
    let limit = try MeasuredServer.limit(answers, guardian: guardian)
    let servers = try started([
      limit, identityd, .redis(guardian: guardian), .memcached(guardian: guardian), .uuidd(guardian: guardian),
      .dbusBroker(answers, guardian: guardian),
    ])
    defer { for server in servers { try? server.stop() } }
    let questions = try servers.map { try $0.language.read(answers, on: $0) }
    // uuidd closes each connection after its reply.
    let lasting = zip(servers, questions).filter { $0.0.language != .uuidd }
    var rows = try roundTrips(lasting)
    rows.append(try connects(Array(zip(servers, questions))))
    // Two outstanding requests on one connection to the bus must not have the same serial number.
    let pipelining = lasting.filter { $0.0.language != .dbus }
    for (depth, target) in [(1, 0.95), (16, 0.75), (64, 0.75)] {
      rows.append(try many(pipelining, depth: depth, target: target))
    }
    rows += try polling(answers, limit, identityd)
    rows += try besideChanges(answers)
    return rows
  }

  private func sides(
    _ servers: [(MeasuredServer, Question?)], connections: Int, depth: Int = 1
  ) throws -> [Side] {
    try servers.compactMap { server, question in
      try question.map {
        Side(server: server, generator: try Generator($0, of: server, connections: connections, depth: depth))
      }
    }
  }

  /// Returns the median time, and the CPU time of the server per request.
  private func roundTrip(_ side: Side) throws -> [Double] {
    let before = try side.server.processorTime()
    let slice = try side.generator.ask(seconds: slice)
    return [slice.microseconds, (try side.server.processorTime() - before) / slice.requests]
  }

  private func roundTrips(_ servers: [(MeasuredServer, Question?)]) throws -> [Row] {
    Program.say("round trips")
    let sides = try sides(servers, connections: 1)
    let names = sides.map(\.server.name)
    try Placement.together.apply(to: sides.map(\.server))
    let results = try inTurn(sides, rounds: rounds, roundTrip)
    return [
      row(
        "round trip, 1 connection, same core, p50", .microseconds, names, results, base: "the limit",
        target: .atMost(1.10)),
      row(
        "server CPU per request, 1 connection, same core", .microseconds, names, results, place: 1, base: "the limit",
        target: .atMost(1.10)),
    ]
  }

  private func connects(_ servers: [(MeasuredServer, Question?)]) throws -> Row {
    Program.say("one request a connection")
    let whole = try servers.map { ($0, try $1?.behind($0.language.greeting(of: $0))) }
    let sides = try sides(whole, connections: 0)
    try Placement.together.apply(to: sides.map(\.server))
    let results = try inTurn(sides, rounds: rounds) { [try $0.generator.connect(seconds: slice).microseconds] }
    return row(
      "one request a connection, same core, p50", .microseconds, sides.map(\.server.name), results, base: "the limit",
      target: .atMost(1.10),
      remark: "connect, ask, close; uuidd makes a UUID at random; over D-Bus there is a Hello before the question")
  }

  private func many(_ servers: [(MeasuredServer, Question?)], depth: Int, target: Double) throws -> Row {
    let count = Self.connections
    Program.say("\(count) connections, \(depth) at a time")
    let sides = try sides(servers, connections: count, depth: depth)
    try Placement.apart.apply(to: sides.map(\.server))
    let results = try inTurn(sides, rounds: rounds) { [try $0.generator.ask(seconds: slice).perSecond] }
    return row(
      "\(count) connections x \(depth), requests a second", .perSecond, sides.map(\.server.name), results,
      base: "the limit", target: .atLeast(target))
  }

  /// Measures the effect of busy-polling before the loop sleeps.
  private func polling(_ answers: Answers, _ limit: MeasuredServer, _ identityd: MeasuredServer) throws -> [Row] {
    Program.say("polling")
    let settings = "[Loop]\nPollMicroseconds=50\n[Log]\nLevel=warning\n"
    let polling = try MeasuredServer.identityd("identityd, polling", settings: settings, guardian: guardian)
    let servers = try started([limit, identityd, polling])
    defer { try? polling.stop() }
    let sides = try servers.map { server in
      // Each daemon has its own device identifier.
      let read = try Question("get device\n", asking: server)
      return Side(server: server, generator: try Generator(read, of: server, connections: 1))
    }
    try Placement.apart.apply(to: servers)
    let results = try inTurn(sides, rounds: rounds, roundTrip)
    let names = servers.map(\.name)
    return [
      row("round trip, 1 connection, two cores, p50", .microseconds, names, results, base: "the limit"),
      row(
        "server CPU per request, 1 connection, two cores", .microseconds, names, results, place: 1, base: "the limit"),
    ]
  }

  /// Measures the cost of durable changes of other clients to a reader.
  private func besideChanges(_ answers: Answers) throws -> [Row] {
    Program.say("reads beside durable changes")
    let servers = try started([.identityd(guardian: guardian), .durableRedis(guardian: guardian)])
    defer { for server in servers { try? server.stop() } }
    let sides = try servers.compactMap { server -> (Generator, Generator)? in
      // Each daemon has its own device identifier.
      let answers = server.language == .lines ? try Answers(asking: server) : answers
      guard let read = try server.language.read(answers, on: server),
        let change = try server.language.change(connections: 1, on: server)
      else { return nil }
      return (try Generator(read, of: server, connections: 1), try Generator(change, of: server, connections: 1))
    }
    // If the kernel chose, reader and server would be on one CPU while nothing else runs, and on two CPUs otherwise.
    // The result would include the cost of requests between CPUs.
    try Placement.served.apply(to: servers)
    let results = try inTurn(sides, rounds: rounds) { reading, changing in
      let quiet = try reading.ask(seconds: slice)
      let (busy, changes) = try changing.beside(on: Placement.others) { try reading.ask(seconds: slice) }
      guard changes > 0 else { throw Failure("nothing was changed meanwhile") }
      return [busy.microseconds / quiet.microseconds, busy.microsecondsByTime / quiet.microsecondsByTime]
    }
    let names = servers.map(\.name)
    return [
      row(
        "read p50 while another connection writes durably, by the quiet one", .times, names, results,
        target: .atMost(1.15),
        remark: "always, reader and serving thread on one core, writer on another, other threads of the server free"),
      row(
        "the same by time: how long the read under way takes at any moment", .times, names, results, place: 1,
        remark: "one that waits for the disk is one read, but most of the time"),
    ]
  }
}
