import IdentityCore
package import IdentityWire

/// Formats metric samples as text for monitoring systems.
package struct MetricText {
  /// The text format.
  package enum Format: Equatable, Sendable {
    /// OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/).
    case openMetrics
    /// The Prometheus text format, version 0.0.4, the only one that node_exporter's textfile collector reads.
    ///
    /// The samples are those of OpenMetrics. The description of a counter is under the name of its sample, which
    /// OpenMetrics forbids, and there are neither `# UNIT` nor `# EOF` lines.
    case prometheus
  }

  private let format: Format

  package init(_ format: Format) { self.format = format }

  /// Returns the text. Metrics are in the order of ``Metric/all``, followed by that of the client. Metrics without samples
  /// are left out.
  package func text(_ samples: [MetricSample]) -> String {
    var text = ""
    for metric in Metric.all + [.checkFindings] {
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

  /// Returns the name of a metric family.
  private static func name(of metric: Metric) -> String {
    "identityd_" + String(metric.name.map { $0 == "-" ? "_" : $0 })
  }

  private static func line(_ name: String, _ labels: [(name: String, value: String)], _ value: String) -> String {
    let list = labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
    return "\(name)\(list.isEmpty ? "" : "{\(list)}") \(value)\n"
  }

  /// Escapes a description or a label value.
  ///
  /// Both formats escape a backslash and a line feed in a description, and also quotes in a label value. OpenMetrics
  /// escapes quotes in a description too. Neither format can escape other hidden characters, so the value has the
  /// letters of their JSON escapes instead.
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
