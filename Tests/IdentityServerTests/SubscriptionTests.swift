import IdentityCore
import Testing

@testable import IdentityServer

@Suite struct SubscriptionTests {
  private func events(_ sequences: ClosedRange<Int64>) -> [Reader.Line] { sequences.map { .event($0) } }

  @Test func `whoever reads gets each event once, as it comes`() {
    var log = EventLog(count: 5)
    let reader = Reader(after: 5, log)
    #expect(reader.readAll(log) == [])
    log.append(3)
    #expect(reader.readAll(log) == events(6...8))
    #expect(reader.readAll(log) == [])
    log.append(1)
    #expect(reader.readAll(log) == events(9...9))
  }

  @Test func `a replay brings what came after the number, and then what comes`() {
    var log = EventLog(count: 2_000, length: 100)
    let reader = Reader(after: 700, log)
    reader.turn(log)
    log.append(5)
    #expect(Reader.lines(in: reader.added) + reader.readAll(log) == events(701...2_005))
  }

  @Test func `no more goes out in one piece than its bound, and one line`() {
    let log = EventLog(count: 2_000, length: 500)
    let reader = Reader(after: 0, log)
    for _ in 0..<100 {
      reader.turn(log)
      #expect(reader.unsent < Bound.eventsPerTurn + 600)
      reader.read(5_000)
    }
    #expect(reader.subscription.place > 500)
  }

  @Test func `what a peer must not see, and topics it does not want, are passed over`() {
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
    #expect(reader.subscription.place == 400)
  }

  @Test func `row 40d: a right that is lost is lost for what waits, too`() {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.reply(Bound.eventsPerTurn)
    reader.append(10, to: &log)
    reader.isVisible = { _ in false }
    #expect(reader.readAll(log) == [])
    reader.isVisible = { _ in true }
    log.append(1)
    #expect(reader.readAll(log) == events(11...11))
  }

  // MARK: Topics

  @Test func `going back for one topic brings no other topic's events twice`() {
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

  @Test func `going back for one topic keeps what waits of the others`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices], after: 0, log)
    reader.reply(Bound.eventsPerTurn)
    reader.append(10, .account, to: &log)
    reader.append(10, .devices, to: &log)
    reader.subscription.add([.account], after: 3, now: log.last)
    #expect(reader.readAll(log) == events(4...20))
  }

  @Test func `going back brings what a lag took away, and no lag line`() {
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

  @Test func `another subscribe at the present takes nothing away that waits`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices], after: 0, log)
    reader.reply(Bound.eventsPerTurn)
    reader.append(10, .devices, to: &log)
    reader.append(10, .account, to: &log)
    reader.subscription.add([.devices, .account], after: log.last, now: log.last)
    reader.append(1, .account, to: &log)
    #expect(reader.readAll(log) == events(1...10) + events(21...21))
  }

  @Test func `a topic that is left brings nothing more, and anew from then on`() {
    var log = EventLog(count: 0)
    let reader = Reader([.devices, .account], after: 0, log)
    reader.reply(Bound.eventsPerTurn)
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

  @Test func `one that is taken over goes on where it was`() {
    var log = EventLog(count: 100)
    let before = Reader(after: 40, log).subscription
    var after = Subscription(starts: before.starts, place: before.place, lag: nil)
    after.move(to: 60)
    let reader = Reader(after)
    #expect(reader.readAll(log) == events(61...100))
    log.append(1)
    #expect(reader.readAll(log) == events(101...101))
  }

  @Test func `a lag that is taken over is told, and nothing of it comes twice`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.append(3_000, length: 500, to: &log)
    let lag = try #require(reader.subscription.lag)
    #expect(lag.last == 3_000 && lag.missed == 3_000 - lag.after)
    let place = reader.subscription.place
    let next = Reader(Subscription(starts: reader.subscription.starts, place: place, lag: lag))
    log.append(10)
    let told = Reader.Line.lag(sequence: 3_000, missed: lag.missed, from: lag.after)
    #expect(next.readAll(log) == events((place + 1)...lag.after) + [told] + events(3_001...3_010))
  }

  @Test func `a topic's place is its own`() {
    #expect(Set(Topic.allCases.map(\.index)) == Set(Topic.allCases.indices))
    #expect(Subscription(at: 0).isEmpty)
    #expect(Subscription(at: 0).starts.count == Topic.allCases.count)
  }
}
