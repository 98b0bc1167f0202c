import IdentityCore
import Testing

@testable import IdentityServer

struct SubscriptionTests {
  private func events(_ sequences: ClosedRange<Int64>) -> [Reader.Line] { sequences.map { .event($0) } }

  @Test func `a client that reads gets each event once, as it happens`() {
    var log = EventLog(count: 5)
    let reader = Reader(after: 5, log)
    #expect(reader.readAll(log) == [])
    log.append(3)
    #expect(reader.readAll(log) == events(6...8))
    #expect(reader.readAll(log) == [])
    log.append(1)
    #expect(reader.readAll(log) == events(9...9))
  }

  @Test func `a replay starts after the sequence number and continues with new events`() {
    var log = EventLog(count: 2_000, length: 100)
    let reader = Reader(after: 700, log)
    reader.turn(log)
    log.append(5)
    #expect(Reader.lines(in: reader.added) + reader.readAll(log) == events(701...2_005))
  }

  @Test func `a turn adds at most its bound and one line`() {
    let log = EventLog(count: 2_000, length: 500)
    let reader = Reader(after: 0, log)
    for _ in 0..<100 {
      reader.turn(log)
      #expect(reader.unsent < Bound.eventBytesPerTurn + 600)
      reader.read(5_000)
    }
    #expect(reader.subscription.position > 500)
  }

  @Test func `events that the peer may not see, and other topics, are skipped`() {
    var log = EventLog([], last: 0)
    let audiences: [Audience] = [.sharing, .vendor("org.example"), .vendor("com.example"), .app("org.example.player")]
    for number in 0..<400 {
      let topic: Topic = number % 3 == 0 ? .devices : .account
      log.append(.sample(Int64(number) + 1, topic, audience: audiences[number % 4]))
    }
    let reader = Reader([.account], after: 0, log)
    reader.isVisible = { $0 == .sharing || $0 == .vendor("com.example") }
    let expected = (Int64(0)..<400).filter { !$0.isMultiple(of: 3) && $0.isMultiple(of: 2) }.map { $0 + 1 }
    #expect(reader.readAll(log) == expected.map { .event($0) })
    #expect(reader.subscription.position == 400)
  }

  @Test func `row 40d: a lost right also applies to events that wait`() {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.reply(Bound.eventBytesPerTurn)
    reader.append(10, to: &log)
    reader.isVisible = { _ in false }
    #expect(reader.readAll(log) == [])
    reader.isVisible = { _ in true }
    log.append(1)
    #expect(reader.readAll(log) == events(11...11))
  }

  // MARK: Topics

  @Test func `going back for one topic repeats no event of other topics`() {
    var log = EventLog([], last: 0)
    for _ in 0..<50 {
      log.append(1, .devices)
      log.append(1, .account)
    }
    let reader = Reader([.devices], after: 0, log)
    #expect(reader.readAll(log).count == 50)
    reader.subscription.add([.account], after: 20, now: log.last)
    #expect(reader.readAll(log) == (11...50).map { .event($0 * 2) })
    log.append(1, .devices)
    log.append(1, .account)
    #expect(reader.readAll(log) == events(101...102))
  }

  @Test func `going back for one topic keeps the waiting events of others`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices], after: 0, log)
    reader.reply(Bound.eventBytesPerTurn)
    reader.append(10, .account, to: &log)
    reader.append(10, .devices, to: &log)
    reader.subscription.add([.account], after: 3, now: log.last)
    #expect(reader.readAll(log) == events(4...20))
  }

  @Test func `going back sends the events of a lag instead of the lag line`() {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.append(3_000, length: 500, to: &log)
    #expect(reader.subscription.lag != nil)
    reader.subscription.add(Set(Topic.allCases), after: 0, now: log.last)
    let first = Reader.lines(in: reader.output[...])
    #expect(first.count < 100)
    reader.read()
    #expect(reader.readAll(log) == events(1...3_000))
  }

  @Test func `another subscribe without since= drops no waiting event`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices], after: 0, log)
    reader.reply(Bound.eventBytesPerTurn)
    reader.append(10, .devices, to: &log)
    reader.append(10, .account, to: &log)
    reader.subscription.add([.devices, .account], after: log.last, now: log.last)
    reader.append(1, .account, to: &log)
    #expect(reader.readAll(log) == events(1...10) + events(21...21))
  }

  @Test func `a topic that was dropped sends nothing until it is added again`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices, .account], after: 0, log)
    reader.reply(Bound.eventBytesPerTurn)
    reader.append(10, .devices, to: &log)
    reader.append(10, .account, to: &log)
    reader.subscription.remove([.devices])
    #expect(!reader.subscription.isEmpty)
    reader.subscription.add([.devices], after: log.last, now: log.last)
    reader.append(1, .devices, to: &log)
    #expect(reader.readAll(log) == events(11...21))
    reader.subscription.remove([.devices, .account])
    #expect(reader.subscription.isEmpty)
  }

  // MARK: Handover

  @Test func `a subscription that is taken over continues at its place`() {
    var log = EventLog(count: 100)
    let before = Reader(after: 40, log).subscription
    var after = Subscription(starts: before.starts, position: before.position, lag: nil)
    after.move(to: 60)
    let reader = Reader(after)
    #expect(reader.readAll(log) == events(61...100))
    log.append(1)
    #expect(reader.readAll(log) == events(101...101))
  }

  @Test func `a lag that is taken over is reported, and no event of it is sent twice`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.append(3_000, length: 500, to: &log)
    let lag = try #require(reader.subscription.lag)
    #expect(lag.last == 3_000 && lag.missed == 3_000 - lag.after)
    let place = reader.subscription.position
    let next = Reader(Subscription(starts: reader.subscription.starts, position: place, lag: lag))
    log.append(10)
    let told = Reader.Line.lag(sequence: 3_000, missed: lag.missed, from: lag.after)
    #expect(next.readAll(log) == events((place + 1)...lag.after) + [told] + events(3_001...3_010))
  }

  @Test func `every topic has its own index`() {
    #expect(Set(Topic.allCases.map(\.index)) == Set(Topic.allCases.indices))
    #expect(Subscription(at: 0).isEmpty)
    #expect(Subscription(at: 0).starts.count == Topic.allCases.count)
  }
}
