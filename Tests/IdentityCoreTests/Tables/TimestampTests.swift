import IdentityCore
import Testing

struct TimestampTests {
  @Test(arguments: [
    (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    (1_795_250_352_345, "2026-11-21T08:39:12.345Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
  ])
  func `a timestamp and its RFC 3339 form convert both ways`(milliseconds: Int, text: String) throws {
    let moment = Timestamp(milliseconds: Int64(milliseconds))
    #expect("\(moment)" == text)
    #expect(try #require(Timestamp(parsing: Text(text))) == moment)
  }

  @Test(arguments: [Int64.max, Int64.min])
  func `a year beyond four digits is written as the nearest valid one`(milliseconds: Int64) {
    let text = "\(Timestamp(milliseconds: milliseconds))"
    #expect(text == (milliseconds > 0 ? "9999-12-31T23:59:59.999Z" : "0000-01-01T00:00:00.000Z"))
  }

  @Test(arguments: [
    "", "2026-11-21T08:39:12Z", "2026-11-21 08:39:12.345Z", "2026-13-21T08:39:12.345Z", "2026-02-30T08:39:12.345Z",
    "2026-11-21T24:39:12.345Z", "2026-11-21T08:60:12.345Z", "2026-11-21T08:39:60.345Z", "2026-11-00T08:39:12.345Z",
    "2026-11-21T08:39:12.345z", "+026-11-21T08:39:12.345Z", "2026-11-21T08:39:12.34xZ",
  ])
  func `row 25: any other text is no timestamp`(text: String) {
    #expect(Timestamp(parsing: Text(text)) == nil)
  }

  @Test func `every day of eight centuries converts both ways`() {
    for day in stride(from: Int64(-146_097), to: 146_097, by: 1) {
      let moment = Timestamp(milliseconds: day * 86_400_000)
      #expect(Timestamp(parsing: Text("\(moment)")) == moment)
    }
  }
}
