import Testing

@testable import Doctor

/// The findings of the check `fleet`.
struct FleetJudgementTests {
  private static let enabled = ["LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"]

  private func finding(
    _ state: String?, _ words: [String: String] = [:], unit: [String: String] = enabled, isSuspect: Bool = false,
    isSynchronized: Bool = true
  ) -> Finding {
    FleetFacts(unit: unit, state: state, words: words, isSuspect: isSuspect, isSynchronized: isSynchronized).finding
  }

  @Test func `a service that is not in use is skipped`() {
    let absent = ["LoadState": "not-found", "ActiveState": "inactive"]
    for unit in [absent, ["LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "disabled"]] {
      #expect(finding("none", unit: unit).result == .skipped)
      #expect(FleetFacts(unit: unit, unknown: "untold").finding.reason == "the fleet's service is not in use")
    }
    #expect(FleetFacts(unknown: "untold").finding.reason == "untold")
    #expect(FleetFacts(unit: Self.enabled, unknown: "untold").finding.reason == "untold")
    // A service that was started by hand has no unit.
    #expect(finding("live", unit: [:]).result == .ok)
  }

  @Test func `each state has its own finding`() {
    for (state, words, result, text) in [
      ("live", [:], .ok, ""), ("no-account", [:], .ok, ""), ("reading", [:], .ok, ""), ("connecting", [:], .ok, ""),
      ("none", [:], .failed, "does not use identityd (active)"),
      ("no-keys", ["reason": "locked"], .failed, "cannot be read: locked"),
      ("refused", ["broker": "mqtts://b", "reason": "bad password"], .failed, "mqtts://b refuses"),
      ("live", ["second-newcomer": "u thief"], .warning, "a second device, u thief, has used the code"),
      ("live", ["other-key": "u desk"], .warning, "the device u desk has come with another key"),
      ("unpublished", ["reason": "the broker does not keep it"], .warning, "the broker does not keep it"),
      ("waiting", ["broker": "mqtts://b", "reason": "timed out"], .failed, "no connection with mqtts://b: timed out"),
      ("live", ["held": "3"], .failed, "could not store 3 messages"),
      ("live", ["twin": "yes"], .warning, "another machine speaks"),
      ("live", ["alone": "yes"], .warning, "earlier keys"),
      ("live", ["password": "former"], .warning, "enter the one that 'identityctl fleet credentials' shows"),
      ("no-account", ["keys": "missing"], .warning, "of which the fleet has no keys"),
      ("no-account", ["removed": "alice"], .warning, "another device has removed this one from the account alice"),
      ("no-account", ["superseded": "alice"], .warning, "another machine has joined the account alice"),
    ] as [(String, [String: String], Finding.Result, String)] {
      let finding = finding(state, words)
      #expect(finding.result == result, "\(state) \(words)")
      #expect(finding.faults.isEmpty ? text.isEmpty : finding.faults[0].cause.contains(text), "\(finding)")
      #expect(finding.faults.allSatisfy { !$0.mend.isEmpty })
    }
  }

  @Test func `a refused configuration opens its file, and a refused password names its credential`() {
    var facts = FleetFacts(unit: Self.enabled, state: "none")
    for (refusal, file) in [
      (
        "/etc/identityd/identity-fleet.conf.d/site.conf:3: [Fleet] Broker= cannot be 'x'",
        "/etc/identityd/identity-fleet.conf.d/site.conf"
      ),
      ("AdminGroup=x: there is no such group", "/etc/identityd/identity-fleet.conf"),
    ] {
      facts.refusal = refusal
      #expect(facts.finding.faults.count == 1 && facts.finding.faults[0].cause.hasSuffix(refusal))
      #expect(
        facts.finding.faults[0].mend.map { $0.text(for: 0) } == [
          "${EDITOR:-vi} \(file)", "systemctl restart identity-fleet.service",
        ])
    }
    facts = FleetFacts(unit: Self.enabled, state: "refused", words: ["broker": "mqtts://b"])
    let cause = facts.finding.faults[0].cause
    #expect(
      cause.contains("the password is that of the account, which the broker has to know. If the key of the account"))
    #expect(cause.contains("'identityctl account join' with --file= takes the present one"))
    facts.passwordFile = "/etc/credstore/fleet.password"
    #expect(facts.finding.faults[0].cause.hasSuffix("the password is the credential in /etc/credstore/fleet.password"))
    // A reload does not read a credential again.
    #expect(facts.finding.faults[0].mend.last?.text(for: 0) == "systemctl restart identity-fleet.service")
  }

  @Test func `a service that a store stops is a symptom of the store`() {
    let store = StoreFacts(examination(.answered, [("store", "read-only"), ("store-reason", "x")])).finding
    let reported = ReportedFault.ordered([("store", store), ("fleet", finding("none"))])
    #expect(reported.map(\.symptomOf) == [nil, "store"])
  }

  @Test func `the clock is named if it can be the cause, and a twin only once`() {
    let words = ["broker": "mqtts://b", "reason": "certificate verify failed"]
    #expect(finding("waiting", words, isSynchronized: false).faults[0].cause.contains("the clock is not synchronized"))
    #expect(!finding("waiting", words).faults[0].cause.contains("clock"))
    #expect(finding("live", ["twin": "yes"], isSuspect: true).result == .ok)
  }

  @Test func `the facts come from status`() {
    let facts = FleetFacts(
      examination(.answered, [("fleet", "waiting"), ("fleet-said", "broker=mqtts://b"), ("fleet-said", "reason=a=b")]))
    #expect(facts.state == "waiting" && facts.words == ["broker": "mqtts://b", "reason": "a=b"])
    #expect(FleetFacts(examination(.silent)).unknown == Examination.unreached)
    #expect(FleetFacts(examination(.answered, [("version", "1")])).unknown?.contains("run the check as root") == true)
  }
}
