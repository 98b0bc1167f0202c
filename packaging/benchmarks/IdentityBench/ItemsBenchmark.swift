import Foundation

/// Two daemons, one with few items and one with many, which show the cost of the number of items.
struct ItemsBenchmark {
  /// One of the two daemons.
  private final class Side {
    /// The running daemon.
    let daemon: MeasuredServer
    /// The number of its items, also while it is being filled.
    let items: Int
    /// The connection for all measurements.
    private(set) var connection: Connection
    /// The random numbers, which are the same for both daemons.
    private var generator = SplitMix(seed: 1)

    /// Starts a daemon.
    init(_ daemon: MeasuredServer, items: Int) throws {
      self.daemon = daemon
      self.items = items
      try daemon.start()
      connection = try daemon.connect()
    }

    /// Returns random items of the daemon.
    func items(_ count: Int) -> [SampleItem] {
      (0..<count).map { _ in SampleItem(number: Int.random(in: 0..<items, using: &generator)) }
    }

    /// Restarts the daemon with its stored state.
    ///
    /// - Returns: the duration of the start, in milliseconds.
    func restart() throws -> Double {
      try daemon.stop()
      let time = try daemon.start()
      connection = try daemon.connect()
      return time
    }
  }

  /// The number of items in the daemon with few.
  private static let few = 100
  /// The highest allowed ratio for `item read`.
  private static let limit = 2.0
  /// The number of requests that are sent together in measurements of throughput.
  private static let batch = 16
  /// The number of changes that are sent together: as many as the daemon accepts from one connection.
  private static let changes = 128
  /// The number of lines that are sent together while a daemon is filled.
  private static let window = 500
  /// The number of restarts with the stored state. Each takes a while.
  private static let restarts = 5

  private let options: Options
  private let rounds: Int
  private let sizes: Pair<Int>
  private let sides: Pair<MeasuredServer>

  /// Creates the daemons' folders. No daemon runs before ``run()``.
  init(options: Options, guardian: Guardian) throws {
    self.options = options
    rounds = options.rounds(usual: 30, quick: 10)
    sizes = Pair(usual: Self.few, other: options.items)
    let configuration = """
      [Limits]
      ItemsPerApp=\(max(200_000, options.items))
      ItemBytesPerApp=1G
      [Log]
      Level=warning

      """
    sides = try sizes.map { _ in try MeasuredServer.identityd(settings: configuration, guardian: guardian) }
  }

  /// Fills both daemons and measures them in turn.
  func run() throws -> Report {
    let sides = try Pair(
      usual: Side(self.sides.usual, items: sizes.usual), other: Side(self.sides.other, items: sizes.other))
    Program.say("filling daemons with \(sizes.usual.grouped) and \(sizes.other.grouped) items")
    let rates = try sides.map(fill)
    Program.say("measuring in \(rounds) rounds")
    var figures = try reads(sides) + others(sides)
    figures.append(Figure("fill, pipelined", .perSecond, rates))
    figures.append(Figure("peak memory so far", .megabytes, try sides.map(peakMemory)))
    figures += try restart(sides)
    figures.append(Figure("peak memory since a restart", .megabytes, try sides.map(peakMemory)))
    return Report(
      benchmark: "items", columns: sizes.map(\.grouped), rounds: rounds, figures: figures)
  }

  private func peakMemory(of side: Side) throws -> Double { Double(try side.daemon.peakMemory()) / 1e6 }

  // MARK: Filling

  /// Fills a daemon.
  ///
  /// - Returns: the number of items per second.
  private func fill(_ side: Side) throws -> Double {
    let windows = stride(from: 0, to: side.items, by: Self.window).map { $0..<min($0 + Self.window, side.items) }
    var duration = Duration.zero
    var underWay: Range<Int>?
    for window in windows {
      let lines = window.flatMap { SampleItem(number: $0).put }
      let started = ContinuousClock.now
      // The next lines are sent before the last replies are read, so that the daemon never waits.
      try side.connection.send(lines)
      if let underWay { try takeCreated(underWay.count, side.connection) }
      duration += ContinuousClock.now - started
      underWay = window
    }
    let started = ContinuousClock.now
    try takeCreated(underWay?.count ?? 0, side.connection)
    duration += ContinuousClock.now - started
    return Double(side.items) / (duration.microseconds / 1e6)
  }

  private func takeCreated(_ count: Int, _ connection: Connection) throws {
    try connection.receive(replies: count)
    try connection.check(Array(repeating: Array("OK created".utf8), count: count))
  }

  // MARK: Measurements

  /// Measures both daemons in turn.
  ///
  /// - Returns: the numbers of each round, for each daemon.
  private func inTurn(
    _ sides: Pair<Side>, rounds: Int? = nil, warmUp: Int = 2, _ measure: (Side) throws -> [Double]
  ) throws -> Pair<[[Double]]> {
    let results = try IdentityBench.inTurn(
      [sides.usual, sides.other], rounds: rounds ?? self.rounds, warmUp: warmUp, measure)
    return Pair(usual: results[0], other: results[1])
  }

  /// Measures the figures with a limit: `item read`, one at a time and in batches.
  private func reads(_ sides: Pair<Side>) throws -> [Figure] {
    // If the kernel chose, one daemon could be on the CPU of its client and the other on another CPU.
    let daemons = [sides.usual.daemon, sides.other.daemon]
    try Placement.together.apply(to: daemons)
    defer { try? Placement.anywhere.apply(to: daemons) }
    let single = try inTurn(sides) { try times($0, 500, { $0.read }, { [$0.answerToRead] }) }
    let batched = try inTurn(sides) {
      try rate($0, batches: 100, of: Self.batch, { $0.read }, { $0.answerToRead })
    }
    return latencies("read", single, limit: Self.limit) + [
      throughput("read, \(Self.batch) at a time", batched, limit: Self.limit)
    ]
  }

  /// Measures the figures that are only reported.
  private func others(_ sides: Pair<Side>) throws -> [Figure] {
    let byKey = try inTurn(sides) { try times($0, 100, { $0.findByKey }, { $0.answerToFind }) }
    let byAttribute = try inTurn(sides) {
      try times($0, 3, { $0.findByAttribute }, { $0.answerToFind })
    }
    let replaced = Array("OK replaced".utf8)
    let put = try inTurn(sides) { try times($0, 10, { $0.put }, { _ in [replaced] }) }
    let puts = try inTurn(sides) {
      try rate($0, batches: 2, of: Self.changes, { $0.put }, { _ in replaced })
    }
    return latencies("find by service and account", byKey) + latencies("find by attribute", byAttribute)
      + latencies("put, replacing", put) + [throughput("put, replacing, \(Self.changes) at a time", puts)]
  }

  private func throughput(_ name: String, _ rates: Pair<[[Double]]>, limit: Double? = nil) -> Figure {
    let rates = rates.map { $0.flatMap(\.self) }
    return Figure(name, .perSecond, rates.map(\.median), limit: limit, rounds: rates)
  }

  private func latencies(_ name: String, _ times: Pair<[[Double]]>, limit: Double? = nil) -> [Figure] {
    let all = times.map { $0.flatMap(\.self) }
    return [
      Figure("\(name), median", .microseconds, all.map(\.median), limit: limit, rounds: times.map { $0.map(\.median) }),
      Figure("\(name), 99th percentile", .microseconds, all.map { $0.percentile(0.99) }),
    ]
  }

  /// Sends requests about random items, one at a time.
  ///
  /// - Returns: the time of each request, in microseconds.
  private func times(
    _ side: Side, _ count: Int, _ request: (SampleItem) -> [UInt8],
    _ answer: (SampleItem) -> [[UInt8]]
  ) throws -> [Double] {
    let prepared = side.items(count).map { (request($0), answer($0)) }
    return try prepared.map { request, answer in
      let time = try side.connection.time(request, replies: 1)
      try side.connection.check(answer)
      return time
    }
  }

  /// Sends batches of requests about random items, one batch at a time.
  ///
  /// - Returns: the number of requests per second.
  private func rate(
    _ side: Side, batches: Int, of size: Int, _ request: (SampleItem) -> [UInt8],
    _ answer: (SampleItem) -> [UInt8]
  ) throws -> [Double] {
    let prepared = (0..<batches).map { _ in side.items(size) }
      .map { items in (items.flatMap(request), items.map(answer)) }
    let total = try prepared.reduce(0.0) { sum, batch in
      let time = try side.connection.time(batch.0, replies: size)
      try side.connection.check(batch.1)
      return sum + time
    }
    return [Double(batches * size) / (total / 1e6)]
  }

  // MARK: Restarts

  /// Measures the time from exec to the first answer, with the stored state.
  private func restart(_ sides: Pair<Side>) throws -> [Figure] {
    let times = try inTurn(sides, rounds: Self.restarts, warmUp: 0) { side in
      let time = try side.restart()
      // The daemon must not only run, but also have the items.
      for item in side.items(10) {
        try side.connection.ask(item.read, replies: 1)
        try side.connection.check([item.answerToRead])
      }
      return [time]
    }
    .map { $0.flatMap(\.self) }
    return [Figure("restart until it answers, median", .milliseconds, times.map(\.median), rounds: times)]
  }
}
