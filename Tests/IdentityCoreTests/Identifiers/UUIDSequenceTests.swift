import IdentityCore
import TestSupport
import Testing

private let start: Int64 = 1_700_000_000_000

private func ascends(_ left: UUID, _ right: UUID) -> Bool { (left.high, left.low) < (right.high, right.low) }

struct UUIDSequenceTests {
  @Test func `a version 7 UUID has the milliseconds of the clock, its version and its variant`() {
    var sequence = UUIDSequence()
    let uuid = sequence.next(now: Timestamp(milliseconds: 0x0123_4567_89ab), random: UUID(high: .max, low: .max))
    #expect("\(uuid)".hasPrefix("01234567-89ab-7"))
    #expect(uuid.low >> 62 == 0b10)
    #expect(sequence.lastHandedOut == uuid)
  }

  @Test func `row 41d: the sequence strictly ascends whatever the clock does`() {
    var sequence = UUIDSequence()
    var random = SeededGenerator(42)
    var last = UUID.zero
    var clock = start
    for round in 0..<100_000 {
      // The clock stands still, moves forward, jumps back a year, and shows times before 1970.
      clock += [0, 0, 0, 1, -31_536_000_000, 50, -1][round % 7]
      let uuid = sequence.next(
        now: Timestamp(milliseconds: clock), random: UUID(high: random.next(), low: random.next()))
      #expect(ascends(last, uuid))
      #expect(uuid.high >> 12 & 0xf == 7)
      last = uuid
    }
  }

  @Test func `a millisecond without free values borrows from the next`() {
    var sequence = UUIDSequence()
    let now = Timestamp(milliseconds: 1)
    var last = sequence.next(now: now, random: UUID(high: .max, low: .max))
    #expect(last.high >> 16 == 1)
    // The counter has 18 bits and begins in its lower half.
    for _ in 0..<(1 << 18) {
      let next = sequence.next(now: now, random: .zero)
      #expect(ascends(last, next))
      last = next
    }
    #expect(last.high >> 16 == 2)
  }

  @Test func `a UUID does not reveal the random bits of its neighbours`() {
    var sequence = UUIDSequence()
    let now = Timestamp(milliseconds: start)
    let random: [UInt64] = [0, .max, 0, 0x1234_5678_9abc_def0, .max, 1]
    let handedOut = random.map { sequence.next(now: now, random: UUID(high: 5, low: $0)) }
    let mask: UInt64 = 1 << 56 - 1
    #expect(handedOut.map { $0.low & mask } == random.map { $0 & mask })
    // Time and counter alone make the UUIDs ascend.
    let order = handedOut.map { ($0.high >> 16) << 18 | ($0.high & 0xfff) << 6 | $0.low >> 56 & 0x3f }
    #expect(order.map { $0 - order[0] } == [0, 1, 2, 3, 4, 5])
  }

  @Test(arguments: [start - 31_536_000_000, start - 1, start, start + 1, start + 31_536_000_000, 0, -5])
  func `a resumed sequence continues after the last UUID, whatever the clock says`(clock: Int64) {
    var random = SeededGenerator(7)
    var before = UUIDSequence()
    var last = before.next(now: Timestamp(milliseconds: start), random: UUID(high: random.next(), low: random.next()))
    var after = UUIDSequence()
    after.resume(after: last)
    #expect(after.lastHandedOut == last)
    for _ in 0..<1_000 {
      let next = after.next(
        now: Timestamp(milliseconds: clock), random: UUID(high: random.next(), low: random.next()))
      #expect(ascends(last, next))
      #expect(next.high >> 12 & 0xf == 7 && next.low >> 62 == 0b10)
      last = next
    }
    #expect(last.high >> 16 == UInt64(max(clock, start)))
  }

  @Test func `resuming after an older UUID or the nil UUID changes nothing`() {
    var sequence = UUIDSequence()
    sequence.resume(after: .zero)
    #expect(sequence.lastHandedOut == .zero)
    let first = sequence.next(now: Timestamp(milliseconds: start), random: .zero)
    let second = sequence.next(now: Timestamp(milliseconds: start), random: .zero)
    sequence.resume(after: first)
    #expect(sequence.lastHandedOut == second)
    #expect(ascends(second, sequence.next(now: Timestamp(milliseconds: start), random: .zero)))
  }

  @Test func `a sequence that resumes at a time gives out no earlier timestamp`() {
    var sequence = UUIDSequence()
    sequence.resume(notBefore: Timestamp(milliseconds: start))
    #expect(sequence.lastHandedOut == .zero)
    let first = sequence.next(now: Timestamp(milliseconds: start - 1_000), random: .zero)
    #expect(first.high >> 16 == UInt64(start))
    let second = sequence.next(now: Timestamp(milliseconds: start - 1_000), random: .zero)
    #expect(ascends(first, second))
    let later = sequence.next(now: Timestamp(milliseconds: start + 9), random: .zero)
    #expect(later.high >> 16 == UInt64(start + 9))
  }

  @Test(arguments: [true, false])
  func `of a last UUID and a time to resume at, the later one counts`(isMomentFirst: Bool) {
    var before = UUIDSequence()
    let last = before.next(now: Timestamp(milliseconds: start), random: UUID(high: .max, low: .max))
    var sequence = UUIDSequence()
    if isMomentFirst { sequence.resume(notBefore: Timestamp(milliseconds: start + 500)) }
    sequence.resume(after: last)
    if !isMomentFirst { sequence.resume(notBefore: Timestamp(milliseconds: start + 500)) }
    let next = sequence.next(now: Timestamp(milliseconds: 0), random: .zero)
    #expect(ascends(last, next))
    #expect(next.high >> 16 >= UInt64(start + 500))
  }

  @Test func `a time before 1970 is ignored`() {
    var sequence = UUIDSequence()
    sequence.resume(notBefore: Timestamp(milliseconds: -1))
    #expect(sequence.next(now: Timestamp(milliseconds: 3), random: .zero).high >> 16 == 3)
  }
}
