import Foundation
import TestSupport
import Testing

/// Proofs of the real daemon, its keys, and the client's verification (identityd-protocol(7), section "PROOFS").
@Suite(.enabled(if: isRoot, "rotations and other users need root")) struct ProofTests {
  let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest() }

  typealias ClientResult = (status: Int32, output: String, errors: String)

  private func run(_ words: [String], input: String) throws -> ClientResult {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    return try TestSupport.run([program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket], input: input)
  }

  func proof(_ request: String = "prove vault", over client: Client? = nil) throws -> String {
    let answer = try (client ?? daemon.client()).ask(request).last ?? ""
    let words = answer.split(separator: " ").map(String.init)
    #expect(words.count == 3 && words[0] == "OK" && words[2].hasPrefix("expires="), "\(answer)")
    return words.count > 1 ? words[1] : ""
  }

  func part(_ place: Int, of proof: String) throws -> [String: Any] {
    let parts = proof.split(separator: ".")
    try #require(parts.count == 3)
    var text = parts[place].replacing("-", with: "+").replacing("_", with: "/")
    while text.count % 4 != 0 { text += "=" }
    let bytes = try #require(Data(base64Encoded: String(text)))
    return try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
  }

  func facts(of proof: String) throws -> [String: Any] {
    try #require(try part(1, of: proof)["identityd"] as? [String: Any])
  }

  /// Writes the key set as a server has it, and returns the path.
  func keySet(_ name: String = "keys") throws -> String {
    let file = daemon.folder.appending(path: name)
    try Data(try identityctl(daemon, "--json", "proof", "keys").output.utf8).write(to: file)
    return file.path
  }

  /// The IDs of the published keys.
  func published() throws -> [String] {
    let text = try identityctl(daemon, "--json", "proof", "keys").output
    let set = try JSONSerialization.jsonObject(with: Data(text.utf8))
    let keys = try #require((set as? [String: Any])?["keys"] as? [[String: Any]])
    return keys.compactMap { $0["kid"] as? String }
  }

  func verify(_ proof: String, _ keys: String, _ audience: String = "vault") throws -> ClientResult {
    let file = daemon.folder.appending(path: "proof")
    try Data("\(proof)\n".utf8).write(to: file)
    return try identityctl(daemon, "proof", "verify", file.path, "--keys=\(keys)", "--audience=\(audience)")
  }

  @Test func `a proof names the app, the device and the audience, and the client accepts it`() throws {
    try daemon.start()
    #expect(try daemon.ask("proof keys") == #"OK "{\"keys\":[]}""#)
    let proof = try proof("prove https://vault.example.org nonce=n-1 lifetime=60")
    let header = try part(0, of: proof)
    #expect(header["alg"] as? String == "ES256" && header["typ"] as? String == "JWT")
    #expect(try [header["kid"] as? String] == published())
    let claims = try part(1, of: proof)
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    #expect(claims["iss"] as? String == "urn:uuid:\(device)" && claims["sub"] as? String == "urn:uuid:\(installation)")
    #expect(claims["aud"] as? String == "https://vault.example.org" && claims["nonce"] as? String == "n-1")
    let times = ["nbf", "iat", "exp"].compactMap { claims[$0] as? Int }
    try #require(times.count == 3)
    #expect(times[1] - times[0] == 60 && times[2] - times[1] == 60)
    #expect(abs(Double(times[1]) - Date().timeIntervalSince1970) < 30)
    let facts = try facts(of: proof)
    #expect(facts["device"] as? String == device && facts["installation"] as? String == installation)
    #expect(try facts["vendor"] as? String == daemon.uuid("get vendor"))
    #expect(try facts["boot"] as? String == daemon.uuid("get boot"))
    #expect(facts["app"] as? String == "user:0" && facts["user"] as? Int == 0 && facts["key"] as? String == "file")
    #expect(facts["by"] == nil && facts["contained"] == nil && facts["suspect"] == nil && facts["daemon"] == nil)
    let keys = try keySet()
    let result = try verify(proof, keys, "https://vault.example.org")
    #expect(result.status == 0 && result.output.contains("identityd.device=\(device)\n"), "\(result)")
    #expect(try verify(proof, keys, "https://vault.example.com").status == 1)
    // Each answer is another proof.
    #expect(try part(1, of: self.proof())["jti"] as? String != part(1, of: self.proof())["jti"] as? String)
  }

  @Test func `the key outlives restarts and kills, and no proof is in the log`() throws {
    try daemon.start()
    let proof = try proof()
    let keys = try published()
    for signal in [SIGTERM, SIGKILL] {
      daemon.end(with: signal)
      try daemon.start()
      #expect(try published() == keys)
      #expect(try part(0, of: self.proof())["kid"] as? String == keys.first)
    }
    let log = try String(contentsOf: daemon.folder.appending(path: "log"), encoding: .utf8)
    #expect(log.contains("The proof key \(keys[0]) is published") && !log.contains(proof.suffix(40)))
  }

  @Test func `a trust domain and an issuer of the configuration are in the proofs, also after a reload`() throws {
    try daemon.start(configuration: "[Proof]\nTrustDomain=example.org\nIssuer=https://id.example.org/%d\n")
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    let first = try proof()
    let claims = try part(1, of: first)
    #expect(claims["iss"] as? String == "https://id.example.org/\(device)")
    #expect(claims["sub"] as? String == "spiffe://example.org/device/\(device)/installation/\(installation)")
    #expect(try verify(first, keySet()).status == 0)
    try daemon.configure("[Proof]\nIssuer=urn:example:%d\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded")
    let second = try proof()
    #expect(try part(1, of: second)["iss"] as? String == "urn:example:\(device)")
    #expect(try verify(second, keySet()).status == 0 && verify(first, keySet()).status == 1)
  }

  @Test(arguments: [
    "Issuer=http://id.example.org", "Issuer=https://a\"b", "Issuer=https://a b", "TrustDomain=Example.org",
    "TrustDomain=a/b", "Overlap=-1", "Audience=vault", "Audience=vault a 59", "Audience=vault a 3601",
    "Audience=vault a 60 b", "Audience=vault a b", "Audience=a \(String(repeating: "b", count: 256))",
    (0...64).map { "Audience=a\($0) b" }.joined(separator: "\n"),
  ])
  func `settings that no proof may have are refused`(setting: String) throws {
    try daemon.configure("[Proof]\n\(setting)\n")
    try daemon.launch()
    #expect(daemon.exitStatus() != 0)
  }

  @Test func `a rotated key signs later, and a revoked one never again`() throws {
    try daemon.start()
    let client = try daemon.client()
    _ = try client.subscribe("proof")
    let old = try proof()
    let first = try published()
    let rotated = try daemon.ask("proof rotate").split(separator: " ").map(String.init)
    try #require(rotated.count == 3 && rotated[0] == "OK", "\(rotated)")
    #expect(try published() == first + [rotated[1]])
    #expect(try part(0, of: proof())["kid"] as? String == first[0])
    #expect(try daemon.ask("proof rotate").hasPrefix("ERR conflict "))
    let before = try keySet("before")
    let revoked = try daemon.ask("proof rotate revoke=yes").split(separator: " ").map(String.init)
    #expect(try published() == [revoked[1]])
    let new = try proof()
    #expect(try verify(new, keySet()).status == 0)
    let refused = try verify(old, keySet())
    #expect(refused.status == 1 && refused.errors.contains("the key set does not have its key"), "\(refused)")
    // A server with the former set accepts the old proof until it expires.
    #expect(try verify(old, before).status == 0)
    var events: [String] = []
    for _ in 0..<3 { events.append(try #require(try client.line())) }
    for (event, name) in zip(events, ["key-created key=\(first[0])", "key-rotated key=\(rotated[1])"]) {
      #expect(event.contains(" proof \(name) "), "\(event)")
    }
    #expect(events[2].contains(" proof key-rotated key=\(revoked[1]) "))
  }

  @Test func `requests of one connection are answered in their order`() throws {
    try daemon.start()
    let client = try daemon.client()
    for _ in 0..<3 {
      try client.send("ping\nprove a\nget device\nprove b\nproof keys\nping\n")
      let answers = try (0..<6).map { _ in try client.answer().last ?? "" }
      #expect(answers[0] == "OK" && answers[5] == "OK" && answers[2].contains("level=device"), "\(answers)")
      for (place, audience) in [(1, "a"), (3, "b")] {
        let proof = answers[place].split(separator: " ").dropFirst().first.map(String.init) ?? ""
        #expect(try part(1, of: proof)["aud"] as? String == audience)
      }
    }
  }

  @Test func `a client that hangs up while its proof is made harms nobody`() throws {
    try daemon.start()
    // Fewer than half of the places, which are a principal's share.
    for _ in 0..<30 { try daemon.client().send("prove a\n") }
    #expect(try proof().isEmpty == false)
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test func `a principal gets a hundred proofs at once, and others theirs meanwhile`() throws {
    try daemon.start()
    let client = try daemon.client()
    let start = Date()
    for _ in 0..<100 { _ = try proof(over: client) }
    let others = try (0..<200).map { _ in try daemon.client() }
    for other in others { try other.send("prove vault\n") }
    let answers = try others.map { try $0.answer().last ?? "" }
    let refusals = answers.filter { $0.hasPrefix("ERR unavailable uid 0 has had 20 proofs a second") }
    // A hundred, and 20 for each second that passed, so on a machine that is slow enough, all of them.
    let allowed = 100 + Int(20 * Date().timeIntervalSince(start)) + 1
    #expect(100 + others.count - refusals.count <= allowed, "\(answers)")
    let full = answers.filter { $0.hasSuffix("which is its share; try again") }
    #expect(answers.count { $0.hasPrefix("OK ") } + refusals.count + full.count == others.count, "\(answers)")
    #expect(try identityctl(daemon, "prove", "vault", asUser: 65_534).status == 0)
  }

  @Test func `an ordinary user gets proofs about itself alone`() throws {
    try daemon.start()
    let result = try identityctl(daemon, "prove", "vault", asUser: 65_534)
    let proof = result.output.trimmingCharacters(in: .newlines)
    #expect(try facts(of: proof)["app"] as? String == "user:65534" && facts(of: proof)["user"] as? Int == 65_534)
    _ = try self.proof()
    #expect(try identityctl(daemon, "prove", "vault", "app=user:0", asUser: 65_534).status == 15)
    #expect(try identityctl(daemon, "proof", "rotate", asUser: 65_534).status == 15)
    #expect(try identityctl(daemon, "proof", "keys", asUser: 65_534).status == 0)
    let other = try self.proof("prove vault app=user:65534")
    let facts = try facts(of: other)
    #expect(facts["app"] as? String == "user:65534" && facts["by"] as? String == "uid:0")
    #expect(facts["user"] == nil && facts["boot"] == nil && facts["unit"] == nil)
  }

  @Test func `a copy on another machine has another key until the machine is back`() throws {
    let (here, there) = (String(repeating: "1", count: 32), String(repeating: "2", count: 32))
    func restart(_ machine: String) throws {
      daemon.end()
      try daemon.start(through: try daemon.onMachine(withID: "\(machine)\n"))
    }
    try daemon.start(through: try daemon.onMachine(withID: "\(here)\n"))
    _ = try proof()
    let key = try published()
    try restart(there)
    #expect(try published() == [])
    #expect(try daemon.client().ask("status").contains("* proof-key=locked"))
    try daemon.waitForLog("The proof key \(key[0]) belongs to another machine")
    _ = try proof()
    #expect(try Set(published()).isDisjoint(with: key))
    try restart(here)
    #expect(try published() == key)
    #expect(try part(0, of: proof())["kid"] as? String == key[0])
    _ = try daemon.ask("renew device")
    #expect(try published() == [])
    _ = try proof()
    #expect(try Set(published()).isDisjoint(with: key))
  }

  @Test func `without the master key there is no proof, and everything else goes on`() throws {
    try daemon.start()
    _ = try proof()
    let keys = try published()
    daemon.end()
    let (file, aside) = (daemon.state.appending(path: "master.key"), daemon.folder.appending(path: "aside"))
    try FileManager.default.moveItem(at: file, to: aside)
    try daemon.start()
    #expect(try daemon.ask("prove vault").hasPrefix("ERR unavailable items cannot be decrypted"))
    #expect(try published() == keys)
    let status = try daemon.client().ask("status")
    #expect(status.contains("* proof-key=unavailable") && status.contains { $0.hasPrefix("* proof-key-reason=") })
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    daemon.end()
    try FileManager.default.moveItem(at: aside, to: file)
    try daemon.start()
    #expect(try part(0, of: proof())["kid"] as? String == keys.first)
  }

  @Test func `without libcrypto there is no proof, the reason is told, and everything else goes on`() throws {
    // The shipped program: a sanitizer needs libcrypto for the names in its reports.
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released)
    let find = "ls /usr/lib/*/libcrypto.so.3 /usr/lib64/libcrypto.so.3 2>/dev/null; true"
    let files = try TestSupport.run(["sh", "-c", find])
    let library = try #require(files.output.split(separator: "\n").first.map(String.init))
    let hidden = ["unshare", "--mount", "sh", "-c", "mount --bind /dev/null \(library) && exec \"$@\"", "-"]
    try daemon.start(through: hidden)
    for request in ["prove vault", "proof rotate"] {
      let answer = try daemon.ask(request)
      #expect(answer.hasPrefix("ERR unavailable no proof can be signed: OpenSSL's libcrypto.so.3"), "\(answer)")
    }
    #expect(try daemon.ask("get device").hasPrefix("OK ") && daemon.ask("proof keys").hasSuffix(":[]}\""))
    #expect(try daemon.client().ask("status").contains("* proof-key=unavailable"))
    daemon.end()
    try daemon.start()
    #expect(try daemon.ask("prove vault").hasPrefix("OK "))
  }

  @Test func `a backup has no key, and a restore ends it`() throws {
    try daemon.start()
    _ = try proof()
    let keys = try published()
    let backup = daemon.folder.appending(path: "backup").path
    let secret = "correct horse\n"
    #expect(try run(["backup", backup, "--passphrase-fd=0"], input: secret).status == 0)
    _ = try daemon.ask("renew vendor")
    #expect(try published() == keys)
    #expect(try run(["--yes", "restore", backup, "--passphrase-fd=0"], input: secret).status == 0)
    #expect(try published() == [])
    #expect(try published() != keys && proof().isEmpty == false)
  }

  @Test func `the private key is in no file in the clear`() throws {
    try daemon.start()
    _ = try proof()
    daemon.end()
    // The beginning of every PKCS #8 key on P-256.
    let mark = Data([0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07])
    for file in try FileManager.default.contentsOfDirectory(at: daemon.state, includingPropertiesForKeys: nil) {
      #expect(try Data(contentsOf: file).range(of: mark) == nil, "\(file.lastPathComponent)")
    }
  }

  @Test func `a kill at any moment leaves one key, the last one that was acknowledged or a later one`() throws {
    var acknowledged: [String] = []
    for round in 0..<(Trial.isShort ? 3 : 12) {
      try daemon.start()
      let client = try daemon.client()
      let end = Date(timeIntervalSinceNow: 0.004 * Double(round + 1))
      while Date() < end {
        let answer = try client.ask(round % 2 == 0 ? "proof rotate revoke=yes" : "prove vault").last ?? ""
        let words = answer.split(separator: " ").map(String.init)
        if words.first == "OK", round % 2 == 0 { acknowledged.append(words[1]) }
      }
      try client.send("proof rotate revoke=yes\n")
      daemon.end(with: SIGKILL)
      try daemon.start()
      let keys = try published()
      try #require(keys.count == 1, "\(keys)")
      // The rotation in flight is either done or not.
      #expect(keys.last == acknowledged.last || !acknowledged.contains(keys[0]), "round \(round)")
      acknowledged.append(keys[0])
      #expect(try verify(proof(), keySet()).status == 0)
      daemon.end(with: SIGKILL)
    }
  }

  @Test func `a proof on standard input, a file that is none, and missing options`() throws {
    try daemon.start()
    let proof = try proof()
    let keys = try keySet()
    let result = try run(["--json", "proof", "verify", "--keys=\(keys)", "--audience=vault"], input: proof)
    let claims = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    #expect(result.status == 0 && claims?["aud"] as? String == "vault")
    let refused = try run(["--json", "proof", "verify", "--keys=\(keys)", "--audience=web"], input: proof)
    #expect(refused.status == 1 && refused.output.hasPrefix(#"{"error":{"code":"refused","message":"the proof is"#))
    #expect(try verify("no proof", keys).status == 7)
    #expect(try verify(proof, "/dev/null").status == 7)
    for options in [["--keys=\(keys)"], ["--audience=vault"], ["--keys=-", "--audience=vault"]] {
      #expect(try run(["proof", "verify"] + options, input: "").status == 2, "\(options)")
    }
  }
}
