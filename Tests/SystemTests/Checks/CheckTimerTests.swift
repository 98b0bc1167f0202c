import TestSupport
import Testing

/// The timer that runs the checks.
extension SystemTests {
  @Test(arguments: Container.oldest)
  func `the check timer is disabled by default, and its unit fails as long as a check fails`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let (timer, unit) = ("identityd-check.timer", "identityd-check.service")
    try await system.shell("\(Container.purge) && \(Container.install)")
    #expect(try await system.attempt("systemctl is-enabled \(timer)").output == "disabled\n")
    #expect(try await system.property("ActiveState", of: timer) == "inactive")
    let verified = try await system.attempt("systemd-analyze verify --man=no \(unit) \(timer)")
    #expect(verified.status == 0, "\(verified.errors)")
    // In tenths: fails above an exposure of 2.0.
    try await system.shell("systemd-analyze security --offline=true --no-pager --threshold=20 \(unit)")

    try await system.shell(try Document(.manual).commands(of: "checks").joined(separator: "\n"))
    #expect(try await system.property("ActiveState", of: timer) == "active")
    try await system.shell("systemctl start \(unit)")
    #expect(try await system.property("Result", of: unit) == "success")

    // A manifest that root alone should be able to change, and a state directory that others can read. The unit must
    // see the same as root.
    for (harm, repair) in [
      ("chmod 0777 /etc/identityd/apps.d", "chmod 0755 /etc/identityd/apps.d"),
      ("chmod 0755 /var/lib/identityd", "chmod 0700 /var/lib/identityd"),
    ] {
      #expect(try await system.attempt("\(harm); systemctl start \(unit)").status != 0, "\(harm)")
      #expect(try await system.property("ActiveState", of: unit) == "failed")
      // The exit status of a check that failed.
      #expect(try await system.property("ExecMainStatus", of: unit) == "8")
      #expect(try await system.attempt("systemctl is-system-running").output == "degraded\n")
      #expect(try await system.attempt("systemctl --failed --plain --no-legend").output.contains(unit))
      try await system.shell("\(repair); systemctl start \(unit)")
      #expect(try await system.property("ActiveState", of: unit) == "inactive")
      #expect(!(try await system.attempt("systemctl --failed --plain --no-legend").output.contains(unit)))
    }

    // The documented drop-in, with a finding that is only a warning.
    let findings = "\(Self.metricsFolder)/identityd-check.prom"
    let lines = try Document(.manual).commands(of: "findings").joined(separator: "\n")
    // Doubled, because systemd-run(1), which runs the commands of a container, expands variables.
    try await system.write(lines.replacing("$", with: "$$"), to: "/etc/systemd/system/\(unit).d/findings.conf")
    try await system.shell(
      """
      install --directory \(Self.metricsFolder)
      systemctl daemon-reload; systemctl disable identityd.service
      # So many starts in so short a time would exceed systemd's start limit.
      systemctl reset-failed \(unit) || true
      systemctl start \(unit)
      """)
    let told = try await system.shell("stat --format=%a \(findings); grep -v '#' \(findings)").split(separator: "\n")
    #expect(told.first == "644")
    #expect(told.contains(#"identityd_check_findings{severity="failed"} 0"#))
    #expect(!told.contains(#"identityd_check_findings{severity="warning"} 0"#))
    try await system.shell("rm -r /etc/systemd/system/\(unit).d /var/lib/prometheus; systemctl daemon-reload")

    try await system.shell("dpkg --remove identityd")
    #expect(try await system.property("ActiveState", of: timer) == "inactive")
    try await system.shell("\(Container.purge) && \(Container.install)")
    #expect(try await system.attempt("systemctl is-enabled \(timer)").output == "disabled\n")
  }
}
