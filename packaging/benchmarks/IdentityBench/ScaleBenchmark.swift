import CBench
import Foundation

/// Measures how the cost grows with the amount of stored data and the number of connections.
///
/// For each kind there are daemons with few, more and many. All daemons of a kind are measured in turn.
struct ScaleBenchmark {
  /// The kinds of data that a daemon can have much of.
  private enum Kind: String, CaseIterable {
    case items
    case apps
    case history = "history rows"
    case connections
  }

  /// A daemon with a given amount of one kind.
  private struct Side {
    let server: MeasuredServer
    let reading: Generator
    let changing: Generator
    /// The connections that stay idle.
    let idle: Generator?
    let read: Question
  }

  /// The highest allowed ratio of a read with many to a read with few.
  private static let readLimit = 1.2
  /// The longest allowed start with the highest number of items, in milliseconds.
  private static let startLimit = 100.0

  let options: Options
  let guardian: Guardian
  private var rounds: Int { options.rounds(usual: 15, quick: 5) }
  private var slice: Double { options.isQuick ? 0.03 : 0.1 }
  private var starts: Int { options.rounds(usual: 7, quick: 3) }

  /// Measures all kinds, one after the other.
  func run() throws -> Comparison {
    guard geteuid() == 0 else { throw Failure("apps of many users, and that many descriptors, take root") }
    try LimitBenchmark.allowDescriptors()
    defer { try? Placement.anywhere.apply(to: []) }
    let rows = try Kind.allCases.flatMap(measure) + ManyItems(options: options, guardian: guardian).run()
    return Comparison(benchmark: "scale", style: .growth, rounds: rounds, servers: [], rows: rows)
  }

  /// Returns the three sizes of a kind. identityd accepts 16,384 apps without a manifest.
  private func sizes(_ kind: Kind) -> [Int] {
    let many =
      switch kind {
      case .items, .history: options.isQuick ? 10_000 : 100_000
      case .apps: options.isQuick ? 10_000 : 16_000
      case .connections: 9_000
      }
    return [10, 1_000, many]
  }

  private func measure(_ kind: Kind) throws -> [Row] {
    Program.say("filling daemons with \(sizes(kind).map(\.grouped).joined(separator: ", ")) \(kind.rawValue)")
    let sides = try sizes(kind).map { try side(kind, $0) }
    defer { for side in sides where side.server.process != 0 { try? side.server.stop() } }
    try Placement.together.apply(to: sides.map(\.server))
    let reads = try inTurn(sides, rounds: rounds) { [try $0.reading.ask(seconds: slice).microseconds] }
    try Placement.anywhere.apply(to: sides.map(\.server))
    let changes = try inTurn(sides, rounds: rounds) { [try $0.changing.ask(seconds: slice).microseconds] }
    let memory = try sides.map { [[Double(try $0.server.proportionalMemory()) / 1e6]] }
    let times = kind == .connections ? nil : try restarts(sides)
    return rows(kind, reads, changes, memory, times)
  }

  /// The times of starts and stops, in milliseconds.
  private struct Restarts {
    let starts: [[[Double]]]
    let stops: [[[Double]]]
  }

  /// Measures the time from SIGTERM to the exit, and from exec to the answer, with the stored data.
  private func restarts(_ sides: [Side]) throws -> Restarts {
    let times = try inTurn(sides, rounds: starts) { side in
      let stop = try side.server.timedStop()
      return [stop, try side.server.start(asking: side.read)]
    }
    return Restarts(starts: times.map { $0.map { [$0[1]] } }, stops: times)
  }

  private func rows(
    _ kind: Kind, _ reads: [[[Double]]], _ changes: [[[Double]]], _ memory: [[[Double]]], _ restarts: Restarts?
  ) -> [Row] {
    let sizes = sizes(kind)
    let names = sizes.map(\.grouped)
    func row(
      _ figure: String, _ unit: Row.Unit, _ results: [[[Double]]], base: String? = nil, target: Target? = nil,
      remark: String? = nil
    ) -> Row {
      let measurements = zip(names, results).map { name, rounds in Measurement(name, rounds.map { $0[0] }) }
      return Row(
        "\(figure): \(kind.rawValue)", unit, measurements, base: base, target: target, remark: remark)
    }
    var rows = [
      row(
        "read p50", .microseconds, reads, base: names[0], target: .atMost(Self.readLimit, names[2]),
        remark: request(kind).trimmingCharacters(in: .newlines)),
      row("change p50", .microseconds, changes),
      row("memory, PSS", .megabytes, memory),
    ]
    if let restarts {
      rows.append(
        row(
          "start", .milliseconds, restarts.starts, base: names[1],
          target: .atMost(Double(sizes[2] / sizes[1]), names[2]), remark: "at most as many times as there are more"))
      let most = Measurement(names[2], restarts.starts[2].map { $0[0] })
      let limit = kind == .items ? Target.atMost(Self.startLimit, names[2]) : nil
      rows.append(Row("start with \(names[2]) \(kind.rawValue)", .milliseconds, [most], target: limit))
      rows.append(row("stop", .milliseconds, restarts.stops, remark: "from SIGTERM to the exit"))
    }
    return rows
  }

  // MARK: Filling

  /// Returns the read request for a kind.
  private func request(_ kind: Kind) -> String {
    switch kind {
    case .items: String(decoding: SampleItem(number: 0).read, as: UTF8.self)
    case .apps: "get installation app=user:\(LimitBenchmark.firstUser)\n"
    case .history, .connections: "get device\n"
    }
  }

  private func side(_ kind: Kind, _ size: Int) throws -> Side {
    let settings = "[Limits]\nConnections=10000\nItemsPerApp=200000\nItemBytesPerApp=1G\n[Log]\nLevel=warning\n"
    let server = try MeasuredServer.identityd(settings: settings, guardian: guardian)
    try server.start()
    var idle: Generator?
    switch kind {
    case .items: try server.fill(size) { String(decoding: SampleItem(number: $0).put, as: UTF8.self) }
    case .apps: try server.install(apps: size)
    case .history: try server.fill(size) { _ in "renew device\n" }
    case .connections:
      idle = try Generator(Question("get device\n", asking: server), of: server, connections: size)
    }
    let read = try Question(request(kind), asking: server)
    guard let change = try Language.lines.change(connections: 1, on: server) else { throw Failure("no change") }
    return Side(
      server: server, reading: try Generator(read, of: server, connections: 1),
      changing: try Generator(change, of: server, connections: 1), idle: idle, read: read)
  }
}
