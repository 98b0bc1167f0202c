import Testing

@testable import Doctor

/// The finding about the machine-id for given facts.
struct MachineIDJudgementTests {
  @Test(
    arguments: [
      ("0123456789abcdef0123456789abcdef\n", .good), ("0123456789ABCDEF0123456789abcdef", .good), ("", .empty),
      ("\n", .empty), ("uninitialized\n", .uninitialized), ("uninitialized", .uninitialized),
      ("00000000000000000000000000000000\n", .empty), ("b76cc7b1bbdc489e93909d2043031de8\n", .shared),
      ("B76CC7B1BBDC489E93909D2043031DE8\n", .shared), ("0123456789abcdef0123456789abcde", .malformed),
      ("0123456789abcdef0123456789abcdef\n\n", .malformed), ("0123456789abcdef0123456789abcdeg\n", .malformed),
    ] as [(String, MachineIDFacts.Content)])
  func `the content of a machine-id is judged as libsystemd does`(text: String, content: MachineIDFacts.Content) {
    #expect(MachineIDFacts.judge(Array(text.utf8)) == content)
  }

  @Test func `each state of the machine-id has its own remedy`() {
    let setUp = "sudo systemd-machine-id-setup"
    let renew = [setUp, "sudo systemctl restart identityd.service", "sudo identityctl machine acknowledge"]
    let expected: [(MachineIDFacts.Content, [String])] = [
      (.good, []), (.missing, renew), (.empty, renew),
      (.uninitialized, ["sudo rm /etc/machine-id"] + renew),
      (.malformed, ["sudo rm /etc/machine-id"] + renew),
      (.shared, ["sudo rm -f /etc/machine-id /var/lib/dbus/machine-id"] + renew),
      (.unreadable("no"), ["sudo chmod 0444 /etc/machine-id"]),
    ]
    for (content, mend) in expected {
      let finding = MachineIDFacts(content: content, restart: examination().restart).finding
      #expect(finding.result == (content == .good ? .ok : .failed))
      #expect(mends(finding) == mend)
      // A remedy that ends identifiers says so.
      let says = finding.faults.first?.cause.contains("renews every identifier") ?? false
      #expect(says == mend.contains(setUp), "\(finding)")
    }
  }

  @Test func `a copy of a known machine-id is restored, and no identifier ends`() {
    let copy = MachineIDCandidate(remedy: .root("cp", "copy"), place: "copy")
    let restart = "sudo systemctl restart identityd.service"
    for content in [.missing, .empty, .uninitialized, .malformed, .shared, .good] as [MachineIDFacts.Content] {
      var facts = MachineIDFacts(content: content, restart: examination().restart, copy: (copy, .current))
      if content == .good { facts.comparison = .unknown }
      #expect(mends(facts.finding) == ["sudo cp copy"])
      facts.copy = (copy, .former)
      #expect(mends(facts.finding) == ["sudo cp copy", restart])
    }
  }

  @Test func `a machine-id that replaced the daemon's own is a warning before the next start renews identifiers`() {
    var facts = MachineIDFacts(content: .good, restart: examination().restart, comparison: .unknown)
    #expect(facts.finding.result == .warning)
    #expect(facts.finding.faults.first?.cause.contains("renews every identifier") == true)
    #expect(
      mends(facts.finding) == ["sudo systemctl restart identityd.service", "sudo identityctl machine acknowledge"])
    for comparison in [.current, .former, nil] as [MachineIDCandidate.Comparison?] {
      facts.comparison = comparison
      #expect(facts.finding.result == .ok)
    }
  }

  @Test func `a renewal on another machine is a warning until it is acknowledged`() {
    let facts = MachineIDFacts(
      content: .good, restart: examination().restart, change: "machine-changed 2026-11-21T00:00:00.000Z")
    #expect(facts.finding.result == .warning)
    #expect(mends(facts.finding) == ["sudo identityctl machine acknowledge"])
  }

  @Test func `a suspected copy of a machine is a warning`() {
    let facts = MachineIDFacts(
      content: .good, restart: examination().restart, suspicion: "hardware-changed 2026-11-21T00:00:00.000Z")
    #expect(facts.finding.result == .warning)
    #expect(mends(facts.finding) == ["sudo identityctl history device"])
  }

  @Test func `a twin that the fleet has found is a warning about both machines`() {
    let facts = MachineIDFacts(
      content: .good, restart: examination().restart, suspicion: "cloned 2026-11-21T00:00:00.000Z")
    #expect(facts.finding.result == .warning)
    #expect("\(facts.finding)".contains("another machine speaks for this device"))
    #expect(mends(facts.finding) == ["sudo identityctl history device"])
  }

  @Test func `a suspicion that this user may not see is skipped`() {
    let told = [("store", "ok"), ("items", "0")]
    for (answers, result) in [(Array(told.prefix(1)), Finding.Result.skipped), (told, .ok)] {
      let examination = examination(.answered, answers)
      func finding(_ content: MachineIDFacts.Content) -> Finding {
        let isUntold = examination.answers?.hasAllRows == false
        return MachineIDFacts(content: content, restart: examination.restart, isUntold: isUntold).finding
      }
      #expect(finding(.good).result == result)
      #expect(finding(.good).reason?.hasSuffix("run the check as root") ?? false == (result == .skipped))
      // A bad state of the file itself still fails the check.
      #expect(finding(.missing).result == .failed)
    }
  }
}
