import CSQLite
import Foundation
import LinuxSystem

/// Measures how close identityd is to the limit of the machine.
///
/// The limit of reads is a server in C with epoll that sends fixed bytes. The limit of durable changes is SQLite alone,
/// which writes the same rows on one thread: without clients, rights and proofs.
struct LimitBenchmark {
  /// The number of connections in rows with many connections.
  private static let connections = 50

  let options: Options
  let guardian: Guardian
  private var rounds: Int { options.rounds(usual: 15, quick: 5) }
  /// The duration of one turn, in seconds.
  private var slice: Double { options.isQuick ? 0.05 : 0.1 }
  /// The duration of one turn with waits for the disk, in seconds.
  private var durableSlice: Double { options.isQuick ? 0.1 : 0.4 }

  /// Measures all rows, one after the other.
  func run() throws -> [Row] {
    guard geteuid() == 0 else { throw BenchError("apps of many users take root") }
    defer { try? Placement.anywhere.apply(to: []) }
    if options.syncDelay != nil { return try changes() }
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    try identityd.start()
    let read = try Question("get device\n", asking: identityd)
    let costs = LimitCosts(options: options, guardian: guardian, read: read)
    let rows = try reads(read, identityd) + [besideChanges()] + changes() + costs.run()
    try identityd.stop()
    return rows
  }

  // MARK: Reads

  /// Measures reads of a small stored value: their latency and their throughput.
  private func reads(_ read: Question, _ identityd: MeasuredServer) throws -> [Row] {
    let limit = try MeasuredServer.limit(read, guardian: guardian)
    try limit.start()
    defer { limit.end() }
    let servers = [limit, identityd]
    var rows = try roundTrips(
      servers.map { ($0, read) }, .together, "same core", target: .atMost(1.10))
    Program.say("one request a connection")
    rows.append(
      try row("one request a connection, same core, p50", "µs", servers, .together, target: .atMost(1.10)) {
        let generator = try Generator(read, of: $0, connections: 0)
        return { try generator.connect(seconds: slice).microseconds }
      })
    for (depth, target) in [(1, 0.95), (16, 0.75), (64, 0.75)] {
      let name = "\(Self.connections) connections x \(depth), requests a second"
      Program.say(name)
      rows.append(
        try row(name, "/s", servers, .apart, target: .atLeast(target)) {
          let generator = try Generator(read, of: $0, connections: Self.connections, depth: depth)
          return { try generator.ask(seconds: slice).perSecond }
        })
    }
    // The effect of busy-polling before the loop sleeps.
    let polling = try MeasuredServer.identityd(
      "identityd, polling", settings: "[Loop]\nPollMicroseconds=50\n", guardian: guardian)
    try polling.start()
    defer { polling.end() }
    // Each daemon has its own device identifier.
    let others = try [(polling, Question("get device\n", asking: polling))]
    return try rows + roundTrips(servers.map { ($0, read) } + others, .apart, "two cores", target: nil)
  }

  /// Measures each server as a function does that is made for it, in comparison with the limit.
  private func row(
    _ name: String, _ unit: String, _ servers: [MeasuredServer], _ placement: Placement, target: Target,
    _ prepare: (MeasuredServer) throws -> () throws -> Double
  ) throws -> Row {
    let sides = try servers.map(prepare)
    try placement.apply(to: servers)
    let results = try inTurn(sides, rounds: rounds) { [try $0()] }
    return Row(name, unit, servers.map(\.name), results, base: "the limit", target: target)
  }

  /// Measures the median time of a request on one connection, and the processor time of the server for it.
  private func roundTrips(
    _ servers: [(server: MeasuredServer, read: Question)], _ placement: Placement, _ place: String, target: Target?
  ) throws -> [Row] {
    Program.say("round trips, \(place)")
    let sides = try servers.map { ($0.server, try Generator($0.read, of: $0.server, connections: 1)) }
    try placement.apply(to: servers.map(\.server))
    let results = try inTurn(sides, rounds: rounds) { server, generator in
      let before = try server.processorTime()
      let slice = try generator.ask(seconds: slice)
      return [slice.microseconds, (try server.processorTime() - before) / slice.requests]
    }
    let names = servers.map(\.server.name)
    return ["round trip, 1 connection, \(place), p50", "server CPU per request, 1 connection, \(place)"].enumerated()
      .map { Row($1, "µs", names, results, place: $0, base: "the limit", target: target) }
  }

  /// Measures the cost of durable changes of other clients to a reader.
  private func besideChanges() throws -> Row {
    Program.say("reads beside durable changes")
    let server = try MeasuredServer.identityd(guardian: guardian)
    try server.start()
    defer { server.end() }
    let reading = try Generator(Question("get device\n", asking: server), of: server, connections: 1)
    let changing = try Generator(.token(1, of: server), of: server, connections: 1)
    // If the kernel chose, reader and server would be on one processor while nothing else runs, and on two otherwise.
    // The result would include the cost of requests between processors.
    try Placement.served.apply(to: [server])
    let results = try inTurn([server], rounds: rounds) { _ in
      let quiet = try reading.ask(seconds: slice)
      let (busy, changes) = try changing.beside { try reading.ask(seconds: slice) }
      guard changes > 0 else { throw BenchError("nothing was changed meanwhile") }
      return [busy.microseconds / quiet.microseconds]
    }
    return Row(
      "read p50 while another connection writes durably, by the quiet one", "x", [server.name], results,
      target: .atMost(1.15),
      remark: "reader and serving thread on one core, writer on another, other threads of the server free")
  }

  // MARK: Durable changes

  /// Measures changes that are on disk before they are answered.
  private func changes() throws -> [Row] {
    let server = try MeasuredServer.identityd(guardian: guardian)
    try server.start()
    defer { server.end() }
    try Placement.anywhere.apply(to: [server])
    let database = try BareDatabase(at: guardian.folder.appending(path: "bare.sqlite").path)
    // The targets on a disk, and with syncs that take no time.
    let loads: [(connections: Int, depth: Int, disk: Double?, free: Double?)] = [
      (1, 1, 0.70, 0.30), (Self.connections, 1, nil, nil), (Self.connections, 16, nil, 0.20),
    ]
    return try loads.map { connections, depth, disk, free in
      let name = "durable changes a second, \(connections) connections x \(depth)"
      Program.say(name)
      let generators = try [Question.token(connections, of: server), .item(connections, of: server)].map {
        try Generator($0, of: server, connections: connections, depth: depth)
      }
      let sides: [() throws -> Double] =
        [{ try database.changes(of: connections * depth, seconds: durableSlice) }]
        + generators.map { generator in { try generator.ask(seconds: durableSlice).perSecond } }
      let results = try inTurn(sides, rounds: rounds) { [try $0()] }
      return Row(
        name, "/s", ["SQLite alone", "identityd", "identityd, item put"], results, base: "SQLite alone",
        target: (options.syncDelay == nil ? disk : options.syncDelay == 0 ? free : nil).map { .atLeast($0) },
        remark: "32 bytes that are never the same; SQLite alone commits the changes of all connections together")
    }
  }
}

/// Durable changes with SQLite alone: the rows that identityd writes for them, write-ahead log, `synchronous=FULL`.
@safe
private final class BareDatabase {
  private var database: OpaquePointer?
  private var token: OpaquePointer?
  private var event: OpaquePointer?
  private var commit: OpaquePointer?

  init(at path: String) throws {
    let setUp = """
      PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
      CREATE TABLE token (key INTEGER PRIMARY KEY, value TEXT, time TEXT) STRICT;
      CREATE TABLE event (number INTEGER PRIMARY KEY, lines TEXT) STRICT;
      CREATE TABLE store (one INTEGER PRIMARY KEY, revision INTEGER) STRICT;
      INSERT INTO store VALUES (1, 0);
      """
    guard unsafe sqlite3_open(path, &database) == SQLITE_OK,
      unsafe sqlite3_exec(database, setUp, nil, nil, nil) == SQLITE_OK
    else { throw BenchError("SQLite cannot make \(path)") }
    // SQLite writes nothing if a value does not change.
    unsafe token = try prepare(
      """
      INSERT INTO token VALUES (?1, printf('%032d', ?2), '2026-01-01T00:00:00.000Z')
      ON CONFLICT DO UPDATE SET value = excluded.value
      """)
    // The events of a commit are one row, with 120 bytes for each.
    unsafe event = try prepare("INSERT INTO event VALUES (?2, printf('%.*c', 120 * ?1, 'e'))")
    unsafe commit = try prepare("UPDATE store SET revision = ?2")
  }

  deinit {
    unsafe [token, event, commit].forEach { unsafe sqlite3_finalize($0) }
    unsafe sqlite3_close(database)
  }

  private func prepare(_ sql: String) throws -> OpaquePointer? {
    var statement: OpaquePointer?
    guard unsafe sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK else {
      throw BenchError("SQLite does not compile \(sql)")
    }
    return unsafe statement
  }

  private func run(_ statement: OpaquePointer?, _ first: Int, _ second: UInt64) throws {
    guard unsafe sqlite3_bind_int64(statement, 1, Int64(first)) == SQLITE_OK,
      unsafe sqlite3_bind_int64(statement, 2, Int64(second)) == SQLITE_OK,
      unsafe sqlite3_step(statement) == SQLITE_DONE, unsafe sqlite3_reset(statement) == SQLITE_OK
    else { throw BenchError("SQLite does not take a change") }
  }

  /// Returns the number of changes per second, with this number in each transaction.
  func changes(of size: Int, seconds: Double) throws -> Double {
    let started = nanoseconds()
    var (count, duration) = (0.0, 0.0)
    while duration < seconds {
      let now = nanoseconds()
      guard unsafe sqlite3_exec(database, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK else {
        throw BenchError("SQLite begins no transaction")
      }
      for key in 0..<size { unsafe try run(token, key, now) }
      unsafe try run(event, size, now)
      unsafe try run(commit, 1, now)
      guard unsafe sqlite3_exec(database, "COMMIT", nil, nil, nil) == SQLITE_OK else {
        throw BenchError("SQLite commits nothing")
      }
      count += Double(size)
      duration = Double(nanoseconds() - started) / 1e9
    }
    return count / duration
  }
}
