import Foundation
import LinuxSystem

/// Measures how the cost grows with the amount of stored data and the number of clients.
///
/// For each kind there are daemons with few, more and many. All daemons of a kind are measured in turn.
struct ScaleBenchmark {
  /// A kind of data or of clients whose amount grows.
  private enum Kind: String, CaseIterable {
    case items
    case apps
    case history = "history rows"
    case connections
  }

  /// A daemon with a given amount of one kind.
  private struct Side {
    let server: MeasuredServer
    let read: Question
    let reading: Generator
    let changing: Generator
    /// The connections that stay idle.
    var idle: Generator?
  }

  let options: Options
  let guardian: Guardian
  private var rounds: Int { options.rounds(usual: 15, quick: 5) }
  private var slice: Double { options.isQuick ? 0.03 : 0.1 }

  /// Measures all kinds, one after the other.
  func run() throws -> [Row] {
    guard geteuid() == 0 else { throw BenchError("apps of many users take root") }
    defer { try? Placement.anywhere.apply(to: []) }
    let many = ManyItems(options: options, guardian: guardian)
    return try Kind.allCases.flatMap(measure) + [subscribers()] + many.run()
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
    let sizes = sizes(kind)
    let names = sizes.map(String.init)
    Program.say("filling daemons with \(names.joined(separator: ", ")) \(kind.rawValue)")
    let sides = try sizes.map { try side(kind, $0) }
    let servers = sides.map(\.server)
    defer { for server in servers { server.end() } }
    func medians(_ generator: (Side) -> Generator) throws -> [[[Double]]] {
      try inTurn(sides, rounds: rounds) { [try generator($0).ask(seconds: slice).microseconds] }
    }
    try Placement.together.apply(to: servers)
    var rows = [
      Row(
        "read p50: \(kind.rawValue)", "µs", names, try medians(\.reading), base: names[0],
        // Of items, each read is of another one, and the memory of many does not fit into the caches of a processor.
        target: .atMost(kind == .items ? 2 : 1.2, names[2]))
    ]
    try Placement.anywhere.apply(to: servers)
    rows.append(Row("change p50: \(kind.rawValue)", "µs", names, try medians(\.changing)))
    let memory = try servers.map { [[try $0.memory("Pss", in: "smaps_rollup")]] }
    rows.append(Row("memory, PSS: \(kind.rawValue)", "MB", names, memory))
    return try kind == .connections ? rows : rows + restarts(kind, sides, sizes)
  }

  /// Measures the time from exec to the answer with the stored data, and from SIGTERM to the exit.
  private func restarts(_ kind: Kind, _ sides: [Side], _ sizes: [Int]) throws -> [Row] {
    let names = sizes.map(String.init)
    let times = try inTurn(sides, rounds: options.rounds(usual: 7, quick: 3)) { side in
      let stop = try side.server.stop()
      return [stop, try side.server.start(asking: side.read)]
    }
    return [
      Row(
        "start: \(kind.rawValue)", "ms", names, times, place: 1, base: names[1],
        target: .atMost(Double(sizes[2] / sizes[1]), names[2]), remark: "at most as many times as there are more"),
      Row(
        "start with \(names[2]) \(kind.rawValue)", "ms", [names[2]], [times[2]], place: 1,
        target: kind == .items ? .atMost(100, names[2]) : nil),
      Row("stop: \(kind.rawValue)", "ms", names, times, remark: "from SIGTERM to the exit"),
    ]
  }

  // MARK: Filling

  private func side(_ kind: Kind, _ size: Int) throws -> Side {
    let settings = "[Limits]\nConnections=10000\nItemsPerApp=200000\nItemBytesPerApp=1G\n"
    let server = try MeasuredServer.identityd(settings: settings, guardian: guardian)
    try server.start()
    var read = "get device\n"
    switch kind {
    case .items:
      try server.connect().fill(size) { SampleItem($0).put }
      read = SampleItem(anyOf: size).read
    case .apps:
      try server.install(apps: size)
      read = "get installation app=user:\(SampleItem.firstUser)\n"
    case .history: try server.connect().fill(size) { _ in "renew device\n" }
    case .connections: break
    }
    let question = try Question(read, asking: server, same: kind == .items ? "OK data=".utf8.count : nil)
    guard question.reply.starts(with: "OK ".utf8) else { throw BenchError("there is nothing to read") }
    var side = Side(
      server: server, read: question, reading: try Generator(question, of: server, connections: 1),
      changing: try Generator(.token(1, of: server), of: server, connections: 1))
    if kind == .connections { side.idle = try Generator(question, of: server, connections: size) }
    return side
  }

  // MARK: Subscribers

  /// Measures the time from a change until the last of its subscribers has the event.
  private func subscribers() throws -> Row {
    let sizes = [10, 1_000, 9_000]
    Program.say("changes to \(sizes.map(String.init).joined(separator: ", ")) subscribers")
    let results = try sizes.map { size in
      let settings = "[Limits]\nConnections=10000\nSubscribers=10000\n"
      let server = try MeasuredServer.identityd(settings: settings, guardian: guardian)
      try server.start()
      defer { server.end() }
      let poller = try Poller()
      let subscribers = try (0..<size).map { number in
        let subscriber = try server.connect()
        try subscriber.ask("subscribe token")
        try poller.watch(subscriber.socket.number, as: UInt64(number), writes: false, isNew: true)
        return subscriber
      }
      let connection = try server.connect()
      let times = try (0...rounds).map { number in
        let started = nanoseconds()
        try connection.ask("token put bench token-\(number)")
        var missing = size
        while missing > 0 {
          let ready = try poller.wait(milliseconds: 60_000)
          guard !ready.isEmpty else { throw BenchError("\(missing) subscribers miss an event") }
          for number in ready {
            try subscribers[Int(number)].receive()
            try subscribers[Int(number)].check(["EVENT "])
          }
          missing -= ready.count
        }
        return [Double(nanoseconds() - started) / 1e6]
      }
      return Array(times.dropFirst())
    }
    return Row(
      "change to the last subscriber", "ms", sizes.map(String.init), results, base: "\(sizes[1])",
      target: .atMost(Double(sizes[2] / sizes[1]), "\(sizes[2])"), remark: "at most as many times as there are more")
  }
}
