import IdentityCore
import TestSupport
import Testing

struct UUIDTests {
  @Test(arguments: [
    "557e5958d3904cbfb9282a2b19a1399a", "557E5958D3904CBFB9282A2B19A1399A", "557e5958-d390-4cbf-b928-2a2b19a1399a",
    "557E5958-d390-4CBF-B928-2a2b19a1399A",
  ])
  func `every spelling of a UUID is parsed to the same value`(text: String) throws {
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
  func `any other text is no UUID`(text: String) {
    #expect(UUID(Text(text)) == nil)
  }

  @Test func `stamping sets version and variant and keeps the other bits`() {
    let stamped = UUID(high: .max, low: .max).stamped(version: 4)
    #expect("\(stamped)" == "ffffffff-ffff-4fff-bfff-ffffffffffff")
    #expect("\(UUID.zero.stamped(version: 7))" == "00000000-0000-7000-8000-000000000000")
  }

  @Test func `the bytes of a UUID match its text`() throws {
    let uuid = try #require(UUID("00112233-4455-6677-8899-aabbccddeeff"))
    #expect(uuid.bytes == (0..<16).map { UInt8($0 * 0x11) })
    #expect("\(UUID.zero)" == "00000000-0000-0000-0000-000000000000")
    #expect("\(UUID.ones)" == "ffffffff-ffff-ffff-ffff-ffffffffffff")
  }

  @Test func `random UUIDs convert to text and back`() {
    var random = SeededGenerator(7)
    for _ in 0..<1_000 {
      let uuid = UUID(high: random.next(), low: random.next())
      #expect(UUID(Text("\(uuid)")) == uuid)
    }
  }
}

struct TextTests {
  @Test func `text is compared by bytes and not as Swift compares strings`() {
    #expect("\u{212A}" == "K")
    #expect(Text("\u{212A}") != Text("K"))
    #expect(Text("é") != Text("e\u{301}"))
    #expect(Set([Text("\u{212A}"), Text("K")]).count == 2)
  }

  @Test(arguments: [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0x61, 0x00]] as [[UInt8]])
  func `NUL and bytes that are not UTF-8 are no text`(bytes: [UInt8]) {
    #expect(Text(validating: bytes) == nil)
  }
}
