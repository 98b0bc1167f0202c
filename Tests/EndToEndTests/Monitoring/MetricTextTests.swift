import Foundation
import TestSupport
import Testing

/// The output of `identityctl stats` for monitoring, read by the parsers of Prometheus' own client library for Python.
@Suite(.tags(.plain)) struct MetricTextTests {
  /// Python programs that print the samples as JSON. They fail if the text is not in their format.
  private static let parsers = [
    "--openmetrics": """
    import json, sys
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    print(json.dumps([
      [f.name, f.type, f.unit, s.name, s.labels, s.value] for f in parse(sys.stdin.read()) for s in f.samples]))
    """,
    "--prometheus": """
    import json, sys
    from prometheus_client.parser import text_string_to_metric_families as parse
    print(json.dumps([
      [f.name, f.type, "", s.name, s.labels, s.value] for f in parse(sys.stdin.read()) for s in f.samples]))
    """,
  ]

  private struct Sample: Decodable {
    let family: String
    let type: String
    let unit: String
    let name: String
    let labels: [String: String]
    let value: Double

    init(from decoder: any Decoder) throws {
      var list = try decoder.unkeyedContainer()
      family = try list.decode(String.self)
      type = try list.decode(String.self)
      unit = try list.decode(String.self)
      name = try list.decode(String.self)
      labels = try list.decode([String: String].self)
      value = try list.decode(Double.self)
    }
  }

  private func parse(_ text: String, _ format: String) throws -> [Sample] {
    let outcome = try run(["/usr/bin/python3", "-c", try #require(Self.parsers[format])], input: text)
    guard outcome.status == 0 else { throw Failure("\(outcome.errors)\n\(text)") }
    return try JSONDecoder().decode([Sample].self, from: Data(outcome.output.utf8))
  }

  @Test(arguments: ["--openmetrics", "--prometheus"])
  func `the reference parser of Prometheus reads all metrics`(format: String) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for _ in 0..<5 { _ = try client.ask("get device") }
    _ = try client.ask("item add service=s account=a data=AAAA")
    let outcome = try identityctl(daemon, "stats", format)
    #expect(outcome.status == 0, "\(outcome)")
    #expect(outcome.output.hasSuffix("\n# EOF\n") == (format == "--openmetrics"))
    let samples = try parse(outcome.output, format)
    let requests = try #require(
      samples.first { $0.name == "identityd_requests_total" && $0.labels == ["verb": "get device", "outcome": "ok"] })
    #expect(requests.value == 5)
    #expect(requests.type == "counter")
    let commits = samples.filter { $0.name.hasPrefix("identityd_commit_seconds") }
    #expect(Set(commits.map(\.type)) == ["histogram"])
    #expect(Set(commits.map(\.unit)) == [format == "--openmetrics" ? "seconds" : ""])
    let infinite = try #require(commits.first { $0.labels == ["le": "+Inf"] })
    #expect(infinite.value == commits.first { $0.name.hasSuffix("_count") }?.value)
    #expect(samples.contains { $0.name == "identityd_job_seconds_bucket" && $0.labels["family"] == "items" })
    #expect(!samples.contains { $0.type == "unknown" || $0.type == "untyped" }, "\(samples)")
  }

  @Test(arguments: ["--openmetrics", "--prometheus"])
  func `check counts its findings as a metric, with the exit status of the report`(format: String) throws {
    let daemon = try DaemonUnderTest().start()
    for mode in [0o700, 0o755] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: daemon.state.path)
      let file = daemon.folder.appending(path: "check.prom")
      // Each run is an examination of its own: the runs are compared if the first and the last one find the same.
      func examine() throws -> [String] {
        let report = try identityctl(daemon, "check", "--json")
        let found = try JSONDecoder().decode(Diagnosis.self, from: Data(report.output.utf8))
        return ["\(report.status)"] + found.checks.map(\.result)
      }
      let deadline = Date(timeIntervalSinceNow: patience)
      var (results, after): ([String], [String])
      var (outcome, written):
        ((status: Int32, output: String, errors: String), (status: Int32, output: String, errors: String))
      repeat {
        results = try examine()
        outcome = try identityctl(daemon, "check", format)
        written = try identityctl(daemon, "check", format, "--output=\(file.path)")
        after = try examine()
      } while after != results && Date() < deadline
      let status = Int32(results[0])
      #expect(outcome.status == status)
      #expect((status == 8) == (mode == 0o755), "\(results)")
      let samples = try parse(outcome.output, format)
      #expect(samples.map(\.name) == ["identityd_check_findings", "identityd_check_findings"])
      for sample in samples {
        let severity = try #require(sample.labels["severity"])
        #expect(Int(sample.value) == results.count { $0 == severity }, "\(results)")
      }
      #expect(Set(samples.map(\.labels)) == [["severity": "failed"], ["severity": "warning"]])
      #expect(written.output == "" && written.status == status)
      #expect(try String(contentsOf: file, encoding: .utf8) == outcome.output)
    }
  }

  @Test func `the metrics file is replaced as a whole and readable by everybody`() throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "identityd.prom")
    try Data("old".utf8).write(to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let outcome = try run(
      ["sh", "-c", "umask 077; exec \(program) stats --prometheus --output=\(file.path)"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect((outcome.status, outcome.output, outcome.errors) == (0, "", ""))
    #expect(try parse(String(contentsOf: file, encoding: .utf8), "--prometheus").count > 50)
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    #expect(attributes[.posixPermissions] as? Int == 0o644)
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.folder.path)
    #expect(names.filter { $0.contains("prom") } == ["identityd.prom"])
  }

  @Test func `without a daemon the metrics file stays unchanged`() throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "identityd.prom")
    try Data("old".utf8).write(to: file)
    #expect(daemon.end() == 0)
    #expect(try identityctl(daemon, "stats", "--prometheus", "--output=\(file.path)").status == 3)
    #expect(try String(contentsOf: file, encoding: .utf8) == "old")
  }

  @Test(arguments: [
    ["stats", "--output=/nonexistent"], ["stats", "--openmetrics", "--prometheus"],
    ["stats", "--openmetrics", "--json"], ["stats", "apps=yes", "--openmetrics"], ["status", "--openmetrics"],
    ["check", "--output=/nonexistent"], ["check", "--prometheus", "--json"],
    ["check", "00000000-0000-4000-8000-000000000000", "--prometheus"],
  ])
  func `contradictory options are a usage error`(words: [String]) throws {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let outcome = try run([program] + words, environment: ["IDENTITYD_SOCKET": "/nonexistent"])
    #expect(outcome.status == 2)
    #expect(words.contains("--json") ? outcome.output.hasPrefix("{\"error\":") : outcome.output.isEmpty)
  }
}
