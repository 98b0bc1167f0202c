import Doctor
import Proofs
import Testing

@testable import Doctor

/// The check `proof-key`.
struct ProofKeyTests {
  private func finding(_ rows: [(String, String)]) -> Finding {
    ProofKeyFacts(examination(.answered, [("master-key", "file")] + rows)).finding
  }

  @Test func `a key that signs, is locked or does not exist is no fault`() {
    for rows in [[], [("proof-key", "abc")], [("proof-key", "locked")]] { #expect(finding(rows).result == .ok) }
    #expect(ProofKeyFacts(examination(.silent)).finding.result == .skipped)
  }

  @Test func `a key that cannot sign is replaced, and a missing library is installed`() {
    let lost = finding([("proof-key", "unavailable"), ("proof-key-reason", "the proof key is damaged")])
    #expect(lost.result == .warning && lost.faults[0].cause.contains("the proof key is damaged"))
    #expect(mends(lost) == ["sudo identityctl proof rotate revoke=yes"])
    let missing = finding([("proof-key", "unavailable"), ("proof-key-reason", "libcrypto.so.3 cannot be loaded")])
    #expect(mends(missing) == ["sudo systemctl restart identityd.service"])
    for fault in [ProofKeyFault.noTPM, .noKeyInTPM] {
      let gone = finding([("proof-key", "unavailable"), ("proof-key-reason", "\(fault)")])
      #expect(mends(gone) == ["sudo identityd-setup-key --proof=software"])
    }
    let cleared = finding([("proof-key", "unavailable"), ("proof-key-reason", "\(ProofKeyFault.refusedByTPM)")])
    #expect(mends(cleared) == ["sudo identityctl proof rotate revoke=yes"])
  }

  @Test func `without the master key, only that is the fault`() {
    let rows = [("master-key", "unavailable"), ("proof-key", "unavailable"), ("proof-key-reason", "why")]
    #expect(ProofKeyFacts(examination(.answered, rows)).finding.result == .ok)
  }
}
