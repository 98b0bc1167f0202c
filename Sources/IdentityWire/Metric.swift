package import IdentityCore

/// A row of the table of metrics: everything about a metric but its value.
///
/// The answer to `stats`, the text that other programs read, the manual and the tests all use the table. The client has
/// one metric of its own, ``checkFindings``.
package struct Metric: Equatable, Sendable {
  /// The type of a metric, which tells how to read its value.
  package enum Kind: String, Sendable {
    /// A value that only grows, from 0 at the daemon's start.
    case counter
    /// A current value.
    case gauge
    /// The distribution of many values; see ``Histogram``.
    case histogram
  }

  /// The unit of a metric's value. The name of the metric ends with the unit.
  package enum Unit: String, Sendable {
    case seconds
    case bytes
  }

  /// The name of the metric: words in lower case, joined by hyphens.
  package let name: String
  /// The type of the metric.
  package let kind: Kind
  /// The unit of the value; nil for a number of things.
  package let unit: Unit?
  /// The names of the labels that distinguish the series, in the order of the answer. Empty for
  /// a metric with one series.
  package let labels: [String]
  /// The peers that may see the metric.
  package let audience: RowAudience
  /// The meaning of the metric, in one sentence.
  package let summary: String

  private init(
    _ name: String, _ kind: Kind, unit: Unit? = nil, labels: [String] = [], audience: RowAudience = .monitors,
    _ summary: String
  ) {
    self.name = name
    self.kind = kind
    self.unit = unit
    self.labels = labels
    self.audience = audience
    self.summary = summary
  }
}

extension Metric {
  package static let build = Metric(
    "build-info", .gauge, labels: ["version"], audience: .everybody, "Always 1; the label is the version of the daemon."
  )
  package static let start = Metric(
    "start-time-seconds", .gauge, unit: .seconds, "Start time of the daemon, in seconds since 1970-01-01 UTC.")
  package static let requests = Metric(
    "requests", .counter, labels: ["verb", "outcome"],
    "Answered requests, by verb ('none' if the verb is unknown) and by outcome ('ok' or the error code).")
  package static let turns = Metric(
    "turn-seconds", .histogram, unit: .seconds,
    "Duration of a turn of the event loop; every 64th turn is measured.")
  package static let jobs = Metric(
    "job-seconds", .histogram, unit: .seconds, labels: ["family"],
    "Time from a request to the writer's answer, by verb family; the cost of reads is in turn-seconds.")
  package static let jobsUnderWay = Metric("jobs", .gauge, "Requests that the writer has not answered yet.")
  package static let writerQueue = Metric("writer-queue", .gauge, "Messages in the writer's queue.")
  package static let commits = Metric(
    "commits", .counter, labels: ["outcome"], "Transactions, by outcome ('ok' or 'failed').")
  package static let commitSeconds = Metric(
    "commit-seconds", .histogram, unit: .seconds, "Time until a transaction was on disk.")
  package static let commitChanges = Metric("commit-changes", .histogram, "Number of changes in a transaction.")
  package static let storeBytes = Metric(
    "store-bytes", .gauge, unit: .bytes, "Size of the store including its write-ahead log, as of the last commit.")
  package static let storeWritable = Metric(
    "store-writable", .gauge, audience: .everybody, "1 if changes are possible, otherwise 0.")
  package static let storeCondition = Metric(
    "store-condition", .gauge, labels: ["condition"], audience: .everybody,
    "1 for the condition that the store is in, and 0 for each other one; the conditions are those of the row 'store' of status."
  )
  package static let keyAvailable = Metric(
    "key-available", .gauge, audience: .everybody,
    "1 if the items' master key is available, so that items can be used, otherwise 0.")
  package static let manifestFaults = Metric(
    "manifest-faults", .gauge, audience: .everybody, "Faults in the manifests.")
  package static let machineSuspect = Metric(
    "machine-suspect", .gauge,
    "1 if the machine changed and no admin has acknowledged that, otherwise 0.")
  package static let connections = Metric(
    "connections", .gauge, labels: ["state"],
    "Connections by state: 'idle', 'working' (on a request), 'sending' (output that the client has not read), 'ending'."
  )
  package static let accepted = Metric("connections-accepted", .counter, "Accepted connections.")
  package static let refused = Metric(
    "connections-refused", .counter, labels: ["reason"],
    "Connections that were refused with an error and closed, by reason: 'connections' (all are in use), 'principal' (it has as many as it may have), 'resources' (the daemon is out of descriptors or memory), 'denied' (a container that is not served), 'unattested' (the daemon cannot tell who the peer is)."
  )
  package static let principalsAtBound = Metric(
    "principals-at-bound", .gauge, labels: ["bound"],
    "Principals that have as much as they may have, by bound: 'connections', 'changes' (requests that the writer has not answered), 'output' (bytes that clients have not read)."
  )
  package static let subscribers = Metric("subscribers", .gauge, "Connections that are subscribed to events.")
  package static let subscriberLag = Metric(
    "subscriber-lag", .gauge, "Number of events by which the slowest subscriber is behind.")
  package static let events = Metric("events", .counter, "Recorded events.")
  package static let lastEvent = Metric(
    "last-event-time-seconds", .gauge, unit: .seconds,
    "Time of the last event, in seconds since 1970-01-01 UTC: that of the last change that subscribers are told of.")
  package static let lastBackup = Metric(
    "last-backup-time-seconds", .gauge, unit: .seconds,
    "Time when the last backup was made that a client has read to its end, in seconds since 1970-01-01 UTC. Not there before the first backup."
  )
  package static let fleetState = Metric(
    "fleet-state", .gauge, labels: ["state"],
    "1 for the state that the fleet's service is in, and 0 for each other one; the states are those of the row 'fleet' of status."
  )
  package static let fleetContact = Metric(
    "fleet-contact-time-seconds", .gauge, unit: .seconds,
    "Last time when the fleet's service was connected with its broker, in seconds since 1970-01-01 UTC; the present while it is connected. Not there before the first connection since the daemon's start."
  )
  package static let logQueue = Metric("log-queue", .gauge, "Log entries that wait to be written.")
  package static let logSuppressed = Metric(
    "log-suppressed", .counter, "Log entries that were suppressed because a principal caused too many.")
  package static let logDropped = Metric(
    "log-dropped", .counter, "Log entries that were dropped because the queue was full or the log could not be written."
  )

  /// The metric of `identityctl check`. No answer of the daemon has it.
  package static let checkFindings = Metric(
    "check-findings", .gauge, labels: ["severity"], "Checks that found a fault, by severity: 'failed' or 'warning'.")

  /// All metrics of the daemon, in the order of the answer.
  package static let all = [
    build, start, requests, turns, jobs, jobsUnderWay, writerQueue, commits, commitSeconds, commitChanges, storeBytes,
    storeWritable, storeCondition, keyAvailable, manifestFaults, machineSuspect, connections, accepted, refused,
    principalsAtBound, subscribers, subscriberLag, events, lastEvent, lastBackup, fleetState, fleetContact, logQueue,
    logSuppressed, logDropped,
  ]
}

/// The value of one series of a metric.
package struct MetricSample: Equatable, Sendable {
  /// A label that distinguishes a series from other series of the metric.
  package struct Label: Equatable, Sendable {
    /// The name, one of ``Metric/labels``.
    package let name: String
    /// The value, which may be any text.
    package let value: Text
  }

  /// A bucket of a histogram.
  package struct Bucket: Equatable, Sendable {
    /// The upper bound, a decimal number.
    package let bound: String
    /// The number of values at or below the bound.
    package let count: UInt64
  }

  /// The value of a sample.
  package enum Value: Equatable, Sendable {
    /// A decimal number.
    case number(String)
    /// The number of values, their sum as a decimal number, and the buckets with ascending bounds.
    case histogram(count: UInt64, sum: String, [Bucket])
  }

  /// The metric that the sample belongs to.
  package let metric: Metric
  /// The labels, in the order of ``Metric/labels``.
  package let labels: [Label]
  /// The value of the series.
  package let value: Value

  /// Creates a sample of a whole number.
  ///
  /// - Parameter labels: the values of the metric's labels, in the order of ``Metric/labels``.
  package init(_ metric: Metric, _ number: some BinaryInteger, _ labels: String...) {
    self.init(metric, .number("\(number)"), labels)
  }

  package init(_ metric: Metric, milliseconds: Int64) {
    self.init(metric, .number("\(Double(milliseconds) / 1_000)"), [])
  }

  package init(_ metric: Metric, _ histogram: Histogram, _ labels: String...) {
    let buckets = histogram.cumulative.map { Bucket(bound: $0.bound, count: $0.count) }
    let sum = histogram.scale.shown(histogram.sum)
    self.init(metric, .histogram(count: histogram.count, sum: sum, buckets), labels)
  }

  private init(_ metric: Metric, _ value: Value, _ labels: [String]) {
    self.metric = metric
    self.labels = zip(metric.labels, labels).map { Label(name: $0, value: Text($1)) }
    self.value = value
  }
}

// MARK: - Rows

extension MetricSample {
  private static let sum = "sum"
  private static let boundPrefix = "le."

  /// Adds the sample as a row: `* name=value`, then the labels.
  ///
  /// A histogram's row goes on with `sum=`, and with `le.BOUND=` for each bucket.
  package func append(to reply: inout Reply) {
    reply.row()
    switch value {
    case .number(let number): reply.attribute(metric.name, .string(number))
    case .histogram(let count, _, _): reply.attribute(metric.name, .string("\(count)"))
    }
    for label in labels { reply.attribute(label.name, .text(label.value)) }
    guard case .histogram(_, let sum, let buckets) = value else { return }
    reply.attribute(Self.sum, .string(sum))
    for bucket in buckets { reply.attribute(Self.boundPrefix + bucket.bound, .string("\(bucket.count)")) }
  }

  /// Reads a row. Nil if the row is malformed, or if its metric is not in the table, as may happen with a later daemon.
  package init?(_ row: ReplyLine.Content) {
    guard let head = row.attributes.first, let metric = Metric.all.first(where: { Text($0.name) == head.name }) else {
      return nil
    }
    self.metric = metric
    labels = metric.labels.compactMap { name in row[Text(name)].map { Label(name: name, value: $0) } }
    guard labels.count == metric.labels.count, let number = Self.number(head.value) else { return nil }
    guard metric.kind == .histogram else {
      value = .number(number)
      return
    }
    var sum: String?
    var buckets: [Bucket] = []
    for attribute in row.attributes.dropFirst() {
      let name = "\(attribute.name)"
      if name == Self.sum { sum = Self.number(attribute.value) }
      guard name.hasPrefix(Self.boundPrefix) else { continue }
      let bound = Text(String(name.dropFirst(Self.boundPrefix.count)))
      guard let bound = Self.number(bound), let count = UInt64("\(attribute.value)") else { return nil }
      buckets.append(Bucket(bound: bound, count: count))
    }
    guard let sum, let count = UInt64(number) else { return nil }
    value = .histogram(count: count, sum: sum, buckets)
  }

  /// Returns the text of a finite number, otherwise nil, so that only numbers reach the programs that read samples.
  private static func number(_ text: Text) -> String? {
    let text = "\(text)"
    guard let number = Double(text), number.isFinite else { return nil }
    return text
  }
}
