import IdentityCore
import Testing

@testable import IdentityWire

struct MetricTests {
  @Test func `metric names are unique and end with their unit`() {
    #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
    for metric in Metric.all {
      #expect(metric.name.allSatisfy { $0 == "-" || ("a"..."z").contains($0) }, "\(metric.name)")
      if let unit = metric.unit { #expect(metric.name.hasSuffix("-\(unit.rawValue)"), "\(metric.name)") }
      // A label with such a name could be confused with the other attributes of a histogram.
      #expect(!metric.labels.contains { $0 == "sum" || $0.hasPrefix("le") }, "\(metric.name)")
      #expect(metric.summary.hasSuffix("."), "\(metric.name)")
    }
  }

  @Test func `everybody sees the release and the health, and only monitors more`() {
    #expect(
      Metric.all.filter { $0.audience == .everybody }
        == [.build, .storeWritable, .storeCondition, .keyAvailable, .manifestFaults])
    #expect(Metric.all.filter { $0.audience == .sharingMonitors }.isEmpty)
  }

  @Test func `a histogram counts a value in the first bucket whose bound is not below it`() {
    var histogram = Histogram(.amounts)
    for value in [0, 1, 2, 3, 5, 1_000, 1_001] { histogram.add(UInt64(value)) }
    let expected: [(String, UInt64)] = [
      ("1.0", 2), ("2.0", 3), ("5.0", 5), ("10.0", 5), ("20.0", 5), ("50.0", 5), ("100.0", 5), ("200.0", 5),
      ("500.0", 5), ("1000.0", 6),
    ]
    #expect(histogram.cumulative.map(\.bound) == expected.map(\.0))
    #expect(histogram.cumulative.map(\.count) == expected.map(\.1))
    #expect(histogram.count == 7)
    #expect(histogram.sum == 2_012)
  }

  @Test func `times are counted in microseconds and shown in seconds`() {
    var histogram = Histogram(.seconds)
    histogram.add(1)
    histogram.add(20_000_000)
    #expect(histogram.cumulative.map(\.bound).prefix(6) == ["1e-06", "2e-06", "5e-06", "1e-05", "2e-05", "5e-05"])
    #expect(histogram.cumulative.map(\.bound).suffix(3) == ["2.0", "5.0", "10.0"])
    #expect(histogram.cumulative.allSatisfy { $0.count == 1 })
    #expect(histogram.scale.shown(histogram.sum) == "20.000001")
  }

  private func row(_ sample: MetricSample) throws -> ReplyLine.Content {
    var reply = Reply()
    sample.append(to: &reply)
    reply.ok()
    var bytes: [UInt8] = []
    reply.append(to: &bytes)
    let line = Array(bytes.prefix { $0 != UInt8(ascii: "\n") })
    guard case .row(let content)? = ReplyLine(line) else { throw NotARow() }
    return content
  }

  private struct NotARow: Error {}

  @Test func `a written sample is read back unchanged`() throws {
    var histogram = Histogram(.seconds)
    for value in [3, 700, 12_000_000] { histogram.add(UInt64(value)) }
    let samples = [
      MetricSample(.requests, 12, "get device", "ok"), MetricSample(.build, 1, "a \"b\"\\\n=c"),
      MetricSample(.start, milliseconds: 12_345), MetricSample(.turns, Histogram(.seconds)),
      MetricSample(.jobs, histogram, "items"),
    ]
    for sample in samples { #expect(try MetricSample(row(sample)) == sample) }
  }

  @Test(arguments: [
    "*", "* requests=1", "* requests=x verb=ping outcome=ok", "* later-metric=1", "* turn-seconds=1",
    "* turn-seconds=1 sum=inf", "* turn-seconds=1 sum=1 le.x=1", "* turn-seconds=1 sum=1 le.1=-1",
    "* start-time-seconds=nan",
  ])
  func `a malformed sample is refused`(line: String) throws {
    guard case .row(let content)? = ReplyLine(Array(line.utf8)) else { throw NotARow() }
    #expect(MetricSample(content) == nil)
  }
}
