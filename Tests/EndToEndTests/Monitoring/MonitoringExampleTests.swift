import Foundation
import IdentityWire
import TestSupport
import Testing

/// The alert rules and the dashboard in `packaging/examples/monitoring`, read by Prometheus' own tool.
@Suite(.tags(.plain)) struct MonitoringExampleTests {
  private static let folder = Document.root.appending(path: "packaging/examples/monitoring")
  private static let rules = folder.appending(path: "identityd.rules.yml")
  private static let dashboard = folder.appending(path: "identityd.dashboard.json")

  /// The name and the command of an alert rule.
  private struct Alert {
    let name: String
    var command = ""
  }

  private var alerts: [Alert] {
    get throws {
      try String(contentsOf: Self.rules, encoding: .utf8).split(separator: "\n").reduce(into: []) { alerts, line in
        let line = line.drop { $0 == " " }
        if line.hasPrefix("- alert: ") { alerts.append(Alert(name: String(line.dropFirst("- alert: ".count)))) }
        guard let last = alerts.indices.last else { return }
        if line.hasPrefix("command: ") { alerts[last].command = String(line.dropFirst("command: ".count)) }
      }
    }
  }

  /// Runs promtool(1) on a file with this text.
  private func promtool(_ words: String..., text: String) throws -> (status: Int32, output: String, errors: String) {
    let file = FileManager.default.temporaryDirectory.appending(path: "identityd-\(UUID().uuidString).yml")
    try Data(text.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    return try run(["promtool"] + words + [file.path])
  }

  /// Expects that a query names only metrics of the table, in the form of their kind.
  private func expectMetrics(_ query: String) {
    let names = Set(
      Metric.all.flatMap { metric in
        let name = "identityd_" + metric.name.replacing("-", with: "_")
        return switch metric.kind {
        case .counter: [name + "_total"]
        case .gauge: [name]
        case .histogram: ["bucket", "sum", "count"].map { "\(name)_\($0)" }
        }
      })
    for match in query.matches(of: /\bidentityd_\w+/) {
      #expect(names.contains(String(match.output)), "\(match.output) in \(query)")
    }
    for match in query.matches(of: /\b(identityd_\w+)\{([^}]*)\}|\bby \(([^)]*)\)/) {
      let labels =
        match.2.map { $0.matches(of: /(\w+)\s*=/).map { String($0.1) } } ?? match.3.map { [String($0)] } ?? []
      let known = Set(Metric.all.flatMap(\.labels) + ["instance", "le"])
      #expect(known.isSuperset(of: labels), "\(labels) in \(query)")
    }
  }

  // MARK: Alerts

  @Test func `promtool accepts the alert rules, and each names metrics of the table`() throws {
    let outcome = try run(["promtool", "check", "rules", Self.rules.path])
    #expect(outcome.status == 0, "\(outcome)")
    try expectMetrics(String(contentsOf: Self.rules, encoding: .utf8))
  }

  @Test func `each alert names a command that exists`() throws {
    let alerts = try alerts
    #expect(alerts.count > 5)
    let units = try FileManager.default.contentsOfDirectory(atPath: Document.root.appending(path: "systemd").path)
    for alert in alerts {
      let words = alert.command.split(separator: " ").map(String.init)
      try #require(words.count > 1, "\(alert.name) names no command")
      switch words[0] {
      case "identityctl":
        let help = try run([DaemonUnderTest.binaries.appending(path: "identityctl").path, words[1], "--help"])
        #expect(help.status == 0, "\(alert.name): \(help)")
      case "journalctl", "systemctl":
        #expect(units.contains { alert.command.contains($0) }, "\(alert.name): \(alert.command)")
      case "df": #expect(words[1] == "/var/lib/identityd")
      default: Issue.record("\(alert.name): \(alert.command)")
      }
    }
  }

  @Test(.enabled(if: isRoot, "breaking a daemon needs root"), arguments: BrokenDaemon.allCases)
  func `a broken daemon's metrics show the fault, and make its alerts fire and no others`(daemon: BrokenDaemon) throws {
    let (before, after) = try daemon.record()
    for sample in daemon.samples {
      #expect(after.split(separator: "\n").contains(sample[...]), "\(sample) is missing in:\n\(after)")
      #expect(!before.split(separator: "\n").contains(sample[...]), "\(sample)")
    }
    try expectAlerts(daemon.alerts, before, after, isStale: daemon == .stopped)
  }

  @Test func `a failed check unit makes its alert fire`() throws {
    try expectAlerts(["IdentitydCheckFailed"], "", "", hasFailed: true)
  }

  @Test func `the tests make every alert fire`() throws {
    #expect(
      try Set(alerts.map(\.name)) == Set(BrokenDaemon.allCases.flatMap(\.alerts) + ["IdentitydCheckFailed"]))
  }

  /// Expects that exactly these alerts fire a quarter of an hour after the metrics changed.
  ///
  /// - Parameters:
  ///   - isStale: whether the file of the metrics stays as it was. Its age is node_exporter's own metric.
  ///   - hasFailed: whether identityd-check.service has failed, according to node_exporter.
  private func expectAlerts(
    _ names: [String], _ before: String, _ after: String, isStale: Bool = false, hasFailed: Bool = false
  ) throws {
    let old = samples(before)
    // The time of a test of promtool begins in 1970.
    let now = Date().timeIntervalSince1970
    func relative(_ value: String, of name: String) -> String {
      name.hasSuffix("_time_seconds") ? Double(value).map { "\($0 - now)" } ?? value : value
    }
    var series = samples(after).map { name, value in
      (name, "\(relative(old[name] ?? value, of: name)) \(relative(value, of: name))+0x20")
    }
    series.append(
      (
        #"node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/identityd.prom"}"#,
        isStale ? "0+0x20" : "0+60x20"
      ))
    series.append(
      (#"node_systemd_unit_state{name="identityd-check.service",state="failed"}"#, hasFailed ? "1+0x20" : "0+0x20"))
    let outcome = try promtool(
      "test", "rules",
      text: """
        rule_files: ['\(Self.rules.path)']
        evaluation_interval: 1m
        tests:
          - interval: 1m
            input_series:
        \(series.map { "      - series: '\($0.0.replacing("'", with: "''"))'\n        values: '\($0.1)'\n" }.joined())
            promql_expr_test:
              - expr: count by (alertname) (ALERTS{alertstate="firing"})
                eval_time: 15m
                exp_samples: [\(names.map { "{labels: '{alertname=\"\($0)\"}', value: 1}" }.joined(separator: ", "))]

        """)
    #expect(outcome.status == 0, "\(outcome)")
  }

  /// The values of a text in Prometheus' format, by series.
  private func samples(_ text: String) -> [String: String] {
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    return lines.reduce(into: [:]) { samples, line in
      guard let space = line.lastIndex(of: " ") else { return }
      samples[String(line[..<space])] = String(line[line.index(after: space)...])
    }
  }

  // MARK: The dashboard

  private struct Dashboard: Decodable {
    struct Panel: Decodable {
      struct Target: Decodable { let expr: String }
      let title: String
      let targets: [Target]
    }
    let panels: [Panel]
  }

  @Test func `the dashboard is valid JSON, and each of its queries is valid and names metrics of the table`() throws {
    let dashboard = try JSONDecoder().decode(Dashboard.self, from: Data(contentsOf: Self.dashboard))
    #expect(Set(dashboard.panels.map(\.title)).count == dashboard.panels.count)
    let queries = dashboard.panels.flatMap(\.targets).map(\.expr)
    #expect(queries.count > 10)
    for query in queries {
      #expect(query.contains("identityd_"), "\(query)")
      expectMetrics(query)
    }
    // As recording rules, because promtool has no command that only parses. Grafana replaces the variables.
    let rules = queries.enumerated().map { number, query in
      let plain = query.replacing("$__rate_interval", with: "5m").replacing("$instance", with: ".*")
      return "      - record: query:\(number)\n        expr: '\(plain.replacing("'", with: "''"))'\n"
    }
    let outcome = try promtool("check", "rules", text: "groups:\n  - name: dashboard\n    rules:\n\(rules.joined())")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(outcome.output.contains("\(queries.count) rules found"), "\(outcome)")
  }
}
