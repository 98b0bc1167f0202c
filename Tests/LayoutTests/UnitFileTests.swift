import Testing

/// What the shipped units promise.
@Suite struct UnitFileTests {
  private func settings(_ path: String) throws -> [String] {
    try Tree.lines(path).map(String.init).filter { !$0.hasPrefix("#") && $0.contains("=") }
  }

  @Test func `row 50: restarts have a pause and an end, and the socket outlives all but the end`() throws {
    let service = try settings("systemd/identityd.service")
    for setting in ["Restart=on-failure", "RestartSec=200ms", "StartLimitIntervalSec=1min", "StartLimitBurst=30"] {
      #expect(service.contains(setting), "\(setting)")
    }
    // What another start cannot cure is not tried again.
    #expect(service.contains("RestartPreventExitStatus=64 76 78"))
    #expect(service.contains("Requires=identityd.socket"))
    #expect(try settings("systemd/identityd.socket").contains("Backlog=4096"))
    #expect(!service.contains { $0.hasPrefix("RuntimeDirectory=") })
  }

  @Test func `row 42c: neither a core dump nor swap nor the runtime may write memory down`() throws {
    let service = try settings("systemd/identityd.service")
    for setting in ["LimitCORE=0", "MemorySwapMax=0", "Environment=SWIFT_BACKTRACE=enable=no"] {
      #expect(service.contains(setting), "\(setting)")
    }
  }

  @Test func `the metrics are written without rights, by the owner of their folder and a member of the group`() throws {
    let folder = "/var/lib/prometheus/node-exporter"
    let metrics = try settings("systemd/identityd-metrics.service")
    for setting in [
      "User=prometheus", "SupplementaryGroups=identityd-monitor", "CapabilityBoundingSet=", "AmbientCapabilities=",
      "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateNetwork=yes", "ConditionPathIsDirectory=\(folder)",
    ] {
      #expect(metrics.contains(setting), "\(setting)")
    }
    #expect(metrics.filter { $0.hasPrefix("ReadWritePaths=") } == ["ReadWritePaths=-\(folder)"])
    // One group: that of the unit, of the packages and of the configuration.
    #expect(try Tree.lines("systemd/identityd.sysusers").contains { $0.hasPrefix("g       identityd-monitor ") })
    #expect(try Tree.lines("packaging/identityd.conf").contains("#MonitorGroup=identityd-monitor"))
    #expect(try Tree.text("Sources/identityd/Configuration.swift").contains("\"identityd-monitor\""))
  }
}
