import Foundation
import Testing

/// Valid and invalid configuration, at a reload and at a start.
extension SystemTests {
  /// The journal match for the entry about a loaded configuration.
  private static let loaded = "MESSAGE_ID=5bc309105b5d4354b2a50ae729fa5b14"

  /// Whether a client in the group `adm`, with a user that is otherwise unknown, is an admin.
  private func isAdmin(_ system: Container) async throws -> Bool {
    try await system.whoami("--property=DynamicUser=yes --property=SupplementaryGroups=adm").admin
  }

  @Test(arguments: Container.suites)
  func `a reload applies a good configuration in the same process`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let daemon = try await system.property("MainPID")
    #expect(try await !isAdmin(system))
    let before = try await system.now()
    try await system.write("[Access]\nAdminGroup=adm", to: "\(Container.configurations)/admin.conf")
    try await system.shell("systemctl reload identityd.service")
    #expect(try await isAdmin(system))
    #expect(try await system.property("MainPID") == daemon)
    try await eventually("the journal has it") { try await !system.journal(since: before, Self.loaded).isEmpty }

    try await system.shell("rm \(Container.configurations)/admin.conf; systemctl reload identityd.service")
    #expect(try await !isAdmin(system))
  }

  @Test(arguments: Container.suites)
  func `a reload ends when the daemon has reported its end`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("systemctl kill --signal=STOP identityd.service")
    try await system.shell("systemctl reload --no-block identityd.service")
    // With the last command ended, only the daemon's report can end the reload.
    try await eventually("the commands of the reload have ended") {
      let isReloading = try await system.property("ActiveState") == "reloading"
      return try await system.property("ControlPID") == "0" && isReloading
    }
    #expect(try await system.property("ActiveState") == "reloading")
    try await system.shell("systemctl kill --signal=CONT identityd.service")
    try await eventually("the reload has ended") { try await system.property("ActiveState") == "active" }
  }

  @Test(arguments: Container.newest)
  func `row 40c: repeated reloads do no harm`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    let before = try await system.now()
    try await system.shell("for time in 1 2 3 4 5; do systemctl reload identityd.service; done")
    #expect(try await system.identifiers() == identifiers)
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.property("MainPID") == daemon)
    #expect(try await system.property("NRestarts") == "0")
    #expect(try await system.property("StatusText").hasPrefix("Serving; "))
    #expect(try await system.journal(since: before, "--priority=warning") == [])
  }

  @Test(arguments: Container.suites)
  func `row 44: reloading a bad configuration fails, names the place and changes nothing`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write("[Access]\nAdminGroup=adm", to: "\(Container.configurations)/admin.conf")
    try await system.shell("systemctl restart identityd.service")
    let daemon = try await system.property("MainPID")
    let before = try await system.now()

    let bad = "\(Container.configurations)/bad.conf"
    try await system.write("[Access]\nAdminGroup=\n[Limits]\nConnections=many", to: bad)
    let reload = try await system.attempt("systemctl reload identityd.service")
    #expect(reload.status != 0 && reload.errors.contains("journalctl"), "\(reload)")
    try await eventually("the journal has it") {
      try await system.journal(since: before, "--priority=err").contains { $0.contains("\(bad):4: ") }
    }
    #expect(try await system.shell("identityctl status").contains("configuration-reason=\(bad):4: "))
    #expect(try await isAdmin(system))
    #expect(try await system.property("MainPID") == daemon)
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.property("StatusText").contains("\(bad):4: "))

    try await system.shell("rm \(bad); systemctl reload identityd.service")
    #expect(try await isAdmin(system))
    #expect(try await system.property("StatusText").hasPrefix("Serving; "))
    try await eventually("the status takes it back") {
      try await !system.shell("identityctl status").contains("configuration-reason=")
    }
  }

  @Test(arguments: Container.suites)
  func `row 44: the status text reports a bad configuration that a signal loaded`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let bad = "\(Container.configurations)/bad.conf"
    try await system.write("[Log]\nLevel=loud", to: bad)
    let before = try await system.now()
    try await system.shell("systemctl kill --signal=HUP identityd.service")
    try await eventually("the status text says so") {
      try await system.property("StatusText").hasPrefix("Configuration refused")
    }
    try await eventually("the journal has it") {
      try await system.journal(since: before, "--priority=err").contains { $0.contains("\(bad):2: ") }
    }
    try await system.shell("rm \(bad); systemctl reload identityd.service")
    try await eventually("and takes it back") { try await system.property("StatusText").hasPrefix("Serving; ") }
  }

  @Test(arguments: Container.suites)
  func `row 45: a start with a bad configuration fails, and is repeated until the configuration is mended`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let bad = "\(Container.configurations)/bad.conf"
    try await system.write("[Device]\nOnMachineChange=perhaps", to: bad)
    #expect(try await system.attempt("systemctl restart identityd.service").status != 0)
    // Both are empty while the next start is in progress.
    try await eventually("systemd shows the failure") {
      let shown = try await system.shell("systemctl show --property=ExecMainStatus,StatusText identityd.service")
      return shown.contains("ExecMainStatus=78") && shown.contains("\(bad):2: ")
    }
    try await system.shell("rm \(bad)")
    try await eventually("the daemon is up without a command or a client") {
      try await system.property("ActiveState") == "active"
    }
  }

  @Test(arguments: Container.suites)
  func `a setting of a later version is named in the journal and does not prevent a start`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.now()
    try await system.write("[Limits]\nConnexions=5", to: "\(Container.configurations)/odd.conf")
    try await system.shell("systemctl restart identityd.service")
    try await eventually("the journal has it") {
      try await system.journal(since: before, "--priority=warning").contains { $0.contains("odd.conf:2: ") }
    }
  }

  @Test(arguments: Container.suites)
  func `the settings in the shipped configuration are valid`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let uncommented = "sed 's/^#\\([A-Z]\\)/\\1/' /etc/identityd/identityd.conf >/tmp/identityd.conf"
    let check = try await system.attempt("\(uncommented); identityd --config /tmp/identityd.conf --check-config")
    #expect(check.status == 0)
    #expect(check.errors == "")
  }

  // A drop-in of packages for systemd 254 and later.
  @Test(arguments: Container.newest)
  func `a daemon whose configuration is refused is started ever more rarely`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let file = "\(Container.configurations)/refused.conf"
    try await system.shell("mkdir -p \(Container.dropIns)")
    let steps = "systemd/identityd.service.d/10-restart-steps.conf"
    try await system.copy(checkout.appending(path: steps), to: "\(Container.dropIns)/10-restart-steps.conf")
    try await system.write("[Log]\nLevel=round", to: file)
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service || true")
    try await eventually("the pauses grow") {
      let pause = try await system.property("RestartUSecNext")
      return !["1s", "infinity", ""].contains(pause)
    }
    try await system.shell(
      """
      rm \(file) \(Container.dropIns)/10-restart-steps.conf; systemctl daemon-reload
      systemctl reset-failed identityd.socket identityd.service; systemctl restart identityd.socket identityd.service
      """)
    #expect(try await system.shell("identityctl ping") == "")
  }
}
