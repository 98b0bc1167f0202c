import IdentityCore
import IdentityWire
import Testing

@testable import ClientFormats

struct MetricTextTests {
  private var samples: [MetricSample] {
    var histogram = Histogram(.amounts)
    histogram.add(2)
    return [
      MetricSample(.commitChanges, histogram), MetricSample(.requests, 3, "get device", "ok"),
      MetricSample(.build, 1, "a \"b\"\\\n"), MetricSample(.start, milliseconds: 1_500),
    ]
  }

  @Test func `OpenMetrics has each family with its unit, and an end marker`() {
    let text = MetricText(.openMetrics).text(samples)
    #expect(
      text.hasPrefix(
        """
        # TYPE identityd_build_info gauge
        # HELP identityd_build_info Always 1; the label is the version of the daemon.
        identityd_build_info{version="a \\"b\\"\\\\\\n"} 1
        # TYPE identityd_start_time_seconds gauge
        # UNIT identityd_start_time_seconds seconds
        # HELP identityd_start_time_seconds Start time of the daemon, in seconds since 1970-01-01 UTC.
        identityd_start_time_seconds 1.5
        # TYPE identityd_requests counter

        """))
    #expect(text.contains("\nidentityd_requests_total{verb=\"get device\",outcome=\"ok\"} 3\n"))
    #expect(text.contains("\nidentityd_commit_changes_bucket{le=\"1.0\"} 0\n"))
    #expect(
      text.hasSuffix(
        """
        identityd_commit_changes_bucket{le="+Inf"} 1
        identityd_commit_changes_sum 2.0
        identityd_commit_changes_count 1
        # EOF

        """))
  }

  @Test(arguments: [MetricText.Format.openMetrics, .prometheus])
  func `hidden characters in a label are escaped`(format: MetricText.Format) {
    let text = MetricText(format).text([MetricSample(.build, 1, "a\u{1b}[2J\u{202e}\u{85}b")])
    #expect(text.contains("{version=\"a\\\\u001b[2J\\\\u202e\\\\u0085b\"} 1\n"), "\(text)")
  }

  @Test func `the Prometheus format has the sample's name, and neither units nor an end marker`() {
    let text = MetricText(.prometheus).text(samples)
    #expect(text.contains("# TYPE identityd_requests_total counter\n"))
    #expect(text.contains("# HELP identityd_requests_total Answered requests"))
    #expect(!text.contains("UNIT") && !text.contains("EOF"))
  }
}
