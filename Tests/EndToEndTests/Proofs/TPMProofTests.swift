import Foundation
import TestSupport
import Testing

/// Proof keys in a TPM 2.0 (`[Proof] Key=tpm2` of identityd.conf(5)), and each loss of it.
@Suite(.enabled(if: isRoot, "rotations need root")) struct TPMProofTests {
  private let daemon: DaemonUnderTest
  private let tpm: TPMUnderTest

  init() throws {
    daemon = try DaemonUnderTest()
    tpm = try TPMUnderTest()
  }

  private func start(_ configuration: String = "[Proof]\nKey=tpm2\n") throws {
    try daemon.start(through: ["env", tpm.setting], configuration: configuration)
  }

  private func proof() throws -> String {
    let words = try daemon.ask("prove vault").split(separator: " ").map(String.init)
    return try #require(words.count == 3 && words[0] == "OK" ? words[1] : nil, "\(words)")
  }

  /// Whether a proof is accepted by the present key set, and the claim that names the place of its key.
  private func verified(_ proof: String) throws -> (isAccepted: Bool, place: String?) {
    let keys = daemon.folder.appending(path: "keys")
    try Data(try identityctl(daemon, "--json", "proof", "keys").output.utf8).write(to: keys)
    let file = daemon.folder.appending(path: "proof")
    try Data(proof.utf8).write(to: file)
    let result = try identityctl(daemon, "proof", "verify", file.path, "--keys=\(keys.path)", "--audience=vault")
    let place = result.output.firstMatch(of: /identityd\.key=(\S+)/).map { String($0.1) }
    return (result.status == 0, place)
  }

  /// Expects that no proof is made, that the reason shows, and that nothing else is affected.
  private func expectNoProof(_ reason: String) throws {
    let refused = try daemon.ask("prove vault")
    #expect(refused.hasPrefix("ERR unavailable ") && refused.contains(reason), "\(refused)")
    let status = try daemon.client().ask("status")
    #expect(status.contains("* proof-key=unavailable"), "\(status)")
    #expect(status.contains { $0.hasPrefix("* proof-key-reason=") && $0.contains(reason) }, "\(status)")
    let item = "service=s account=a"
    for request in ["get device", "item put \(item) data=eA==", "item read \(item)", "proof keys"] {
      #expect(try daemon.ask(request).hasPrefix("OK "), "\(request)")
    }
  }

  /// The command that `check` offers for the proof key.
  private func advice() throws -> String {
    let found = try daemon.diagnosis()["proof-key"]
    #expect(found.result == "warning", "\(found)")
    return try #require(found.mend)
  }

  @Test func `the key is made in the TPM, and outlives restarts of the daemon and of the TPM`() throws {
    try start()
    let first = try proof()
    #expect(try verified(first) == (true, "tpm2"))
    daemon.end()
    try start()
    #expect(try verified(proof()) == (true, "tpm2") && verified(first).isAccepted)
    // The connection to the TPM ends, and the daemon makes another one.
    try tpm.stop()
    try tpm.start()
    #expect(try verified(proof()) == (true, "tpm2"))
    #expect(try daemon.ask("proof rotate revoke=yes").hasPrefix("OK "))
    for _ in 0..<8 { #expect(try verified(proof()) == (true, "tpm2")) }
    #expect(try !verified(first).isAccepted)
  }

  @Test func `rotations leave no slot of the TPM in use`() throws {
    try start()
    for _ in 0..<6 {
      #expect(try daemon.ask("proof rotate revoke=yes").hasPrefix("OK "))
      _ = try proof()
    }
    #expect(try verified(proof()) == (true, "tpm2"))
  }

  @Test(arguments: [false, true])
  func `a TPM that was cleared or exchanged ends the key, and the advice makes another one`(isExchanged: Bool) throws {
    try start()
    let former = try proof()
    if isExchanged { try tpm.exchange() } else { try tpm.clear() }
    try expectNoProof("the TPM refuses the key")
    daemon.end()
    try start()
    try expectNoProof("the TPM refuses the key")
    let advice = try advice()
    #expect(advice.hasSuffix("identityctl proof rotate revoke=yes"), "\(advice)")
    #expect(try identityctl(daemon, "--yes", "proof", "rotate", "revoke=yes").status == 0)
    #expect(try verified(proof()) == (true, "tpm2") && !verified(former).isAccepted)
    #expect(try daemon.diagnosis()["proof-key"].result == "ok")
  }

  @Test func `without the TPM there is no proof, and with it again there is one`() throws {
    try start()
    let first = try proof()
    tpm.kill(SIGKILL)
    try expectNoProof("the TPM cannot be reached")
    #expect(try advice().hasSuffix("identityd-setup-key --proof=software"))
    // A start does not wait for it.
    daemon.end()
    try start()
    try expectNoProof("the TPM cannot be reached")
    try tpm.start()
    #expect(try verified(proof()) == (true, "tpm2") && verified(first).isAccepted)
  }

  @Test func `a TPM that hangs costs requests for proofs five seconds each, and others nothing`() throws {
    try start()
    let first = try proof()
    tpm.kill(SIGSTOP)
    defer { tpm.kill(SIGCONT) }
    let clients = try (0..<70).map { _ in try daemon.client() }
    for client in clients { try client.send("prove vault\n") }
    // Others are answered while these wait.
    for request in ["get device", "proof keys", "item put service=s account=a data=eA=="] {
      #expect(try daemon.ask(request).hasPrefix("OK "), "\(request)")
    }
    for client in clients { #expect(try client.answer().last?.hasPrefix("ERR unavailable ") == true) }
    // The signer has as many orders as it may have.
    try expectNoProof("the proof key has not answered for 5 s")
    tpm.kill(SIGCONT)
    try wait("proofs are made again") { try daemon.ask("prove vault").hasPrefix("OK ") }
    #expect(try verified(first) == (true, "tpm2") && verified(proof()) == (true, "tpm2"))
  }

  @Test func `a principal cannot take all places of a slow TPM, and pays for no request that is refused`() throws {
    try start()
    let first = try proof()
    // More than it may have at once, of which half of the places are in work. They are connected before, since the first
    // requests must still wait for the TPM when the last one comes.
    let clients = try (0..<200).map { _ in try daemon.client() }
    let other = try PeerConnection(65_534, of: daemon)
    tpm.kill(SIGSTOP)
    defer { tpm.kill(SIGCONT) }
    for client in clients { try client.send("prove vault\n") }
    for client in clients[32...] {
      let answer = try client.answer().last ?? ""
      // On a slow machine, the first requests are given up before the last ones come, which then have their turn.
      let reasons = ["32 of them for uid 0, which is its share; try again", "the proof key has not answered for 5 s"]
      #expect(reasons.contains { answer.contains($0) }, "\(answer)")
    }
    try other.send(["prove vault"])
    tpm.kill(SIGCONT)
    #expect(try other.answer()?.last?.hasPrefix("OK ") == true)
    #expect(try verified(first) == (true, "tpm2"))
  }

  @Test func `no key is made in any TPM that the environment does not name`() throws {
    try daemon.start(configuration: "[Proof]\nKey=tpm2\n")
    try expectNoProof("the TPM cannot be reached")
    #expect(try daemon.ask("proof keys").contains("[]"))
    // The other kind of key needs no TPM.
    daemon.end()
    try daemon.start(configuration: "")
    #expect(try verified(proof()).place == "file")
  }

  @Test func `a present key signs until a rotation, whatever the configuration has`() throws {
    try start("")
    let former = try proof()
    #expect(try verified(former).place == "file")
    daemon.end()
    try start("[Proof]\nKey=tpm2\nOverlap=0\n")
    #expect(try verified(proof()).place == "file")
    #expect(try daemon.ask("proof rotate").hasPrefix("OK "))
    #expect(try verified(proof()) == (true, "tpm2") && verified(former).isAccepted)
  }

  @Test func `a stolen state directory signs on no other machine`() throws {
    try start()
    _ = try proof()
    daemon.end()
    let other = try TPMUnderTest()
    try daemon.start(through: ["env", other.setting], configuration: "[Proof]\nKey=tpm2\n")
    try expectNoProof("the TPM refuses the key")
  }
}
