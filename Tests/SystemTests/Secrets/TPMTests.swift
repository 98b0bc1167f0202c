import TestSupport
import Testing

// A proof key in a TPM, in the sandbox of the unit.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `the set-up puts the proof key into a TPM, and takes it out again`(suite: String) async throws {
    let system = try await Container.ready(suite)
    func place() async throws -> String? {
      try await facts(ofProof: try await system.shell("identityctl prove vault"), system)["key"]
    }
    let setUp = "TPM2OPENSSL_TCTI=swtpm:path=/run/swtpm/socket identityd-setup-key --proof=tpm2 2>&1"
    let startTPM = """
      mkdir -p /run/swtpm/state
      systemd-run --quiet --unit=swtpm swtpm socket --tpm2 --tpmstate dir=/run/swtpm/state \
        --server type=unixio,path=/run/swtpm/socket,mode=0666 --ctrl type=unixio,path=/run/swtpm/socket.ctrl,mode=0666 \
        --flags startup-clear,not-need-init
      for try in $(seq 100); do [ -S /run/swtpm/socket.ctrl ] && break; sleep 0.1; done
      """
    // Neither a TPM nor its libraries.
    let before = try await place()
    for script in ["identityd-setup-key --proof=tpm2 2>&1", setUp] {
      let refused = try await system.attempt(script)
      #expect(refused.status == 69, "\(refused)")
      #expect(try await place() == before)
      let files = "ls \(Container.configurations) /etc/systemd/system/identityd.service.d 2>/dev/null || true"
      #expect(try await !system.shell(files).contains("proof-key.conf"))
    }
    try await system.shell(
      """
      apt-get --quiet --quiet update
      apt-get install --yes --no-install-recommends swtpm tpm2-openssl libtss2-rc0 libtss2-tcti-swtpm0 tpm2-tools >&2
      \(startTPM)
      """)
    // A present key signs until the next one takes its place.
    try await system.write("[Proof]\nOverlap=0\n", to: "\(Container.configurations)/overlap.conf")
    let done = try await system.shell(setUp)
    #expect(done.contains("done: a proof key is in the TPM, has signed a test, and signs proofs from 2"), "\(done)")
    #expect(try await place() == "tpm2")
    // Another run has nothing to undo.
    try await system.shell("TPM2TOOLS_TCTI=swtpm:path=/run/swtpm/socket tpm2_shutdown -c; systemctl stop swtpm.service")
    let now = try await system.now()
    let refused = try await system.attempt("identityctl prove vault")
    #expect(refused.status == 24 && refused.errors.contains("the TPM cannot be reached"), "\(refused)")
    let again = try await system.attempt(setUp)
    let reason = "nothing was changed: no proof can be signed: the TPM cannot be reached\n"
    #expect(again.status == 1 && again.output.hasSuffix(reason), "\(again)")
    #expect(try await system.property("ActiveState", of: "identityd.service") == "active")
    // The libraries of the TPM are silent.
    #expect(try await !system.journal(since: now).contains { $0.contains("WARNING") || $0.contains("ERROR:") })
    try await system.shell(startTPM)
    #expect(try await place() == "tpm2")
    // The advice for a TPM that does not come back.
    try await system.shell("systemctl stop swtpm.service")
    _ = try await system.attempt("identityctl prove vault")
    let found = try await diagnosis(of: system.attempt("identityctl check --json").output)["proof-key"]
    let mend = try #require(found.mend)
    #expect(mend.hasSuffix("identityd-setup-key --proof=software"), "\(found)")
    try await system.shell(mend)
    #expect(try await place() == before)
    try await system.shell(
      """
      rm \(Container.configurations)/overlap.conf; rm -r /run/swtpm; systemctl reload identityd.service
      """)
  }
}
