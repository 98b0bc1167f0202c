import CBench
import Foundation
import LinuxSystem

/// How close to the machine's limit, and how far ahead of what else there is?
///
/// All servers are asked over Unix sockets by the one generator, in rounds in which each has its turn.
struct LimitBenchmark {
  /// So many apps are stored where a start is timed.
  static let apps = 10_000
  /// The first user whose app is one of them.
  static let firstUser: UInt32 = 1_000_000
  /// Connections where there are many.
  static let connections = 50
  /// Connections that wait for events, or for nothing.
  static let waiting = 10_000

  let options: Options
  let guardian: Guardian
  /// How often each has its turn.
  var rounds: Int { options.rounds(usual: 15, quick: 5) }
  /// How long one turn takes, in seconds.
  var slice: Double { options.isQuick ? 0.05 : 0.1 }
  /// How long one turn takes where the disk is waited for.
  var durableSlice: Double { options.isQuick ? 0.1 : 0.4 }

  /// Measures one row after the other.
  func run() throws -> Comparison {
    guard geteuid() == 0 else { throw Failure("apps of many users, and that many descriptors, take root") }
    try Self.allowDescriptors()
    defer { try? Placement.anywhere.apply(to: []) }
    let identityd = try MeasuredServer.identityd(guardian: guardian)
    try identityd.start()
    let answers = try Answers(asking: identityd)
    var rows: [Row] = []
    rows += try reads(answers, identityd)
    rows += try changes(answers)
    rows.append(try fanOut(answers))
    rows.append(try starts(answers))
    rows += try memory(answers)
    rows.append(try instructions(answers))
    return Comparison(
      benchmark: "limit", style: .bars, rounds: rounds, servers: guardian.started, rows: rows)
  }

  /// Has this program, and the servers it starts, open as many as there are connections at most, and some more.
  static func allowDescriptors() throws {
    try succeed("raising the number of descriptors") { bench_allow_descriptors(12_000) }
  }

  /// Those of them that are installed, started.
  func started(_ servers: [MeasuredServer?]) throws -> [MeasuredServer] {
    let servers = servers.compactMap(\.self)
    for server in servers where server.process == 0 { try server.start() }
    return servers
  }

  /// What came of each round, of each server: of the numbers of a round the one in that place.
  func row(
    _ name: String, _ unit: Row.Unit, _ names: [String], _ results: [[[Double]]], place: Int = 0, base: String? = nil,
    target: Target? = nil, remark: String? = nil
  ) -> Row {
    let measurements = zip(names, results).map { name, rounds in Measurement(name, rounds.map { $0[place] }) }
    return Row(name, unit, measurements, base: base, target: target, remark: remark)
  }
}

extension Answers {
  /// Asks for them.
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
