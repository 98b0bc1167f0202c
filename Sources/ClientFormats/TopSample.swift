import IdentityCore
package import IdentityWire

/// The data that `top` reads from the daemon at one moment.
package struct TopSample: Equatable, Sendable {
  /// The usage of the daemon by one app.
  package struct App: Equatable, Sendable {
    /// The ID of the app.
    package let name: String
    /// The number of its connections.
    package let connections: Int64
    /// The number of its connections that subscribed to events.
    package let subscribers: Int64
    /// The number of requests since the start of the daemon.
    package let requests: Int64

    /// Reads a row of `stats apps=yes`; nil if a part is missing.
    package init?(_ row: ReplyLine.Content) {
      func number(_ name: Text) -> Int64? { row[name].flatMap { Int64("\($0)") } }
      guard let name = row.words.first, let connections = number("connections"),
        let subscribers = number("subscribers"), let requests = number("requests")
      else { return nil }
      self.name = "\(name)"
      self.connections = connections
      self.subscribers = subscribers
      self.requests = requests
    }
  }

  /// The time of the sample, in microseconds of a monotonic clock.
  package let moment: UInt64
  /// The samples in the answer to `stats`.
  package let figures: [MetricSample]
  /// The rows of the answer to `stats apps=yes`.
  package let apps: [App]

  /// Creates a sample.
  package init(moment: UInt64, figures: [MetricSample], apps: [App]) {
    self.moment = moment
    self.figures = figures
    self.apps = apps
  }

  /// Returns the sum of all series of a metric that meet a condition; nil if there are none.
  func number(_ metric: Metric, where isMeant: (MetricSample) -> Bool = { _ in true }) -> Double? {
    let numbers = figures.filter { $0.metric == metric && isMeant($0) }.compactMap { sample in
      if case .number(let number) = sample.value { Double(number) } else { nil }
    }
    return numbers.isEmpty ? nil : numbers.reduce(0, +)
  }

  /// Returns the histogram of a series; nil if there is none.
  func histogram(_ metric: Metric, _ label: Text? = nil) -> (count: UInt64, buckets: [MetricSample.Bucket])? {
    let found = figures.first { $0.metric == metric && (label == nil || $0.labels.first?.value == label) }
    guard case .histogram(let count, _, let buckets)? = found?.value else { return nil }
    return (count, buckets)
  }

  /// Whether both samples come from the same run of the daemon, so that its counters did not restart between them.
  func isOfSameRun(as other: TopSample) -> Bool { number(.start) == other.number(.start) }
}
