import Foundation
import Testing

/// The timer that writes metrics for node_exporter.
extension SystemTests {
  /// The folder of the metrics.
  static let metricsFolder = "/var/lib/prometheus/node-exporter"
  /// Creates the folder and its owner, as Debian's prometheus-node-exporter does.
  static let prometheus = """
    getent passwd prometheus >/dev/null ||
      useradd --system --home-dir /var/lib/prometheus --shell /usr/sbin/nologin prometheus
    install --directory --owner=prometheus --group=prometheus /var/lib/prometheus \(metricsFolder)
    """

  @Test(arguments: Container.oldest)
  func `the metrics timer is disabled by default and writes a file for the textfile collector`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.attempt("systemctl is-enabled identityd-metrics.timer").output == "disabled\n")
    let verified = try await system.attempt(
      "systemd-analyze verify --man=no identityd-metrics.service identityd-metrics.timer")
    #expect(verified.status == 0, "\(verified.errors)")
    let folder = Self.metricsFolder
    try await system.shell(
      """
      \(Self.prometheus)
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
        == "644 prometheus\nidentityd.prom")
    #expect(try await system.property("Result", of: "identityd-metrics.service") == "success")
    // In tenths: fails above an exposure of 0.5.
    try await system.shell(
      "systemd-analyze security --offline=true --no-pager --threshold=5 identityd-metrics.service")
    try await system.shell("systemctl disable --now identityd-metrics.timer; rm -r /var/lib/prometheus")
  }

  @Test(arguments: Container.suites)
  func `without a folder for metrics their unit is skipped`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let unit = "identityd-metrics.service"
    try await system.shell("[ ! -e \(Self.metricsFolder) ]; systemctl start \(unit)")
    #expect(try await system.property("ConditionResult", of: unit) == "no")
    #expect(try await system.property("ActiveState", of: unit) == "inactive")
  }

  @Test(arguments: Container.oldest)
  func `the metrics unit writes to no file that its user could not write`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (unit, folder, victim) = ("identityd-metrics.service", Self.metricsFolder, "/etc/metrics-victim")
    func start() async throws -> Bool {
      try await system.attempt("systemctl reset-failed \(unit) || true; systemctl start \(unit)").status == 0
    }
    func isUntouched() async throws -> Bool {
      try await system.shell("cat \(victim); stat --format='%U %a' \(victim); find /etc -name 'identityd.prom*'")
        == "before\nroot 644"
    }
    try await system.shell("\(Self.prometheus)\necho before >\(victim)")
    #expect(try await start())

    // A link in place of the file.
    try await system.shell("ln --symbolic --force \(victim) \(folder)/identityd.prom")
    let before = try await system.now()
    #expect(try await !start())
    try await system.shell("journalctl --sync")
    let said = try await system.shell("journalctl --quiet --since=\(before) --output=cat --unit=\(unit)")
    #expect(said.contains("\(folder)/identityd.prom"), "\(said)")
    #expect(try await isUntouched())

    // A link in place of the folder: the user owns the folder's parent too.
    try await system.shell("mv \(folder) \(folder).real; ln --symbolic /etc \(folder)")
    #expect(try await !start())
    #expect(try await isUntouched())
    try await system.shell("rm \(folder); mv \(folder).real \(folder)")

    // Links that come and go during the writes.
    try await system.shell(
      """
      systemd-run --quiet --unit=metrics-attack --uid=prometheus --working-directory=\(folder) /bin/sh -c '
        while :; do
          ln -s \(victim) link; mv -T link identityd.prom; touch plain; mv -T plain identityd.prom
        done'
      """)
    var isWritten = false
    for _ in 0..<20 where try await start() { isWritten = true }
    #expect(isWritten)
    #expect(try await isUntouched())
    try await system.shell(
      "systemctl stop metrics-attack.service; systemctl reset-failed; rm -r /var/lib/prometheus \(victim)")
  }
}
