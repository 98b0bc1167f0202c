import Testing

@testable import Doctor

/// The findings of the check `manifests` about services that run, and about packages that are being installed.
struct ManifestClaimTests {
  private static let path = "/etc/identityd/apps.d/org.example.player.app"

  private func faults(named: [String] = [], running: [UInt32]) -> [Finding.Fault] {
    var facts = ManifestFacts(faults: [], isSystem: true)
    facts.claims = [.init(path: Self.path, unit: "player.service", named: named, running: running)]
    facts.users = ["alice": 1_000, "bob": 1_001, "player": 990]
    return facts.finding.faults
  }

  @Test(
    arguments: [
      ([], [0]), ([], [990]), ([], [61_184]), (["alice"], [1_000]), (["alice", "player"], [990]),
      (["player"], [0, 990]),
    ] as [([String], [UInt32])])
  func `a service whose user is admitted is in order`(named: [String], running: [UInt32]) {
    #expect(faults(named: named, running: running).isEmpty)
  }

  @Test(
    arguments: [
      ([], [1_000], "runs as alice", "'User=alice'"), (["player"], [1_000], "runs as alice", "'User=player alice'"),
      ([], [1_000, 1_001], "runs as alice, bob", "'User=alice bob'"), ([], [1_007], "runs as 1007", "'User=1007'"),
      (["player"], [0], "with User=player, but", "'User=player 0'"),
    ] as [([String], [UInt32], String, String)])
  func `a service that runs as none of the admitted users is named, with the line to add`(
    named: [String], running: [UInt32], part: String, line: String
  ) {
    let found = faults(named: named, running: running)
    #expect(found.count == 1 && found[0].result == .warning)
    #expect(found[0].cause.contains(part) && found[0].cause.hasSuffix(line), "\(found)")
    #expect(found[0].mend.first?.text(for: 0) == "${EDITOR:-vi} \(Self.path)")
  }

  @Test func `a missing user is no fault in the seconds of an installation`() {
    var facts = ManifestFacts(
      faults: ["\(Self.path):2: [App] User=player: the user player does not exist yet"], isSystem: true)
    #expect(
      facts.finding.faults.map { $0.mend.map { $0.text(for: 0) } } == [
        ["systemd-sysusers", "systemctl reload identityd.service"]
      ])
    facts.fresh = [Self.path]
    #expect(facts.finding.faults.isEmpty && facts.finding.result == .skipped)
    // Another fault of the same file is one.
    facts.faults?.append("\(Self.path):3: unknown setting [App] Usr=; it is ignored")
    #expect(facts.finding.result == .warning)
  }
}
