import IdentityCore
import IdentityWire
import TestSupport
import Testing

@testable import IdentityServer

/// A client that reads and subscribes at random, checked against the events that it must get.
struct SubscriptionOracleTests {
  @Test func `row 28: every event is delivered once or counted in one lag line`() throws {
    var lags = 0
    var losses = 0
    var replays = 0
    for seed: UInt64 in [3, 5, 101, 102] {
      do {
        var oracle = try Oracle(seed)
        for _ in 0..<Trial.rounds(150, long: 150) { try oracle.step() }
        try oracle.finish()
        #expect(oracle.delivered > 500 || Trial.isShort)
        lags += oracle.exactLags
        losses += oracle.losses
        replays += oracle.replays
      } catch {
        Issue.record(error, "seed \(seed)")
      }
    }
    // Otherwise the test proves nothing about them.
    let wasAll = lags > 0 && losses > 0 && replays > 0
    #expect(wasAll || Trial.isShort, "\(lags) lags, \(losses) losses, \(replays) replays")
  }
}

/// The events that a client must get, by the rules of the protocol alone, without the places and counts of
/// a ``Subscription``.
private struct Oracle {
  private struct Happened {
    let topic: Topic
    let audience: Audience
    let bytes: [UInt8]
  }

  private static let audiences: [Audience] = [
    .sharing, .vendor("org.example"), .vendor("com.example"), .app("org.example.player"), .app("com.example.other"),
  ]
  private static let visible: Set<Audience> = [.sharing, .vendor("org.example"), .app("org.example.player")]

  private var generator: SeededGenerator
  private var log: EventLog
  private let reader: Reader
  private let first: Int64
  /// All events after `first`.
  private var happened: [Happened] = []
  private var topics: Set<Topic> = []
  /// The events that must be delivered or counted, in order.
  private var due: [Int64] = []
  /// The number of events in `due` that were delivered or counted.
  private var done = 0
  /// Events that were due when the client left their topic. They must not be delivered, but a lag may
  /// have counted them.
  private var left: Set<Int64> = []
  /// The bytes of the due events that remain.
  private var dueBytes = 0
  /// Whether enough bytes may have waited since the last lag line to justify another one.
  private var wasMuch = false
  private(set) var delivered = 0
  private(set) var exactLags = 0
  private(set) var losses = 0
  private(set) var replays = 0

  init(_ seed: UInt64) throws {
    generator = SeededGenerator(seed)
    first = Int64.random(in: 0...1_000, using: &generator)
    log = EventLog([] as [EventLine], last: first)
    reader = Reader([], after: first, log)
    reader.isVisible = { Self.visible.contains($0) }
    try subscribe(Set(Topic.allCases.filter { _ in generator.once(in: 2) }), after: first)
    try subscribe([.devices], after: first)
  }

  private var waiting: ArraySlice<Int64> { due[done...] }

  private func event(_ sequence: Int64) -> Happened { happened[Int(sequence - first - 1)] }

  // MARK: Random steps

  mutating func step() throws {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<40: try happen(Int.random(in: 1...40, using: &generator), longest: 400)
    case 40..<60: try happen(Int.random(in: 1...400, using: &generator), longest: 2_000)
    // More than may wait for one subscriber, then far more than the log keeps.
    case 60..<63: try happen(Int.random(in: 1_000...4_000, using: &generator), longest: 1_200)
    case 63: try happen(Int.random(in: 12_000...16_000, using: &generator), longest: 700)
    case 64..<84: try read(Int.random(in: 1...60_000, using: &generator))
    case 84..<90: for _ in 0..<40 where reader.unsent > 0 { try read(.max) }
    case 90..<93: reader.reply(Int.random(in: 1...100_000, using: &generator))
    case 93..<95: try subscribe([Topic.allCases.randomElement(using: &generator) ?? .app], after: log.last)
    case 95..<98:
      let some = Set(Topic.allCases.filter { _ in generator.once(in: 3) })
      try subscribe(some, after: Int64.random(in: log.oldest...log.last, using: &generator))
    default: leave([Topic.allCases.randomElement(using: &generator) ?? .app])
    }
  }

  /// Reads as the client until nothing is left.
  mutating func finish() throws {
    for _ in 0..<100_000 where reader.unsent > 0 || !reader.subscription.isCurrent(log) { try read(.max) }
    try #require(reader.unsent == 0 && reader.subscription.isCurrent(log), "it does not come to an end")
    try #require(waiting.isEmpty, "\(waiting.count) neither came nor were counted, from \(waiting.first ?? 0) on")
  }

  private mutating func happen(_ count: Int, longest: Int) throws {
    var left = count
    while left > 0 {
      // Several events may be committed together, and are then published in one turn.
      for _ in 0..<min(left, Int.random(in: 1...50, using: &generator)) {
        left -= 1
        // Most events are short.
        let length = generator.once(in: 3) ? Int.random(in: 0...longest, using: &generator) : 0
        let event = Event.sample(
          log.last + 1, Topic.allCases.randomElement(using: &generator) ?? .app, length: length,
          audience: Self.audiences.randomElement(using: &generator) ?? .sharing)
        log.append(event)
        let line = try #require(log[after: log.last - 1])
        happened.append(Happened(topic: event.topic, audience: line.audience, bytes: line.bytes))
        guard topics.contains(event.topic), Self.visible.contains(event.audience) else { continue }
        due.append(event.sequence)
        dueBytes += line.bytes.count
      }
      try turn()
    }
  }

  private mutating func read(_ count: Int) throws {
    reader.read(count)
    try turn()
  }

  private mutating func subscribe(_ some: Set<Topic>, after start: Int64) throws {
    reader.subscription.add(some, after: start, now: log.last)
    topics.formUnion(some)
    if start < log.last { replays += 1 }
    var again = Set(waiting)
    for sequence in stride(from: start + 1, through: log.last, by: 1) {
      let event = event(sequence)
      if some.contains(event.topic), Self.visible.contains(event.audience) { again.insert(sequence) }
    }
    left.subtract(again)
    setDue(again)
    try turn()
  }

  private mutating func leave(_ some: Set<Topic>) {
    reader.subscription.remove(some)
    topics.subtract(some)
    let gone = waiting.filter { some.contains(event($0).topic) }
    left.formUnion(gone)
    setDue(Set(waiting).subtracting(gone))
  }

  private mutating func setDue(_ sequences: Set<Int64>) {
    due = sequences.sorted()
    done = 0
    dueBytes = due.reduce(0) { $0 + event($1).bytes.count }
  }

  // MARK: Output

  private mutating func turn() throws {
    let unsent = reader.unsent
    if unsent + dueBytes > Bound.eventBytesPerSubscriber || !left.isEmpty { wasMuch = true }
    reader.turn(log)
    var rest = reader.added
    try #require(rest.isEmpty || rest.count < Bound.eventBytesPerTurn + 3_000, "\(rest.count) bytes at once")
    while !rest.isEmpty {
      if let next = waiting.first, rest.starts(with: event(next).bytes) {
        rest = rest.dropFirst(event(next).bytes.count)
        done += 1
        dueBytes -= event(next).bytes.count
        delivered += 1
      } else {
        let line = rest.prefix { $0 != UInt8(ascii: "\n") }
        rest = rest.dropFirst(line.count + 1)
        guard case .lag(let sequence, let missed, let from)? = Reader.lines(in: line).first else {
          let text = String(decoding: line.prefix(60), as: UTF8.self)
          throw Failure("\(text) came in the place of \(waiting.first ?? 0)")
        }
        try #require(unsent == 0 && rest.isEmpty, "a lag line among others")
        try take(sequence, missed, from)
      }
    }
  }

  private mutating func take(_ sequence: Int64, _ missed: Int64, _ from: Int64) throws {
    let counted = waiting.prefix { $0 <= sequence }
    try #require(counted.first ?? .max > from, "\(counted.first ?? 0) was left out before the lag after \(from)")
    try #require(from < sequence && sequence <= log.last)
    let maybe = left.filter { $0 > from && $0 <= sequence }
    if from >= log.oldest {
      exactLags += 1
      try #require(wasMuch, "a lag where little waited")
      let range = counted.count...(counted.count + maybe.count)
      try #require(range.contains(Int(missed)), "missed \(missed) of \(range)")
      try #require(counted.last == sequence || maybe.contains(sequence), "\(sequence) is not the last that was missed")
    } else {
      losses += 1
      try #require(Int64(counted.count) <= missed && missed <= sequence - from, "\(missed) of \(counted.count)")
    }
    done += counted.count
    dueBytes -= counted.reduce(0) { $0 + event($1).bytes.count }
    left = []
    wasMuch = false
  }
}
