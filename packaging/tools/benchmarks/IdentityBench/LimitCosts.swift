import Foundation
import LinuxSystem

/// The costs of a server beside those of its requests: its start and its memory.
struct LimitCosts {
  /// The number of stored apps when a start is timed.
  private static let apps = 10_000
  /// The number of connections that stay idle.
  private static let idle = 10_000

  let options: Options
  let guardian: Guardian
  let read: Question

  /// Measures all rows.
  func run() throws -> [Row] { try [starts()] + memory() + [idleConnections()] }

  /// Measures the time from before the start of the program to its complete first answer.
  private func starts() throws -> Row {
    Program.say("starts, with \(Self.apps) apps")
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    let fresh = try MeasuredServer.identityd("identityd, fresh store", guardian: guardian)
    let servers: [MeasuredServer] = try [.limit(read, guardian: guardian), identityd, fresh]
    let sides = try servers.map { server in
      try server.start()
      if server === identityd { try server.install(apps: Self.apps) }
      let question = try Question("get device\n", asking: server)
      try server.stop()
      return (server, question)
    }
    let results = try inTurn(sides, rounds: options.rounds(usual: 15, quick: 3)) { server, question in
      let time = try server.start(asking: question)
      try server.stop()
      return [time]
    }
    return Row(
      "exec to the first reply", "ms", servers.map(\.name), results, base: "the limit", target: .atMost(4),
      remark: "identityd has \(Self.apps) apps stored, installed by their first use: each of a user of its own")
  }

  /// Measures the memory of new servers at rest.
  private func memory() throws -> [Row] {
    Program.say("memory")
    let servers: [MeasuredServer] = try [.limit(read, guardian: guardian), .identityd(guardian: guardian)]
    for server in servers { try server.start() }
    defer { for server in servers { server.end() } }
    sleep(2)
    let results = try servers.map { server in
      [try ["Pss", "Private_Dirty"].map { try server.memory($0, in: "smaps_rollup") }]
    }
    let names = servers.map(\.name)
    return [
      Row("memory at rest, PSS", "MB", names, results, target: .atMost(6.5)),
      Row("memory at rest, private dirty", "MB", names, results, place: 1, target: .atMost(1.0)),
    ]
  }

  /// Measures the memory that each connection adds after one request.
  private func idleConnections() throws -> Row {
    let settings = "[Limits]\nConnections=10500\n"
    let servers: [MeasuredServer] = try [
      .limit(read, guardian: guardian), .identityd(settings: settings, guardian: guardian),
    ]
    let results = try servers.map { server in
      try server.start()
      defer { server.end() }
      // The first connection allocates memory that all connections share.
      let question = try Question("get device\n", asking: server)
      sleep(1)
      try Placement.together.apply(to: [server])
      let before = try server.memory("Private_Dirty", in: "smaps_rollup")
      let generator = try Generator(question, of: server, connections: Self.idle)
      sleep(1)
      let grown = try server.memory("Private_Dirty", in: "smaps_rollup") - before
      return withExtendedLifetime(generator) { [[grown * 1e6 / Double(Self.idle)]] }
    }
    return Row(
      "memory of the server per idle connection, of \(Self.idle)", "B", servers.map(\.name), results,
      target: .atMost(512),
      remark: "private dirty; each connection has asked once")
  }
}
