import Testing

@testable import Doctor

/// The findings of the check `unit` for given states.
struct UnitJudgementTests {
  private static let reset = "sudo systemctl reset-failed identityd.socket identityd.service"
  private static let start = "sudo systemctl restart identityd.socket identityd.service"

  private func states(_ socket: [String: String] = [:], _ service: [String: String] = [:]) -> UnitStates {
    let usual = ["LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"]
    return UnitStates(
      units: [
        UnitStates.socket: usual.merging(socket) { $1 }, UnitStates.service: usual.merging(service) { $1 },
      ], time: 100_000_000)
  }

  private func units(_ socket: [String: String] = [:], _ service: [String: String] = [:]) -> UnitFacts {
    UnitFacts(states: states(socket, service))
  }

  @Test func `a service that was not needed yet is in order`() {
    #expect(units().finding.result == .ok)
    #expect(units([:], ["ActiveState": "inactive"]).finding.result == .ok)
  }

  @Test func `each state of the units has its own remedy`() {
    let expected: [(UnitFacts, Finding.Result, [String])] = [
      (units(["ActiveState": "inactive"]), .failed, ["sudo systemctl start identityd.socket"]),
      (units([:], ["ActiveState": "failed", "Result": "start-limit-hit"]), .failed, [Self.reset, Self.start]),
      (units([:], ["ActiveState": "activating", "SubState": "auto-restart"]), .failed, [Self.reset, Self.start]),
      (
        units(["LoadState": "masked"]), .failed,
        ["sudo systemctl unmask identityd.socket identityd.service", "sudo systemctl start identityd.socket"]
      ),
      (
        units(["LoadState": "masked", "UnitFileState": "masked-runtime"]), .failed,
        ["sudo systemctl unmask --runtime identityd.socket identityd.service", "sudo systemctl start identityd.socket"]
      ),
      (units([:], ["LoadState": "not-found"]), .failed, ["sudo apt-get install --reinstall identityd"]),
      (UnitFacts(states: UnitStates()), .failed, ["sudo apt-get install --reinstall identityd"]),
      (units(["UnitFileState": "disabled"]), .warning, ["sudo systemctl enable identityd.socket"]),
      (units([:], ["NeedDaemonReload": "yes"]), .warning, ["sudo systemctl daemon-reload"]),
      (UnitFacts(states: UnitStates(reason: "systemd does not run here")), .skipped, []),
      (
        UnitFacts(states: states(), hasUser: false), .failed,
        ["sudo systemd-sysusers", Self.reset, "sudo systemctl restart identityd.socket identityd.service"]
      ),
    ]
    for (facts, result, mend) in expected {
      #expect(facts.finding.result == result, "\(facts)")
      #expect(mends(facts.finding) == mend, "\(facts)")
    }
  }

  @Test(
    arguments: [
      (["ActiveState": "activating", "SubState": "start", "NRestarts": "0"], false),
      (["ActiveState": "activating", "SubState": "start", "NRestarts": "1"], true),
      (["ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "0"], true),
      (["ActiveState": "activating", "SubState": "auto-restart-queued", "NRestarts": "7"], true),
      // Restarted two times, or three times and then stable for a minute.
      (["ActiveState": "active", "NRestarts": "2", "ActiveEnterTimestampMonotonic": "99000000"], false),
      (["ActiveState": "active", "NRestarts": "3", "ActiveEnterTimestampMonotonic": "99000000"], true),
      (["ActiveState": "active", "NRestarts": "3", "ActiveEnterTimestampMonotonic": "40000000"], false),
      (["ActiveState": "failed", "NRestarts": "30"], false), (["ActiveState": "inactive"], false),
      (["ActiveState": "active", "NRestarts": "many"], false),
    ] as [([String: String], Bool)])
  func `a loop is told from a first start and from a daemon that is stable again`(
    service: [String: String], isLooping: Bool
  ) {
    #expect(states([:], service).isLooping == isLooping)
  }

  @Test(
    arguments: [
      (["ExecMainCode": "1", "ExecMainStatus": "1"], "exit status 1"),
      (
        ["ExecMainCode": "1", "ExecMainStatus": "78", "StatusText": "configuration refused: /a.conf:1: no"],
        "exit status 78, configuration refused: /a.conf:1: no"
      ),
      (["ExecMainCode": "2", "ExecMainStatus": "9", "StatusText": ""], "signal 9"),
      (["ExecMainCode": "3", "ExecMainStatus": "11"], "signal 11"),
      (["ExecMainCode": "0", "ExecMainStatus": "0"], nil),
      ([:], nil),
    ] as [([String: String], String?)])
  func `the last end of the daemon is told by systemd`(service: [String: String], end: String?) {
    #expect(states([:], service).lastEnd == end)
    guard let end else { return }
    let failed = service.merging(["ActiveState": "failed", "Result": "exit-code"]) { $1 }
    #expect(
      units([:], failed).finding.faults.map(\.cause) == [
        "identityd.service has failed (exit-code): \(end); see 'journalctl --unit=identityd.service'"
      ])
  }

  @Test func `the output of systemctl is parsed unit by unit, whatever the values`() {
    let text = "Id=a.socket\nResult=x=y\n\nId=b.service\nLoadState=loaded\n"
    #expect(
      UnitStates.parse(text) == [
        "a.socket": ["Id": "a.socket", "Result": "x=y"], "b.service": ["Id": "b.service", "LoadState": "loaded"],
      ])
    #expect(UnitStates.parse("").isEmpty)
    #expect(UnitStates.parse("nonsense\n\n=\n").isEmpty)
  }

  @Test func `a daemon that cannot run is not contacted, and its socket is not judged by an answer`() {
    let failing = states([:], ["ActiveState": "failed"])
    #expect(failing.isFailing && !states().isFailing)
    let examination = Examination(
      socketPath: "/run/identityd/identityd.sock", userID: 0, contact: .avoided, answers: nil, units: failing)
    #expect(SocketFacts(examination: examination).finding.result == .skipped)
    #expect(examination.resume.map { $0.text(for: 1_000) } == [Self.reset, Self.start])
  }
}
