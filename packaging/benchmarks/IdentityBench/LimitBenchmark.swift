import CBench
import Foundation
import LinuxSystem

/// Measures how close identityd is to the machine's limit, and how it compares with other servers.
///
/// One generator sends requests to all servers over Unix sockets, in rounds in which each server has its turn.
struct LimitBenchmark {
  /// The number of stored apps when a start is timed.
  static let apps = 10_000
  /// The first user with such an app.
  static let firstUser: UInt32 = 1_000_000
  /// The number of connections in rows with many connections.
  static let connections = 50
  /// The number of connections that wait for events, or stay idle.
  static let waiting = 10_000

  let options: Options
  let guardian: Guardian
  /// The number of rounds.
  var rounds: Int { options.rounds(usual: 15, quick: 5) }
  /// The duration of one turn, in seconds.
  var slice: Double { options.isQuick ? 0.05 : 0.1 }
  /// The duration of one turn with waits for the disk, in seconds.
  var durableSlice: Double { options.isQuick ? 0.1 : 0.4 }

  /// Measures all rows, one after the other.
  func run() throws -> Comparison {
    guard geteuid() == 0 else { throw Failure("apps of many users, and that many descriptors, take root") }
    try Self.allowDescriptors()
    defer { try? Placement.anywhere.apply(to: []) }
    if options.syncDelay != nil { return comparison(of: try changes()) }
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    try identityd.start()
    let answers = try Answers(asking: identityd)
    var rows: [Row] = []
    rows += try reads(answers, identityd)
    rows += try changes()
    rows.append(try fanOut(answers))
    rows.append(try starts(answers))
    rows += try memory(answers)
    rows.append(try instructions(answers))
    return comparison(of: rows)
  }

  private func comparison(of rows: [Row]) -> Comparison {
    Comparison(benchmark: "limit", style: .bars, rounds: rounds, servers: guardian.started, rows: rows)
  }

  /// Raises the limit on descriptors for this program and the servers that it starts, above the highest
  /// number of connections.
  static func allowDescriptors() throws {
    try succeed("raising the number of descriptors") { bench_allow_descriptors(12_000) }
  }

  /// Starts the installed servers, and returns them.
  func started(_ servers: [MeasuredServer?]) throws -> [MeasuredServer] {
    let servers = servers.compactMap(\.self)
    for server in servers where server.process == 0 { try server.start() }
    return servers
  }

  /// Returns a row with the numbers of each round, for each server.
  ///
  /// - Parameter place: the index of the number among those of a round.
  func row(
    _ name: String, _ unit: Row.Unit, _ names: [String], _ results: [[[Double]]], place: Int = 0, base: String? = nil,
    target: Target? = nil, remark: String? = nil
  ) -> Row {
    let measurements = zip(names, results).map { name, rounds in Measurement(name, rounds.map { $0[place] }) }
    return Row(name, unit, measurements, base: base, target: target, remark: remark)
  }
}

extension Answers {
  /// Asks identityd for the sample answers.
  init(asking server: MeasuredServer) throws {
    let reply = try Question("get device\n", asking: server).reply
    text = String(decoding: reply.dropLast(), as: UTF8.self)
    let subscriber = try UnixSocket.connect(to: server.socket)
    try subscriber.sendAll(Array("subscribe token\n".utf8))
    _ = try Question.readAll(from: subscriber)
    guard let change = try Language.lines.change(connections: 1, on: server) else { throw Failure("no change") }
    guard change.reply.last == UInt8(ascii: "\n") else { throw Failure("a reply has no end") }
    let events = try Question.readAll(from: subscriber).split(separator: UInt8(ascii: "\n"))
    guard let last = events.last else { throw Failure("there was no event") }
    event = String(decoding: last, as: UTF8.self)
  }
}
