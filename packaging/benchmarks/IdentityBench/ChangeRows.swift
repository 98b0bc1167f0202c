import CBench
import Foundation

/// Changes that are on disk before they are answered.
extension LimitBenchmark {
  /// Measures all rows about durable changes.
  func changes() throws -> [Row] {
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    let servers = try started([identityd, .durableRedis(guardian: guardian)])
    defer { for server in servers { try? server.stop() } }
    try Placement.anywhere.apply(to: servers)
    Program.say("durable changes")
    return [
      try alone(servers),
      try many(servers, depth: 1, target: 1.3),
      try many(servers, depth: 16, target: 1.2),
    ]
  }

  /// A side of a comparison that makes changes: a server, or SQLite alone.
  private typealias Side = (name: String, run: () throws -> Slice)

  private func sides(_ servers: [MeasuredServer], connections: Int, depth: Int) throws -> [Side] {
    try servers.flatMap { server -> [Side] in
      guard let change = try server.language.change(connections: connections, on: server) else { return [] }
      var sides = [try side(server.name, change, server, connections, depth)]
      if server.language == .lines {
        let item = try itemChange(connections: connections, on: server)
        sides.append(try side("\(server.name), item put", item, server, connections, depth))
      }
      return sides
    }
  }

  private func side(
    _ name: String, _ change: Question, _ server: MeasuredServer, _ connections: Int, _ depth: Int
  ) throws -> Side {
    let generator = try Generator(change, of: server, connections: connections, depth: depth)
    return (name, { try generator.ask(seconds: durableSlice) })
  }

  /// Returns a change that replaces the last secret. The new secret has 24 bytes, 32 in Base64.
  private func itemChange(connections: Int, on server: MeasuredServer) throws -> Question {
    let request = "item put service=bench account=\(Question.key) data=secret+of+the+bench+\(Question.varying)\n"
    let first = (0..<connections).map { request.replacing(Question.key, with: String(format: "%03d", $0)) }
    try server.connect().ask(Array(first.joined().utf8), replies: connections)
    return Question(request, reply: "OK replaced\n")
  }

  private func alone(_ servers: [MeasuredServer]) throws -> Row {
    let path = guardian.folder.appending(path: "bare.sqlite").path
    let bare: Side = (
      "SQLite alone",
      {
        var slice = bench_slice()
        try succeed("SQLite") { unsafe bench_sqlite_run(path, UInt64(durableSlice * 1e9), &slice) }
        return Slice(slice)
      }
    )
    let sides = [bare] + (try sides(servers, connections: 1, depth: 1))
    let results = try inTurn(sides, rounds: rounds) { [try $0.run().perSecond] }
    return row(
      "durable changes a second, 1 connection", .perSecond, sides.map(\.name), results, base: "SQLite alone",
      target: options.syncDelay == nil ? .atLeast(0.90) : nil,
      remark: "token put, SET: 32 bytes that are never the same")
  }

  private func many(_ servers: [MeasuredServer], depth: Int, target: Double) throws -> Row {
    let count = Self.connections
    let sides = try sides(servers, connections: count, depth: depth)
    let results = try inTurn(sides, rounds: rounds) { [try $0.run().perSecond] }
    return row(
      "durable changes a second, \(count) connections x \(depth)", .perSecond, sides.map(\.name), results,
      base: "redis, fsync always", target: options.syncDelay == nil ? .atLeast(target) : nil,
      remark: "each connection has a key of its own")
  }
}
