import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

// The public proof keys that the fleet carries, for relying parties.
extension FleetServiceTests {
  /// A relying party's files, and the proofs of devices that it verifies.
  private struct RelyingParty {
    let files: URL
    let device: FleetUnderTest

    init(at device: FleetUnderTest) {
      self.device = device
      files = device.daemon.folder.appending(path: "web")
    }

    /// Fetches the keys of all devices.
    @discardableResult func fetch(_ options: String...) throws -> (status: Int32, output: String, errors: String) {
      let words = ["fleet", "keys", "--output=\(files.path)"] + options
      return try run(
        [DaemonUnderTest.binaries.appending(path: "identityctl").path] + words,
        environment: ["IDENTITYD_SOCKET": device.daemon.socket, "IDENTITY_FLEET_SOCKET": device.socket])
    }

    /// Whether a proof is accepted by the key set in a file.
    func accepts(_ proof: String, by name: String) throws -> Bool {
      try device.identityctl(
        "proof", "verify", "--quiet", "--keys=\(files.path)/\(name)", "--audience=vault", input: proof
      ).status == 0
    }

    func text(_ name: String) throws -> String {
      try String(contentsOf: files.appending(path: name), encoding: .utf8)
    }
  }

  private func prove(_ device: FleetUnderTest) throws -> String {
    let words = try device.daemon.ask("prove vault").split(separator: " ").map(String.init)
    return try #require(words.count == 3 && words[0] == "OK" ? words[1] : nil, "\(words)")
  }

  /// Gives the daemon of a device another issuer.
  private func setIssuer(_ issuer: String, of device: FleetUnderTest) throws {
    let manifests = device.daemon.folder.appending(path: "apps.d").path
    try device.daemon.configure("[Apps]\nDirectories=\(manifests)\n[Proof]\nIssuer=\(issuer)\n")
    kill(device.daemon.process.processIdentifier, SIGHUP)
    try device.daemon.waitForLog("The configuration was loaded")
  }

  private static let empty = "{\"keys\":[]}\n"

  @Test func `each device of the account has a key set of its own, which follows its key and its removal`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let party = RelyingParty(at: devices[0])
    let none = try party.fetch()
    #expect(none.output == "devices=0 emptied=0 refused=0\n", "\(none)")
    let names = try devices.map { try $0.daemon.uuid("get device") }
    let proofs = try devices.map(prove)
    try devices[0].wait("both have published a key") { try party.fetch("--combined").output.hasPrefix("devices=2 ") }
    for own in 0...1 {
      #expect(try party.accepts(proofs[own], by: "\(names[own])/keys"))
      #expect(try !party.accepts(proofs[own], by: "\(names[1 - own])/keys"))
      #expect(try party.accepts(proofs[own], by: "combined"))
    }
    let shown = try party.fetch("--json")
    #expect(try JSONSchema.faults(in: [("fleet keys", shown.output)]) == "")
    // Nobody fetches anything at an issuer that is no https address.
    #expect(throws: (any Error).self) { try party.text("\(names[0])/.well-known/openid-configuration") }
    try setIssuer("https://id.example.org/%d", of: devices[0])

    // A revoked key leaves the set of this device alone. With it the record gets the other issuer.
    for device in devices { #expect(try device.daemon.ask("proof rotate revoke=yes").hasPrefix("OK ")) }
    let later = try devices.map(prove)
    try devices[0].wait("the new keys have come") {
      try party.fetch("--combined")
      return try party.accepts(later[0], by: "combined") && party.accepts(later[1], by: "combined")
    }
    for place in 0...1 {
      #expect(try !party.accepts(proofs[place], by: "combined"))
      #expect(try party.accepts(later[place], by: "\(names[place])/keys"))
    }
    let configuration = try party.text("\(names[0])/.well-known/openid-configuration")
    #expect(configuration.contains("\"jwks_uri\":\"https://id.example.org/\(names[0])/keys\""), "\(configuration)")

    // The key of a removed device leaves the set.
    #expect(try devices[0].identityctl("account", "rotate", "without=\(names[1])", "--yes").status == 0)
    try devices[0].wait("the device is gone") { try party.fetch("--combined").output.hasPrefix("devices=1 emptied=1 ") }
    #expect(try party.text("\(names[1])/keys") == Self.empty)
    #expect(try !party.accepts(later[1], by: "combined") && party.accepts(later[0], by: "combined"))
  }

  @Test func `a member puts no key under the name of another device`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let party = RelyingParty(at: devices[0])
    let proof = try prove(devices[1])
    try devices[0].wait("the key has come") { try party.fetch().output.hasPrefix("devices=1 ") }
    let name = try devices[1].daemon.uuid("get device")
    let laptop = try #require(UUID(Text(name)))
    let before = try party.text("\(name)/keys")
    // A member with a key that it has made, in the name of the laptop: of another generation, which the fleet believes.
    let hostile = try PlayedDevices(1, in: devices[0])
    var fields = hostile.fields(0, "forged")
    let forged = try #require(PublishedKeys(issuer: Text("urn:uuid:\(name)"), points: [Array(repeating: 7, count: 64)]))
    forged.add(to: &fields)
    let note = try hostile.message(
      .record, about: laptop, by: laptop, signer: 0, fields, generation: 2, counter: 1)
    try broker.publish(note.payload, to: note.topic)
    try devices[0].wait(for: ["desk", "forged"])
    let result = try party.fetch()
    #expect(result.status == 1 && result.output.hasSuffix("refused=1\n"), "\(result)")
    #expect(result.errors.contains("\(name) signs with another key than before"), "\(result)")
    #expect(try party.text("\(name)/keys") == before && party.accepts(proof, by: "\(name)/keys"))
    // The advice for a device that has joined anew.
    let advice = try #require(result.errors.firstMatch(of: /remove (\S+) and repeat the command/)).1
    try FileManager.default.removeItem(atPath: String(advice))
    #expect(try party.fetch().output == "devices=1 emptied=0 refused=0\n")
    // The key of another device under an own name takes nothing away from that one, in the combined set either.
    #expect(try !party.accepts(proof, by: "\(name)/keys"))
  }

  @Test func `a device whose issuer could be another's is refused`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk"], at: broker)
    let party = RelyingParty(at: devices[0])
    try setIssuer("https://id.example.org", of: devices[0])
    _ = try prove(devices[0])
    try devices[0].wait("the key is refused") { try party.fetch().output == "devices=0 emptied=0 refused=1\n" }
    #expect(try party.fetch().errors.contains("set Issuer= with %d"))
    // The advice is followed, and the next key comes with the other issuer.
    try setIssuer("https://id.example.org/%d", of: devices[0])
    try devices[0].wait("the issuer is right") {
      _ = try devices[0].daemon.ask("proof rotate revoke=yes")
      return try party.fetch().output == "devices=1 emptied=0 refused=0\n"
    }
  }

  @Test func `a site has the key sets of its devices, and believes no second signer`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    let key = folder["site.key"]
    let made = try run(
      [DaemonUnderTest.binaries.appending(path: "identityctl").path, "fleet", "keygen", "site", "--file=\(key)"])
    let setting = made.output.trimmingCharacters(in: .newlines)
    let devices = try fleet(["desk", "laptop"], at: broker)
    let proofs = try devices.map(prove)
    // A device reports seldom, and the key is there before its first report.
    for device in devices { try device.reload("\(broker.configuration)\nSpread=0\n\(setting)") }
    let names = try devices.map { try $0.daemon.uuid("get device") }
    let party = RelyingParty(at: devices[0])
    try devices[0].wait("all keys are reported") { try party.fetch("--key=\(key)").output.hasPrefix("devices=2 ") }
    for place in 0...1 { #expect(try party.accepts(proofs[place], by: "\(names[place])/keys")) }
    // The directory of a device that another signer has had.
    let signer = party.files.appending(path: "\(names[1])/.signer")
    try Data("other".utf8).write(to: signer)
    let result = try party.fetch("--key=\(key)")
    #expect(result.status == 1 && result.output == "devices=1 emptied=0 refused=1\n", "\(result)")
    // The device itself tells which key is its own.
    let shown = try #require(try devices[1].ask("fleet status").first { $0.hasPrefix("* signer=") })
    #expect(result.errors.contains("on the device shows \(shown.dropFirst(2))"), "\(result)")
    #expect(try party.accepts(proofs[1], by: "\(names[1])/keys"))
    // Without any report nothing is emptied.
    let others = folder["other.key"]
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    _ = try run([program, "fleet", "keygen", "site", "--file=\(others)"])
    let none = try party.fetch("--key=\(others)")
    #expect(none.status == 7 && none.errors.contains("nothing was written"), "\(none)")
    #expect(try party.accepts(proofs[0], by: "\(names[0])/keys"))
    for words in [["fleet", "keys"], ["fleet", "keys", "x", "--output=\(party.files.path)"]] {
      #expect(try run([program] + words).status == 2)
    }
  }
}
