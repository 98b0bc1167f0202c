import Foundation
import Testing

/// The timer that writes metrics for node_exporter.
extension SystemTests {
  /// The folder of the metrics.
  static let metricsFolder = "/var/lib/prometheus/node-exporter"
  /// Installs Debian's node_exporter.
  private static let exporter =
    "apt-get --quiet --quiet update && apt-get install --yes --no-install-recommends prometheus-node-exporter"
  private static let withoutExporter = "apt-get --yes purge prometheus-node-exporter; rm -fr /var/lib/prometheus"

  @Test(arguments: Container.suites)
  func `the metrics timer is disabled by default, and node_exporter shows its file`(suite: String) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.attempt("systemctl is-enabled identityd-metrics.timer").output == "disabled\n")
    let verified = try await system.attempt(
      "systemd-analyze verify --man=no identityd-metrics.service identityd-metrics.timer")
    #expect(verified.status == 0, "\(verified.errors)")
    let folder = Self.metricsFolder
    try await system.shell(
      """
      \(Self.exporter)
      identityctl get device
      systemctl enable --now identityd-metrics.timer
      """)
    // The reason for the unit's capability and for the links that identityctl refuses.
    #expect(try await system.shell("stat --format=%U /var/lib/prometheus \(folder)") == "prometheus\nroot")
    try await eventually("the file is there") {
      try await system.attempt("test -s \(folder)/identityd.prom").status == 0
    }
    let text = try await system.shell("cat \(folder)/identityd.prom")
    let sample = "identityd_requests_total{verb=\"get device\",outcome=\"ok\"} "
    #expect(text.contains(sample))
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
    // The labels come in another order from node_exporter.
    try await eventually("node_exporter shows the metrics") {
      try await system.attempt(
        """
        bash -c 'exec 3<>/dev/tcp/127.0.0.1/9100; printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3' |
          grep '^identityd_requests_total{.*verb="get device"'
        """
      ).status == 0
    }
    // In tenths: fails above an exposure of 1.0.
    try await system.shell(
      "systemd-analyze security --offline=true --no-pager --threshold=10 identityd-metrics.service")
    try await system.shell("systemctl disable --now identityd-metrics.timer; \(Self.withoutExporter)")
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
  func `the owner of the folder or of its parent cannot make the metrics unit write elsewhere`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let (unit, folder, victim) = ("identityd-metrics.service", Self.metricsFolder, "/etc/metrics-victim")
    func start() async throws -> Bool {
      try await system.attempt("systemctl reset-failed \(unit) || true; systemctl start \(unit)").status == 0
    }
    func isUntouched() async throws -> Bool {
      try await system.shell("cat \(victim); stat --format='%U %a' \(victim); find /etc -name 'identityd.prom*'")
        == "before\nroot 644"
    }
    /// Lets the user prometheus place links, and requires that the unit refuses them and names the folder.
    func refuses(_ links: String) async throws {
      try await system.shell("runuser --user prometheus -- /bin/sh -c '\(links)'")
      let before = try await system.now()
      #expect(try await !start(), "\(links)")
      try await system.shell("journalctl --sync")
      let said = try await system.shell("journalctl --quiet --since=\(before) --output=cat --unit=\(unit)")
      #expect(said.contains(folder), "\(said)")
      #expect(try await isUntouched(), "\(links)")
    }
    let folderLink = "mv \(folder) \(folder).real; ln --symbolic /etc \(folder)"
    let back = "rm \(folder); mv \(folder).real \(folder)"

    // Debian's layout: the user owns the parent alone.
    try await system.shell("\(Self.exporter)\necho before >\(victim)")
    #expect(try await start())
    try await refuses(folderLink)
    try await system.shell(back)
    // The administrator may move the folder, and leave a link of his own.
    try await system.shell("mv \(folder) /srv/metrics; ln --symbolic /srv/metrics \(folder); rm /srv/metrics/*")
    #expect(try await start())
    try await system.shell("[ -s /srv/metrics/identityd.prom ]; rm \(folder); mv /srv/metrics \(folder)")

    // Fedora's layout: the user owns both.
    try await system.shell("chown prometheus:prometheus \(folder)")
    #expect(try await start())
    try await refuses("ln --symbolic --force \(victim) \(folder)/identityd.prom")
    try await refuses(folderLink)
    try await system.shell(back)
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
      "systemctl stop metrics-attack.service; systemctl reset-failed; rm \(victim); \(Self.withoutExporter)")
  }
}
