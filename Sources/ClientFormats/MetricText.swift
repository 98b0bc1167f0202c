import IdentityCore
package import IdentityWire

/// Writes samples as text that monitoring reads.
package struct MetricText {
  /// Which text.
  package enum Format: Equatable, Sendable {
    /// OpenMetrics 1.0: https://prometheus.io/docs/specs/om/open_metrics_spec/
    case openMetrics
    /// Prometheus' own text format, version 0.0.4, which is all that node_exporter's textfile collector reads. The samples
    /// are the same; a counter's description is under the name of its sample, which OpenMetrics forbids; and neither a unit
    /// nor an end is known.
    case prometheus
  }

  private let format: Format

  /// Says which.
  package init(_ format: Format) { self.format = format }

  /// The text: metrics in the order of the table, those that have no sample left out.
  package func text(_ samples: [MetricSample]) -> String {
    var text = ""
    for metric in Metric.all {
      let own = samples.filter { $0.metric == metric }
      guard !own.isEmpty else { continue }
      text += head(of: metric)
      for sample in own { text += lines(of: sample) }
    }
    return format == .openMetrics ? text + "# EOF\n" : text
  }

  private func head(of metric: Metric) -> String {
    let sample = metric.kind == .counter ? Self.name(of: metric) + "_total" : Self.name(of: metric)
    let name = format == .openMetrics ? Self.name(of: metric) : sample
    var text = "# TYPE \(name) \(metric.kind.rawValue)\n"
    if format == .openMetrics, let unit = metric.unit { text += "# UNIT \(name) \(unit.rawValue)\n" }
    return text + "# HELP \(name) \(Self.escaped(metric.summary, quotes: format == .openMetrics))\n"
  }

  private func lines(of sample: MetricSample) -> String {
    let name = Self.name(of: sample.metric)
    let labels = sample.labels.map { ($0.name, "\($0.value)") }
    switch sample.value {
    case .number(let number):
      return Self.line(sample.metric.kind == .counter ? name + "_total" : name, labels, number)
    case .histogram(let count, let sum, let buckets):
      let all = buckets.map { ($0.bound, $0.count) } + [("+Inf", count)]
      return all.map { Self.line(name + "_bucket", labels + [("le", $0)], "\($1)") }.joined()
        + Self.line(name + "_sum", labels, sum) + Self.line(name + "_count", labels, "\(count)")
    }
  }

  /// The family of a metric.
  private static func name(of metric: Metric) -> String {
    "identityd_" + String(metric.name.map { $0 == "-" ? "_" : $0 })
  }

  private static func line(_ name: String, _ labels: [(name: String, value: String)], _ value: String) -> String {
    let list = labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
    return "\(name)\(list.isEmpty ? "" : "{\(list)}") \(value)\n"
  }

  /// Both formats know a backslash and an end of line as escapes in a description, and quotes too in the value of a label;
  /// OpenMetrics has those in a description as well. Neither has one for other hidden characters: the value
  /// then has the letters of their JSON escapes.
  private static func escaped(_ text: String, quotes: Bool) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "\\": "\\\\"
      case "\n": "\\n"
      case "\"" where quotes: "\\\""
      case _ where WordEncoder.isHidden(scalar): "\\\(WordEncoder.escape(of: scalar))"
      default: String(scalar)
      }
    }.joined()
  }
}
