import IdentityCore
package import IdentityWire

/// What `top` knows at one moment.
package struct TopSample: Equatable, Sendable {
  /// What one app has of the daemon.
  package struct App: Equatable, Sendable {
    /// Its name.
    package let name: String
    /// How many connections it has.
    package let connections: Int64
    /// How many of them subscribed.
    package let subscribers: Int64
    /// How many requests it has made since the daemon's start.
    package let requests: Int64

    /// Reads a row of `stats apps=yes`; nil where it is none.
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

  /// When that was, in microseconds of a clock that never steps back.
  package let moment: UInt64
  /// What `stats` told.
  package let figures: [MetricSample]
  /// What `stats apps=yes` told.
  package let apps: [App]

  /// Puts it together.
  package init(moment: UInt64, figures: [MetricSample], apps: [App]) {
    self.moment = moment
    self.figures = figures
    self.apps = apps
  }

  /// The sum of all series of a metric for which this holds; nil where there is none.
  func number(_ metric: Metric, where isMeant: (MetricSample) -> Bool = { _ in true }) -> Double? {
    let numbers = figures.filter { $0.metric == metric && isMeant($0) }.compactMap { sample in
      if case .number(let number) = sample.value { Double(number) } else { nil }
    }
    return numbers.isEmpty ? nil : numbers.reduce(0, +)
  }

  /// The histogram of a series; nil where there is none.
  func histogram(_ metric: Metric, _ label: Text? = nil) -> (count: UInt64, buckets: [MetricSample.Bucket])? {
    let found = figures.first { $0.metric == metric && (label == nil || $0.labels.first?.value == label) }
    guard case .histogram(let count, _, let buckets)? = found?.value else { return nil }
    return (count, buckets)
  }

  /// Whether both are of one and the same run of the daemon, so that what it counts has grown from one to the other.
  func isOfSameRun(as other: TopSample) -> Bool { number(.start) == other.number(.start) }
}
