import Foundation
import TestSupport
import Testing

// Proofs of the packaged daemon, in the sandbox of its unit.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `a proof names unit, user and kind of service, and its key outlives a restart`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write("[App]\nUnit=proof.service", to: "\(Container.manifests)/org.example.proof.app")
    try await system.shell("systemctl reload identityd.service && useradd --create-home prover")
    try await system.shell("loginctl enable-linger prover && identityctl prove vault >/run/first")
    func claims(_ run: String) async throws -> String {
      try await system.shell(
        """
        identityctl proof keys >/run/keys
        \(run) identityctl prove vault >/run/proof
        identityctl proof verify /run/proof --keys=/run/keys --audience=vault
        """)
    }
    let user = try await system.shell("id --user prover")
    for (run, facts, absent) in [
      ("", ["user=0"], ["user_unit", "contained"]),
      (
        "systemd-run --quiet --wait --pipe --unit=proof -p DynamicUser=yes",
        ["app=org.example.proof", "unit=proof.service"], ["user_unit", "contained"]
      ),
      (
        "systemd-run --user --machine=prover@ --quiet --wait --pipe --unit=proof",
        ["app=unit:proof.service@\(user)", "user_unit=proof.service", "user=\(user)"], ["unit", "contained"]
      ),
      ("setpriv --reuid=prover --regid=prover --clear-groups", ["user=\(user)"], ["user_unit", "contained"]),
      (
        "systemd-run --quiet --wait --pipe --unit=proof -p PrivateUsers=yes",
        ["unit=proof.service", "contained=true"], ["user_unit"]
      ),
    ] {
      let lines = try await claims(run).split(separator: "\n").map(String.init)
      for fact in facts { #expect(lines.contains("identityd.\(fact)"), "\(run): \(lines)") }
      for name in absent { #expect(!lines.contains { $0.hasPrefix("identityd.\(name)=") }, "\(run): \(lines)") }
    }
    try await system.shell(
      """
      systemctl restart identityd.service
      identityctl proof verify /run/first --keys=/run/keys --audience=vault --quiet
      identityctl prove vault | identityctl proof verify --keys=/run/keys --audience=vault --quiet
      """)
  }
}
