import Foundation
import Testing

/// The units as systemd reads them, and the journal.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `systemd finds no fault with the units`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let outcome = try await system.attempt("systemd-analyze verify --man=no identityd.service identityd.socket")
    #expect(outcome.status == 0)
    #expect(outcome.errors == "")
  }

  @Test(arguments: Container.suites)
  func `row 42c: the daemon has no privileges and leaves no core dump`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let daemon = try await system.property("MainPID")
    let status = try await system.shell("cat /proc/\(daemon)/status").split(separator: "\n").map { line in
      line.split(separator: "\t").joined(separator: " ")
    }
    for line in ["CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2"] {
      #expect(status.contains(line), "\(status)")
    }
    let user = try await system.shell("id --user identityd")
    #expect(status.contains("Uid: \(user) \(user) \(user) \(user)"), "\(status)")
    #expect(try await system.shell("cat /proc/\(daemon)/limits").contains(#/Max core file size +0 +0 /#))
  }

  @Test(arguments: Container.suites)
  func `row 52: ordinary operation causes no warning and no failed unit`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.now()
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service")
    _ = try await system.identifiers()
    try await system.shell("systemctl reload identityd.service; systemctl stop identityd.service")
    _ = try await system.identifiers()
    let warnings = try await system.journal(since: before, "--priority=warning")
    #expect(warnings == [], "\(warnings)")
    #expect(try await system.journal(since: before) != [])
    #expect(try await system.shell("systemctl is-system-running") == "running")
  }

  @Test(arguments: Container.suites)
  func `journal entries have their message ID and facts as fields`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let json = try await system.shell(
      """
      journalctl --sync
      journalctl --quiet --output=json --lines=1 _SYSTEMD_UNIT=identityd.service \
        MESSAGE_ID=bceca82c7e264512b87524002f21a3a6
      """)
    let entry = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    #expect(entry["IDENTITYD_SOCKET"] as? String == "/run/identityd/identityd.sock")
    #expect(entry["SYSLOG_IDENTIFIER"] as? String == "identityd")
    #expect(entry["PRIORITY"] as? String == "5")
    #expect(entry["_PID"] as? String == (try await system.property("MainPID")))
  }
}
