import IdentityCore
import IdentityWire
import Testing

@testable import ClientFormats

struct TopLayoutTests {
  private func row(_ line: String) throws -> ReplyLine.Content {
    guard case .row(let content)? = ReplyLine(Array(line.utf8)) else { throw NotARow() }
    return content
  }

  private struct NotARow: Error {}

  /// Returns a sample with a given time in seconds.
  private func sample(
    _ second: UInt64, requests: Int, turns: [UInt64] = [], start: Int64 = 0, apps: [String] = []
  ) throws -> TopSample {
    var histogram = Histogram(.seconds)
    for turn in turns { histogram.add(turn) }
    return TopSample(
      moment: second * 1_000_000,
      figures: [
        MetricSample(.build, 1, "0.1.0"), MetricSample(.start, milliseconds: start),
        MetricSample(.uptime, milliseconds: 93_784_000), MetricSample(.requests, requests, "ping", "ok"),
        MetricSample(.requests, 1, "none", "syntax"), MetricSample(.turns, histogram),
        MetricSample(.storeBytes, 2_097_152), MetricSample(.storeWritable, 1),
      ],
      apps: try apps.compactMap { TopSample.App(try row($0)) })
  }

  private func text(_ layout: TopLayout, _ before: TopSample?, _ now: TopSample) -> String {
    layout.lines(before, now, events: ["one", "two"], notice: nil).map(\.text).joined(separator: "\n")
  }

  @Test func `counters are shown as rates, and gauges as they are`() throws {
    let text = text(
      TopLayout(columns: 80, lines: 24),
      try sample(1, requests: 100, apps: ["* a connections=1 subscribers=0 requests=5"]),
      try sample(
        3, requests: 201,
        apps: ["* a connections=2 subscribers=1 requests=9", "* b connections=1 subscribers=0 requests=1"]))
    #expect(text.contains("identityd 0.1.0  up 1d 02:03:04"))
    #expect(text.contains("requests/s 50.5  refused/s 0.0"))
    #expect(text.contains("store 2.0 MiB, writable"))
    let apps = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    #expect(apps.contains(["a", "2", "1", "2.0"]))
    #expect(apps.contains(["b", "1", "0", "-"]), "one that is new has no rate yet")
    #expect(text.hasSuffix("one\ntwo"))
  }

  @Test func `figures that the daemon does not show are dashes`() throws {
    func sample(_ second: UInt64) throws -> TopSample {
      TopSample(
        moment: second * 1_000_000,
        figures: [MetricSample(.build, 1, "0.1.0"), MetricSample(.storeWritable, 1)],
        apps: try [TopSample.App(row("* a connections=1 subscribers=0 requests=\(second)"))].compactMap { $0 })
    }
    let text = text(TopLayout(columns: 80, lines: 24), try sample(1), try sample(3))
    #expect(text.hasPrefix("identityd 0.1.0  most metrics are for admins and MonitorGroup=  q quits"))
    #expect(text.contains("requests/s -  refused/s -  events -"))
    #expect(text.contains("commits/s -  failed -  store -, writable"))
    #expect(text.split(separator: "\n").map { $0.split(separator: " ") }.contains(["a", "1", "0", "1.0"]))
  }

  @Test func `hidden characters from the daemon are escaped`() throws {
    let name = #"* "a\u001b[2J\u202eb" connections=1 subscribers=0 requests=5"#
    let lines = TopLayout(columns: 80, lines: 24).lines(
      nil, try sample(1, requests: 1, apps: [name]), events: [], notice: "busy \u{9b}1m\u{2028}")
    #expect(lines.contains { $0.text.hasPrefix(#"a\u001b[2J\u202eb "#) }, "\(lines)")
    #expect(lines.contains { $0.text.hasPrefix(#"busy \u009b1m\u2028 "#) }, "\(lines)")
    #expect(lines.allSatisfy { $0.text.count <= 80 })
  }

  @Test func `percentiles are shown for the last interval and for the whole run`() throws {
    let before = try sample(1, requests: 0, turns: [900_000])
    let now = try sample(2, requests: 0, turns: [900_000] + [UInt64](repeating: 15, count: 98) + [700, 700])
    let line = try #require(
      text(TopLayout(columns: 80, lines: 24), before, now).split(separator: "\n").first { $0.hasPrefix("event loop") })
    let words = line.split(separator: " ").map(String.init)
    #expect(words == ["event", "loop", "20", "us", "1", "ms", "20", "us", "1", "ms", "101"])
  }

  @Test func `a value above all bounds is shown as such`() throws {
    let now = try sample(2, requests: 0, turns: [20_000_000])
    #expect(text(TopLayout(columns: 80, lines: 24), nil, now).contains(">10 s"))
  }

  @Test func `after a restart no rate is negative`() throws {
    let text = text(
      TopLayout(columns: 80, lines: 24), try sample(1, requests: 500, turns: [1, 1]),
      try sample(2, requests: 3, start: 77))
    #expect(text.contains("requests/s -"))
    #expect(!text.contains("-4"))
  }

  @Test func `the output fits a screen of any size`() throws {
    let apps = (0..<100).map {
      "* app\($0)-\(String(repeating: "x", count: 200)) connections=1 subscribers=0 requests=\($0)"
    }
    let before = try sample(1, requests: 0, apps: apps)
    let now = try sample(2, requests: .max, turns: [1, 2, 3], apps: apps)
    for columns in [1, 2, 20, 40, 80, 300] {
      for height in [1, 2, 5, 10, 24, 100] {
        let lines = TopLayout(columns: columns, lines: height).lines(
          before, now, events: [String](repeating: String(repeating: "e", count: 500), count: 64), notice: nil)
        #expect(lines.count <= height)
        #expect(lines.allSatisfy { $0.text.count <= columns })
      }
    }
    let usual = TopLayout(columns: 80, lines: 24).lines(before, now, events: ["e"], notice: "gone")
    #expect(usual.first?.text.hasPrefix("gone ") == true)
    #expect(usual.contains { $0.text.hasPrefix("APP") } && usual.contains { $0.text.hasPrefix("EVENTS") })
  }
}
