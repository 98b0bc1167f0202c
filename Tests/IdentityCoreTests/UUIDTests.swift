import IdentityCore
import Testing

@Suite struct UUIDTests {
  @Test(arguments: [
    "557e5958d3904cbfb9282a2b19a1399a", "557E5958D3904CBFB9282A2B19A1399A", "557e5958-d390-4cbf-b928-2a2b19a1399a",
    "557E5958-d390-4CBF-B928-2a2b19a1399A",
  ])
  func `every spelling of one value is that value`(text: String) throws {
    let uuid = try #require(UUID(Text(text)))
    #expect("\(uuid)" == "557e5958-d390-4cbf-b928-2a2b19a1399a")
  }

  @Test(arguments: [
    "", "5", "557e5958d3904cbfb9282a2b19a1399", "557e5958d3904cbfb9282a2b19a1399a0",
    "557e5958-d390-4cbf-b9282a2b19a1399a", "557e5958d-390-4cbf-b928-2a2b19a1399a",
    "{557e5958-d390-4cbf-b928-2a2b19a1399a}", " 557e5958-d390-4cbf-b928-2a2b19a1399a",
    "557e5958-d390-4cbf-b928-2a2b19a1399a\n", "g57e5958-d390-4cbf-b928-2a2b19a1399a",
    "urn:uuid:557e5958-d390-4cbf-b928-2a2b19a1399a", "2b6f0cc904d137be2e1730235f5664094b831186",
    "557e5958-d390-4cbf-b928-2a2b19a1399\u{ff41}", "--------------------------------",
  ])
  func `anything else is no UUID`(text: String) {
    #expect(UUID(Text(text)) == nil)
  }

  @Test func `a stamped value has its version and variant and keeps its other bits`() {
    let stamped = UUID(high: .max, low: .max).stamped(version: 4)
    #expect("\(stamped)" == "ffffffff-ffff-4fff-bfff-ffffffffffff")
    #expect("\(UUID.zero.stamped(version: 7))" == "00000000-0000-7000-8000-000000000000")
  }

  @Test func `text and value go both ways for every digit`() {
    var random = SplitMix(state: 7)
    for _ in 0..<1_000 {
      let uuid = UUID(high: random.next(), low: random.next())
      #expect(UUID(Text("\(uuid)")) == uuid)
    }
  }
}

@Suite struct UUIDSequenceTests {
  @Test func `version 7 carries the clock's milliseconds and is stamped`() {
    var sequence = UUIDSequence()
    let uuid = sequence.next(now: Timestamp(milliseconds: 0x0123_4567_89ab), random: UUID(high: .max, low: .max))
    #expect("\(uuid)".hasPrefix("01234567-89ab-7"))
    #expect(uuid.low >> 62 == 0b10)
  }

  @Test func `it strictly ascends whatever the clock does`() {
    var sequence = UUIDSequence()
    var random = SplitMix(state: 42)
    var last = UUID.zero
    var clock: Int64 = 1_700_000_000_000
    for round in 0..<100_000 {
      // Forward, still, back by a year, before 1970.
      clock += [0, 0, 0, 1, -31_536_000_000, 50, -1][round % 7]
      let uuid = sequence.next(
        now: Timestamp(milliseconds: clock), random: UUID(high: random.next(), low: random.next()))
      #expect((last.high, last.low) < (uuid.high, uuid.low))
      #expect(uuid.high >> 12 & 0xf == 7)
      last = uuid
    }
  }

  @Test func `a millisecond that runs out of values borrows from the next`() {
    var sequence = UUIDSequence()
    let now = Timestamp(milliseconds: 1)
    var last = sequence.next(now: now, random: UUID(high: .max, low: .max))
    // Each step adds up to 2^32 to what starts below 2^73: the low 62 bits overflow at once, the high 12 at last.
    for _ in 0..<3 {
      let next = sequence.next(now: now, random: UUID(high: 0, low: .max))
      #expect((last.high, last.low) < (next.high, next.low))
      last = next
    }
  }
}

@Suite struct TextTests {
  @Test func `text is compared by bytes and not as Swift compares strings`() {
    #expect("\u{212A}" == "K")
    #expect(Text("\u{212A}") != Text("K"))
    #expect(Text("é") != Text("e\u{301}"))
    #expect(Set([Text("\u{212A}"), Text("K")]).count == 2)
  }

  @Test(arguments: [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0x61, 0x00]] as [[UInt8]])
  func `bytes that are not UTF-8, and NUL, are no text`(bytes: [UInt8]) {
    #expect(Text(validating: bytes) == nil)
  }
}

/// A generator whose sequence is known, so that a failure can be repeated.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }
}
