import CBench
import Foundation

/// The time from the start of a program to its first answer.
extension LimitBenchmark {
  /// Measures the time from before the start of the program to its complete first answer.
  func starts(_ answers: Answers) throws -> Row {
    Program.say("storing \(Self.apps.grouped) apps")
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    try identityd.start()
    try identityd.install(apps: Self.apps)
    let read = try Question("get device\n", asking: identityd)
    try identityd.stop()
    Program.say("starts")
    let fresh = try MeasuredServer.identityd("identityd, fresh store", guardian: guardian)
    try fresh.start()
    let freshRead = try Question("get device\n", asking: fresh)
    try fresh.stop()
    let servers: [(MeasuredServer, Question?)] = try [
      .limit(answers, guardian: guardian), identityd, fresh, .redis(guardian: guardian),
      .memcached(guardian: guardian), .uuidd(guardian: guardian), .mosquitto(guardian: guardian),
    ].compactMap { (server: MeasuredServer?) in
      guard let server else { return nil }
      return (server, server === identityd ? read : server === fresh ? freshRead : nil)
    }
    let results = try inTurn(servers, rounds: options.rounds(usual: 15, quick: 3)) { server, question in
      let time = try server.start(asking: question)
      try server.stop()
      return [time]
    }
    return row(
      "exec to the first reply", .milliseconds, servers.map(\.0.name), results, base: "the limit", target: .atMost(4),
      remark: "identityd has \(Self.apps.grouped) apps stored, installed by their first use: each of a user of its own")
  }
}

extension MeasuredServer {
  /// Installs apps: each of as many users asks for an installation identifier. Needs root.
  func install(apps count: Int) throws {
    try succeed("storing apps") {
      unsafe bench_users_ask(socket, "get installation\n", LimitBenchmark.firstUser, UInt32(count))
    }
    let connection = try connect()
    try connection.ask(Array("status\n".utf8), replies: 1)
    let lines = String(decoding: connection.received, as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("* apps=") }), let apps = Int(line.dropFirst("* apps=".count)),
      apps >= count
    else { throw Failure("users are not apps here: is this run in a service?") }
  }
}
