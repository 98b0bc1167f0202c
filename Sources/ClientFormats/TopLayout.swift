import IdentityCore
import IdentityWire

/// The layout of `top`: a function of two samples and the size of the screen.
package struct TopLayout {
  /// A line of the screen.
  package struct Line: Equatable, Sendable {
    /// The text, at most as long as the screen is wide.
    package let text: String
    /// Whether the line is a heading, which is highlighted.
    package let isHead: Bool
  }

  /// The width of the screen in characters.
  private let columns: Int
  /// The height of the screen in lines.
  private let height: Int

  /// Creates a layout for a screen of this size.
  package init(columns: Int, lines: Int) {
    self.columns = columns
    height = lines
  }

  /// Returns the lines of the screen, at most as many as it has.
  ///
  /// - Parameters:
  ///   - before: An earlier sample, for rates per second; nil for no rates.
  ///   - now: The current sample.
  ///   - events: Lines about events, the newest last.
  ///   - notice: A message that replaces the title, such as that the daemon is gone; nil for the title.
  package func lines(_ before: TopSample?, _ now: TopSample, events: [String], notice: String?) -> [Line] {
    let before = before.flatMap { $0.isOfSameRun(as: now) ? $0 : nil }
    let fixed = summary(before, now, notice) + latencies(before, now)
    // The lists of apps and events share the other lines of the screen. Events get the lines that the apps leave, but
    // at least a third of the shared lines if there are enough events.
    let left = max(0, height - fixed.count)
    let wanted = apps(before, now)
    let forEvents = min(events.count + 1, max(left - wanted.count, left / 3))
    let shownApps = wanted.prefix(max(0, left - forEvents))
    var lines = fixed + shownApps
    if lines.count < height {
      lines.append(head("EVENTS"))
      lines += events.suffix(max(0, height - lines.count)).map { line($0) }
    }
    return Array(lines.prefix(height))
  }

  // Much of the text comes from the daemon (names of apps and families, the version, the reason for `busy`), so hidden
  // characters are escaped.
  private func line(_ text: String) -> Line { Line(text: cut(text), isHead: false) }

  private func cut(_ text: String) -> String { String(WordEncoder.visible(text).prefix(columns)) }

  private func head(_ text: String) -> Line {
    let cut = cut(text)
    return Line(text: cut + String(repeating: " ", count: columns - cut.count), isHead: true)
  }

  // MARK: Summary

  private func summary(_ before: TopSample?, _ now: TopSample, _ notice: String?) -> [Line] {
    let version = now.figures.first { $0.metric == .build }?["version"].map { "\($0)" } ?? "?"
    // A user who may not monitor the daemon gets only the daemon's health and the figures of the user's own app.
    let uptime =
      now.number(.uptime).map { "up \(Self.duration($0))" } ?? "most metrics are for admins and MonitorGroup="
    let title = "identityd \(version)  \(uptime)  q quits"
    func state(_ name: Text) -> String { Self.whole(now.number(.connections) { $0["state"] == name }) }
    let isOK: (MetricSample) -> Bool = { $0["outcome"] == "ok" }
    let requests = rate(before, now) { $0.number(.requests) }
    let refused = rate(before, now) { sample in
      sample.number(.requests).map { _ in sample.number(.requests) { !isOK($0) } ?? 0 }
    }
    let commits = rate(before, now) { $0.number(.commits, where: isOK) }
    let failed = Self.whole(now.number(.commits) { !isOK($0) })
    let store = now.number(.storeBytes).map(Self.bytes) ?? "-"
    let isWritable = now.number(.storeWritable) == 1 ? "writable" : "NOT WRITABLE"
    return [
      notice.map { head($0) } ?? head(title),
      line("requests/s \(requests)  refused/s \(refused)  events \(Self.whole(now.number(.events)))"),
      line(
        "commits/s \(commits)  failed \(failed)  store \(store), \(isWritable)  pending \(Self.whole(now.number(.jobsUnderWay)))"
      ),
      line(
        "connections \(Self.whole(now.number(.connections))): \(state("idle")) idle, \(state("working")) working, \(state("sending")) sending, \(state("ending")) ending"
      ),
      line(
        "accepted \(Self.whole(now.number(.accepted)))  refused \(Self.whole(now.number(.refused)))  subscribers \(Self.whole(now.number(.subscribers)))  largest lag \(Self.whole(now.number(.subscriberLag)))"
      ),
    ]
  }

  // MARK: Latencies

  private func latencies(_ before: TopSample?, _ now: TopSample) -> [Line] {
    var rows: [(String, Metric, Text?)] = [("event loop", .turns, nil), ("commit", .commitSeconds, nil)]
    for sample in now.figures where sample.metric == .jobs {
      guard let family = sample.labels.first?.value else { continue }
      rows.append(("\(family)", .jobs, family))
    }
    let titles = Self.row("LATENCY", ["p50 now", "p99 now", "p50", "p99", "count"])
    return [head(titles)]
      + rows.compactMap { (name, metric, label) -> Line? in
        guard let all = now.histogram(metric, label) else { return nil }
        let earlier = before?.histogram(metric, label)
        let recent = before == nil ? nil : Self.difference(earlier, all)
        let figures = [
          Self.percentile(50, recent), Self.percentile(99, recent), Self.percentile(50, all), Self.percentile(99, all),
          "\(all.count)",
        ]
        return line(Self.row(name, figures))
      }
  }

  private typealias Counts = (count: UInt64, buckets: [MetricSample.Bucket])

  /// Returns the counts that a histogram gained since an earlier sample; nil if the two cannot be compared.
  ///
  /// A histogram that is missing in the earlier sample has gained all its counts.
  private static func difference(_ before: Counts?, _ now: Counts) -> Counts? {
    guard let before else { return now }
    guard before.buckets.map(\.bound) == now.buckets.map(\.bound), now.count >= before.count else { return nil }
    let buckets = zip(before.buckets, now.buckets).map { old, new in
      MetricSample.Bucket(bound: new.bound, count: new.count >= old.count ? new.count - old.count : 0)
    }
    return (now.count - before.count, buckets)
  }

  /// Returns the smallest bound that at least this percentage of the values do not exceed.
  private static func percentile(_ percent: UInt64, _ counts: Counts?) -> String {
    guard let counts, counts.count > 0 else { return "-" }
    // Rounded up, so that the percentile of few values is one of them.
    let (high, low) = counts.count.multipliedFullWidth(by: percent)
    let wanted = (UInt64(100).dividingFullWidth((high, low)).quotient) + (low % 100 == 0 ? 0 : 1)
    guard let bucket = counts.buckets.first(where: { $0.count >= wanted }) else {
      return ">" + (counts.buckets.last.flatMap { Double($0.bound) }.map(seconds) ?? "?")
    }
    return Double(bucket.bound).map(seconds) ?? "?"
  }

  // MARK: Apps

  private func apps(_ before: TopSample?, _ now: TopSample) -> [Line] {
    let width = columns - 45
    let title = Self.padded("APP", width) + Self.right("connections", 13) + Self.right("subscribers", 13)
    let rows = now.apps.map { app -> (rate: Double, line: Line) in
      let earlier = before?.apps.first { $0.name == app.name }
      let requests = earlier.map { max(0, Double(app.requests) - Double($0.requests)) }
      let seconds = before.map { (Double(now.moment) - Double($0.moment)) / 1_000_000 } ?? 0
      let rate = seconds > 0 ? requests.map { $0 / seconds } : nil
      let text =
        Self.padded(app.name, width) + Self.right("\(app.connections)", 13) + Self.right("\(app.subscribers)", 13)
        + Self.right(rate.map(Self.decimal) ?? "-", 19)
      return (rate ?? 0, line(text))
    }
    return [head(title + Self.right("requests/s", 19))] + rows.sorted { $0.rate > $1.rate }.map(\.line)
  }

  // MARK: Figures

  /// Returns the growth of a value per second.
  private func rate(_ before: TopSample?, _ now: TopSample, _ value: (TopSample) -> Double?) -> String {
    guard let before, now.moment > before.moment, let old = value(before), let new = value(now) else { return "-" }
    return Self.decimal(max(0, new - old) / (Double(now.moment - before.moment) / 1_000_000))
  }

  private static func whole(_ number: Double?) -> String {
    number.flatMap { Int64(exactly: $0) }.map { "\($0)" } ?? "-"
  }

  private static func decimal(_ number: Double) -> String {
    guard number < 1e15 else { return "\(number)" }
    let tenths = Int64((number * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Formats the bound of a histogram, which is 1, 2 or 5 times a power of ten.
  private static func seconds(_ seconds: Double) -> String {
    guard seconds < 1e9 else { return "?" }
    let microseconds = Int64((seconds * 1_000_000).rounded())
    if microseconds < 1_000 { return "\(microseconds) us" }
    return microseconds < 1_000_000 ? "\(microseconds / 1_000) ms" : "\(microseconds / 1_000_000) s"
  }

  private static func bytes(_ bytes: Double) -> String {
    bytes < 1_048_576 ? "\(decimal(bytes / 1_024)) KiB" : "\(decimal(bytes / 1_048_576)) MiB"
  }

  private static func duration(_ seconds: Double) -> String {
    guard let seconds = Int64(exactly: seconds.rounded(.down)) else { return "?" }
    let parts = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
    return (seconds >= 86_400 ? "\(seconds / 86_400)d " : "") + parts.joined(separator: ":")
  }

  private static func row(_ name: String, _ figures: [String]) -> String {
    padded(name, 20) + figures.map { right($0, 12) }.joined()
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    let cut = WordEncoder.visible(text).prefix(max(0, width - 1))
    return cut + String(repeating: " ", count: max(0, width - cut.count))
  }

  private static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }
}
