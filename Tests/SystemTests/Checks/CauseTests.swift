import TestSupport
import Testing

/// Broken systems: `identityctl check` must name the cause first, and the command that it prints must repair the system.
extension SystemTests {
  @Test(arguments: Container.newest)
  func `check names the cause first, and its command repairs the system`(suite: String) async throws {
    let system = try await reinstalled(suite)
    // A key in a file and the clock of the test machine are findings of every system here.
    let usual = try await check(system).findings.map(\.check)
    #expect(Set(usual).isSubset(of: ["master-key", "clock"]))
    #expect(Breakage.all.count >= 26)
    for breakage in Breakage.all {
      try await system.shell("systemctl reset-failed \(Breakage.units) || true; \(breakage.script)")
      let found = try await check(system)
      let first = try #require(found.findings.first, "\(breakage.script)")
      #expect(first.check == breakage.check, "\(breakage.script): \(found)")
      #expect(first.result == breakage.result && first.symptomOf == nil)
      for part in breakage.cause { #expect(first.cause.contains(part) == true, "\(first)") }
      #expect(first.mend?.hasPrefix(breakage.mend) == true, "\(first)")
      let symptoms = found.findings.filter { $0.symptomOf != nil }
      for name in breakage.symptoms {
        #expect(symptoms.contains { $0.check == name && $0.symptomOf == breakage.check }, "\(found)")
      }
      #expect(symptoms.allSatisfy { $0.mend == nil }, "\(found)")
      for name in breakage.skipped { #expect(try found[name].result == "skipped", "\(found)") }
      // Doubled, because systemd-run(1), which runs the commands of a container, expands variables.
      let command = try #require(first.command(copy: "/root/copy")).replacing("$", with: "$$")
      try await system.shell("\(breakage.repair)\ncd /; export EDITOR='\(breakage.editor)'\n\(command)")
      // The daemon reads a changed manifest by itself, a moment later.
      var after = try await check(system)
      for _ in 0..<20 where after.findings.map(\.check) != usual {
        try await Task.sleep(for: .milliseconds(250))
        after = try await check(system)
      }
      #expect(after.ok && after.findings.map(\.check) == usual, "\(breakage.script): \(after)")
      try await system.shell(breakage.tidy)
    }
  }
}
