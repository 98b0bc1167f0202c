import Foundation
import Testing

/// The timer that writes the figures for node_exporter.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `the timer of the metrics is off as shipped, and writes a file for the textfile collector`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.attempt("systemctl is-enabled identityd-metrics.timer").output == "disabled\n")
    let verified = try await system.attempt(
      "systemd-analyze verify --man=no identityd-metrics.service identityd-metrics.timer")
    #expect(verified.status == 0, "\(verified.errors)")
    // As Debian's prometheus-node-exporter has it.
    let folder = "/var/lib/prometheus/node-exporter"
    try await system.shell(
      """
      install --directory --owner=daemon --group=daemon \(folder)
      identityctl get device
      systemctl enable --now identityd-metrics.timer
      """)
    try await eventually("the file is there") {
      try await system.attempt("test -s \(folder)/identityd.prom").status == 0
    }
    let text = try await system.shell("cat \(folder)/identityd.prom")
    #expect(text.contains("identityd_requests_total{verb=\"get device\",outcome=\"ok\"} "))
    let parser = """
      import sys
      from prometheus_client.parser import text_string_to_metric_families as parse
      print(sum(len(f.samples) for f in parse(sys.stdin.read()) if f.type != "untyped"))
      """
    let file = FileManager.default.temporaryDirectory.appending(path: "identityd-\(UUID().uuidString).prom")
    try Data((text + "\n").utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let parsed = try await run(
      URL(filePath: "/bin/sh"), ["-c", "exec /usr/bin/python3 -c '\(parser)' < \(file.path)"])
    #expect(Int(parsed.output.trimmingCharacters(in: .newlines)) ?? 0 > 50, "\(parsed.errors)\(text)")
    #expect(
      try await system.shell("stat --format='%a %U' \(folder)/identityd.prom; ls \(folder)")
        == "644 root\nidentityd.prom")
    #expect(try await system.property("Result", of: "identityd-metrics.service") == "success")
    try await system.shell(
      "systemd-analyze security --offline=true --no-pager --threshold=20 identityd-metrics.service")
    try await system.shell("systemctl disable --now identityd-metrics.timer; rm -r /var/lib/prometheus")
  }

  @Test(arguments: Container.suites)
  func `without a folder for the metrics their unit fails and says why`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.now()
    #expect(try await system.attempt("systemctl start identityd-metrics.service").status != 0)
    try await system.shell("journalctl --sync")
    let said = try await system.shell(
      "journalctl --quiet --since=\(before) --output=cat --unit=identityd-metrics.service")
    #expect(said.contains("identityctl: create a file in /var/lib/prometheus/node-exporter"), "\(said)")
    try await system.shell("systemctl reset-failed identityd-metrics.service")
  }
}
