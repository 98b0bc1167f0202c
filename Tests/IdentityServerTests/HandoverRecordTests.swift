import IdentityCore
import TestSupport
import Testing

@testable import IdentityServer

struct HandoverRecordTests {
  @Test(arguments: 1...200)
  func `a record is read back as it was written`(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    let record = HandoverRecord.random(&generator)
    #expect(HandoverRecord(record.bytes) == record)
  }

  @Test func `the random records cover the presence and absence of every optional part`() {
    var generator = SeededGenerator(1)
    let records = (0..<200).map { _ in HandoverRecord.random(&generator) }
    let has: [(HandoverRecord) -> Bool] = [
      { $0.peer.place.unit != nil }, { $0.peer.place.owner != nil },
      { $0.peer.place.container != nil }, { $0.peer.place.hasOtherNamespaces }, { $0.peer.session != nil },
      { $0.peer.isAdmin }, { $0.peer.isMonitor },
      { $0.subscription != nil }, { $0.subscription?.lag != nil }, { $0.hasEnded }, { $0.isClosing },
      { !$0.input.isEmpty }, { !$0.output.isEmpty },
    ]
    for has in has { #expect(records.contains(where: has) && !records.allSatisfy(has)) }
  }

  @Test func `the largest and the smallest numbers are kept`() {
    for number in [UInt64.max, 0] {
      for session: SessionAnchor in [
        .invocation(UUID(high: number, low: ~number)), .controlGroup(number),
        .process(Int32(truncatingIfNeeded: number), start: number), .process(.max, start: ~number),
        .onlyProcess(Int32(truncatingIfNeeded: number), inode: number), .onlyProcess(.max, inode: ~number),
      ] {
        let half = UInt32(truncatingIfNeeded: number)
        let record = HandoverRecord(
          inode: number,
          peer: Peer(
            app: "", userID: half, groupID: ~half, processID: Int32(bitPattern: half),
            place: PeerPlace(unit: "", owner: half),
            session: session, isAdmin: number == 0, isMonitor: number > 0))
        #expect(HandoverRecord(record.bytes) == record)
      }
    }
  }

  @Test(arguments: 1...8)
  func `a record that is cut off or has bytes behind it is refused`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    let bytes = HandoverRecord.random(&generator).bytes
    for count in bytes.indices { #expect(HandoverRecord(Array(bytes[..<count])) == nil) }
    for more in [1, 7, 8, 16] { #expect(HandoverRecord(bytes + [UInt8](repeating: 0, count: more)) == nil) }
  }

  @Test(arguments: 1...8)
  func `a record with a flipped bit is refused, or encodes to the same bytes again`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    var bytes = HandoverRecord.random(&generator).bytes
    var read = 0
    var wrong: [Int] = []
    for place in bytes.indices {
      for bit in 0..<8 {
        bytes[place] ^= 1 << bit
        if let record = HandoverRecord(bytes) {
          read += 1
          if record.bytes != bytes { wrong.append(place) }
        }
        bytes[place] ^= 1 << bit
      }
    }
    #expect(wrong.isEmpty)
    // A changed number or text can still be valid. A changed length or position cannot.
    #expect(read > 0 && read < bytes.count * 8)
  }

  @Test(arguments: 1...8)
  func `random bytes are refused`(seed: UInt64) {
    var generator = SeededGenerator(seed)
    #expect(HandoverRecord([]) == nil)
    for count in 0..<400 {
      #expect(HandoverRecord((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }) == nil)
      #expect(HandoverRecord([UInt8](repeating: 0xff, count: count)) == nil)
    }
  }

  @Test func `invalid UTF-8 is refused`() {
    var generator = SeededGenerator(3)
    var record = HandoverRecord.random(&generator)
    for bytes: [UInt8] in [[0xff], [97, 0, 97], [0xc3]] {
      let app = Text(trusted: bytes)
      record.peer = Peer(
        app: app, userID: 1, groupID: 1, processID: 1, place: PeerPlace(), session: nil, isAdmin: false)
      #expect(HandoverRecord(record.bytes) == nil)
      record.peer = Peer(
        app: "a", userID: 1, groupID: 1, processID: 1, place: PeerPlace(unit: app),
        session: nil, isAdmin: false)
      #expect(HandoverRecord(record.bytes) == nil)
    }
  }

  @Test(arguments: [Int64.min, -1, .max])
  func `subscriptions with impossible places do no harm`(number: Int64) {
    let starts = [Int64](repeating: 0, count: Topic.allCases.count)
    var log = EventLog(count: 50)
    for lag: Subscription.Lag? in [
      nil, .init(after: number, missed: 1, last: 5), .init(after: 5, missed: number, last: number),
    ] {
      for place in [number, 3] {
        var generator = SeededGenerator(7)
        var record = HandoverRecord.random(&generator)
        record.subscription = Subscription(starts: starts, position: place, lag: lag)
        guard place != 3 || lag != nil, let read = HandoverRecord(record.bytes)?.subscription else { continue }
        // The server makes the same check when it takes a connection over.
        guard read.position <= log.last else { continue }
        let reader = Reader(read)
        reader.turn(log)
        reader.reply(Bound.eventBytesPerTurn)
        log.append(1)
        reader.turn(log)
        _ = reader.readAll(log)
        #expect(reader.unsent == 0)
      }
    }
  }
}

extension HandoverRecord {
  /// Returns a record with random values, in which each optional field may be absent.
  static func random(_ generator: inout SeededGenerator) -> HandoverRecord {
    func maybe<Value>(_ value: Value) -> Value? { generator.once(in: 2) ? value : nil }
    func number() -> UInt64 { generator.next() >> UInt64.random(in: 0..<64, using: &generator) }
    func bytes(_ longest: Int) -> [UInt8] {
      (0..<Int.random(in: 0...longest, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
    func text() -> Text {
      Text(
        String(
          (0..<Int.random(in: 0...20, using: &generator)).compactMap { _ in "abcä:€.𝄞".randomElement(using: &generator)
          }))
    }
    let sessions: [SessionAnchor?] = [
      nil, .invocation(UUID(high: number(), low: number())), .controlGroup(number()),
      .process(Int32.random(in: 1 ... .max, using: &generator), start: number()),
      .onlyProcess(Int32.random(in: 1 ... .max, using: &generator), inode: number()),
    ]
    let place = Int64.random(in: 0...1_000_000, using: &generator)
    let after = place + Int64.random(in: 0...1_000, using: &generator)
    let missed = Int64.random(in: 1...100, using: &generator)
    let lag = maybe(Subscription.Lag(after: after, missed: missed, last: after + missed))
    let starts = Topic.allCases.map { _ in maybe(Int64.random(in: 0...place, using: &generator)) ?? .max }
    return HandoverRecord(
      inode: number(),
      peer: Peer(
        app: text(), userID: UInt32(truncatingIfNeeded: number()), groupID: UInt32(truncatingIfNeeded: number()),
        processID: Int32(truncatingIfNeeded: number()),
        place: PeerPlace(
          unit: maybe(text()), owner: maybe(UInt32(truncatingIfNeeded: number())), container: maybe(text()),
          hasOtherNamespaces: generator.once(in: 2)),
        session: sessions.randomElement(using: &generator) ?? nil,
        isAdmin: generator.once(in: 2), isMonitor: generator.once(in: 2)),
      subscription: maybe(Subscription(starts: starts, position: place, lag: lag)), hasEnded: generator.once(in: 2),
      isClosing: generator.once(in: 2), input: maybe(bytes(100)) ?? [], output: maybe(bytes(100)) ?? [])
  }
}
