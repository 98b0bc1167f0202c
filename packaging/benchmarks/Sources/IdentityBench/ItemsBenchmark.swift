import Foundation

/// Two daemons, one with few items and one with many: what does the number of items cost?
struct ItemsBenchmark {
  /// One of the two.
  private final class Side {
    /// It runs.
    let daemon: MeasuredServer
    /// How many it has, or is to have.
    let items: Int
    /// The one over which it is measured.
    private(set) var connection: Connection
    /// The same sequence for both.
    private var generator = SplitMix(seed: 1)

    /// Starts it.
    init(_ daemon: MeasuredServer, items: Int) throws {
      self.daemon = daemon
      self.items = items
      try daemon.start()
      connection = try daemon.connect()
    }

    /// Items at random, of those that it has.
    func items(_ count: Int) -> [SampleItem] {
      (0..<count).map { _ in SampleItem(number: Int.random(in: 0..<items, using: &generator)) }
    }

    /// Ends it, and starts it with what it has.
    ///
    /// - Returns: how long the start took, in milliseconds.
    func restart() throws -> Double {
      try daemon.stop()
      let time = try daemon.start()
      connection = try daemon.connect()
      return time
    }
  }

  /// What many items are compared with.
  private static let few = 100
  /// What the ratio of `item read` may be.
  private static let limit = 2.0
  /// Requests that are on their way together where throughput is measured.
  private static let batch = 16
  /// Changes that are on their way together: as many as the daemon takes of one connection.
  private static let changes = 128
  /// Lines that are sent in one piece while a daemon is filled.
  private static let window = 500
  /// Starts with the state that is there: each takes a while.
  private static let restarts = 5

  private let options: Options
  private let rounds: Int
  private let sizes: Pair<Int>
  private let sides: Pair<MeasuredServer>

  /// Makes the daemons' folders. Nothing runs before ``run()``.
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

  /// Fills both, and measures them in turn.
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

  /// - Returns: items a second.
  private func fill(_ side: Side) throws -> Double {
    let windows = stride(from: 0, to: side.items, by: Self.window).map { $0..<min($0 + Self.window, side.items) }
    var duration = Duration.zero
    var underWay: Range<Int>?
    for window in windows {
      let lines = window.flatMap { SampleItem(number: $0).put }
      let started = ContinuousClock.now
      // The next are there before the last are answered, so that the daemon never waits.
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

  // MARK: In turn

  /// - Returns: what came of each round, of either side.
  private func inTurn(
    _ sides: Pair<Side>, rounds: Int? = nil, warmUp: Int = 2, _ measure: (Side) throws -> [Double]
  ) throws -> Pair<[[Double]]> {
    let results = try IdentityBench.inTurn(
      [sides.usual, sides.other], rounds: rounds ?? self.rounds, warmUp: warmUp, measure)
    return Pair(usual: results[0], other: results[1])
  }

  /// What is asserted: `item read`, one at a time and in batches.
  private func reads(_ sides: Pair<Side>) throws -> [Figure] {
    // Where the kernel may choose, it has one daemon beside its client and the other on another processor.
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

  /// What is only reported.
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

  /// One request after the other about items at random.
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

  /// One batch of requests about items at random after the other.
  ///
  /// - Returns: requests a second.
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

  // MARK: Restarting

  /// From exec to the first answer, with the state that is there.
  private func restart(_ sides: Pair<Side>) throws -> [Figure] {
    let times = try inTurn(sides, rounds: Self.restarts, warmUp: 0) { side in
      let time = try side.restart()
      // It is not only alive: it has the items.
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
