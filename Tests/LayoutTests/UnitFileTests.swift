import IdentityCore
import Testing

/// Tests of the shipped systemd units.
struct UnitFileTests {
  private func settings(_ path: String) throws -> [String] {
    try Tree.lines(path).map(String.init).filter { !$0.hasPrefix("#") && $0.contains("=") }
  }

  @Test func `row 50: restarts have a pause and no end, and the socket outlives them`() throws {
    let service = try settings("systemd/identityd.service")
    for setting in [
      "Restart=on-failure", "RestartSec=1s", "StartLimitIntervalSec=0", "SuccessExitStatus=3",
      "RestartForceExitStatus=3",
    ] {
      #expect(service.contains(setting), "\(setting)")
    }
    // systemd would start a service that is not restarted for each waiting connection, until the socket fails
    // (TriggerLimitBurst=, systemd.socket(5)).
    #expect(!service.contains { $0.hasPrefix("RestartPreventExitStatus=") })
    #expect(service.contains("Requires=identityd.socket"))
    #expect(try settings("systemd/identityd.socket").contains("Backlog=4096"))
    #expect(!service.contains { $0.hasPrefix("RuntimeDirectory=") })
  }

  @Test(arguments: ["identityd", "identity-fleet"])
  func `row 42c: core dumps, swap and backtraces cannot write memory to disk`(unit: String) throws {
    let service = try settings("systemd/\(unit).service")
    for setting in ["LimitCORE=0", "MemorySwapMax=0", "Environment=SWIFT_BACKTRACE=enable=no"] {
      #expect(service.contains(setting), "\(setting)")
    }
  }

  @Test func `the fleet's unit has the daemon's sandbox, and the network`() throws {
    let daemon = try settings("systemd/identityd.service")
    let fleet = try settings("systemd/identity-fleet.service")
    let first = try #require(daemon.firstIndex(of: "NoNewPrivileges=yes"))
    let differing = [
      "PrivateNetwork=", "IPAddressDeny=", "RestrictAddressFamilies=", "SystemCallFilter=@", "NoExecPaths=-",
      "ExecPaths=/", "WantedBy=", "Also=",
    ]
    for setting in daemon[first...] where !differing.contains(where: setting.hasPrefix) {
      #expect(fleet.contains(setting), "\(setting)")
    }
    #expect(fleet.contains("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"))
    #expect(fleet.contains("User=identity-fleet"))
    #expect(!fleet.contains { $0.hasPrefix("StateDirectory=") || $0.hasPrefix("PrivateNetwork=") })
    // The unit, its user and the manifest name each other.
    #expect(try Tree.lines("systemd/identity-fleet.sysusers").contains { $0.hasPrefix("u       identity-fleet ") })
    let manifest = try settings("packaging/identity-fleet.app")
    #expect(manifest == ["Unit=identity-fleet.service", "User=identity-fleet", "Rights=fleet"])
    #expect(try Tree.lines("systemd/90-identityd.preset").contains("disable identity-fleet.service"))
  }

  @Test func `the metrics unit can write to one folder of any owner, and nothing else`() throws {
    let folder = "/var/lib/prometheus/node-exporter"
    let metrics = try settings("systemd/identityd-metrics.service")
    for setting in [
      "CapabilityBoundingSet=CAP_DAC_OVERRIDE", "AmbientCapabilities=", "NoNewPrivileges=yes", "ProtectSystem=strict",
      "PrivateNetwork=yes", "ConditionPathIsDirectory=\(folder)",
    ] {
      #expect(metrics.contains(setting), "\(setting)")
    }
    #expect(metrics.filter { $0.hasPrefix("ReadWritePaths=") } == ["ReadWritePaths=-\(folder)"])
  }

  @Test func `the packages, the configuration and the daemon name the same group of monitors`() throws {
    #expect(try Tree.lines("systemd/identityd.sysusers").contains { $0.hasPrefix("g       identityd-monitor ") })
    #expect(try Tree.lines("packaging/identityd.conf").contains("#MonitorGroup=identityd-monitor"))
    #expect(try Tree.text("Sources/identityd/Configuration.swift").contains("\"identityd-monitor\""))
  }

  @Test(arguments: ["identityd", "identity-fleet"])
  func `no setting of a service hides the peers at its socket`(service: String) throws {
    let settings = try settings("systemd/\(service).service")
    for name in ["ProtectProc=", "PrivateUsers=", "PrivatePIDs=", "ProtectControlGroups=strict"] {
      #expect(!settings.contains { $0.hasPrefix(name) }, "\(name)")
    }
  }

  @Test func `the check unit has one capability and can write nothing`() throws {
    let check = try settings("systemd/identityd-check.service")
    for setting in [
      "ExecStart=/usr/bin/identityctl check --quiet", "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
      "AmbientCapabilities=", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateNetwork=yes",
    ] {
      #expect(check.contains(setting), "\(setting)")
    }
    // The unit must fail with the checks, and never because of what they need to see.
    for name in [
      "ReadWritePaths=", "SuccessExitStatus=", "ProtectProc=", "ProcSubset=", "PrivateUsers=", "PrivatePIDs=",
    ] {
      #expect(!check.contains { $0.hasPrefix(name) }, "\(name)")
    }
  }

  /// The maximum memory that the default limits allow, in bytes by use, with rows in their most expensive form.
  ///
  /// `identityd(8)` and <doc:0046-hardening> list the uses in the same order.
  private var bounded: [(what: String, bytes: Int)] {
    let limits = Limits()
    let users = limits.connections.total / limits.connections.perUser
    // A growing array may reserve twice the size of its contents.
    let buffers = 2 * (limits.lineLength + limits.outputPerConnection)
    return [
      ("items", limits.items.total.bytes + limits.items.total.items * 8_192),
      ("identifiers", (limits.history + 2 * (limits.apps + Bound.manifests)) * 1_024),
      ("connections", limits.connections.total * buffers),
      ("replies that the kernel holds", limits.connections.total * 212_992),
      ("backups", (Bound.backups + 2) * Bound.backupLength),
      ("tokens", Bound.tokens * (Bound.tokenLength + 512)),
      ("releases and claims", (Bound.releases + Bound.claims) * 256),
      ("changes", users * limits.changesPerUser * Bound.secretLength),
      ("events", Bound.eventLogLength + (Bound.keptEvents + Bound.spareEvents) * 1_024),
      ("log", Bound.logBytes),
      ("what a restart takes along", Bound.rememberedConnections * 8_192),
    ]
  }

  @Test func `the unit allows the memory of all bounds together, and little more`() throws {
    let service = try settings("systemd/identityd.service")
    let line = try #require(service.first { $0.hasPrefix("MemoryMax=") })
    let gibibytes = try #require(Int(line.dropFirst("MemoryMax=".count).dropLast()))
    #expect(line.hasSuffix("G"))
    let sum = bounded.reduce(0) { $0 + $1.bytes }
    #expect(sum <= gibibytes << 30, "\(bounded) are \(Double(sum) / 0x1p30) GiB")
    #expect(sum > (gibibytes << 30) * 4 / 5)
    // The manual and the decision must show this sum and this setting.
    let shown = String(format(sum))
    for page in [
      "packaging/man/identityd.8", "Sources/identityd/identityd.docc/Decisions/0046-hardening.md",
    ] {
      let text = try Tree.text(page)
      #expect(text.contains(line) && text.contains("\(shown) GiB"), "\(page) does not say \(line) and \(shown) GiB")
    }
    #expect(try Tree.text("packaging/man/identityd.conf.5").contains(line))
  }

  /// Formats bytes as gibibytes with one decimal.
  private func format(_ bytes: Int) -> String {
    let tenths = (bytes * 10 + 1 << 29) >> 30
    return "\(tenths / 10).\(tenths % 10)"
  }
}
