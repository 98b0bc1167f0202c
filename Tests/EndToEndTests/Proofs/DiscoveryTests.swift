import Foundation
import TestSupport
import Testing

/// The files by which relying parties find the key set (identityctl(1), section "PROOFS").
struct DiscoveryTests {
  private let daemon: DaemonUnderTest
  private let folder: URL

  init() throws {
    daemon = try DaemonUnderTest()
    folder = daemon.folder.appending(path: "web/id")
  }

  private func write(_ options: String...) throws -> (status: Int32, output: String, errors: String) {
    try client(["proof", "discovery", "--output=\(folder.path)"] + options)
  }

  private func client(_ words: [String], through wrapper: [String] = []) throws -> (
    status: Int32, output: String, errors: String
  ) {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    return try run(wrapper + [program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
  }

  private func file(_ name: String) throws -> [String: Any] {
    let bytes = try Data(contentsOf: folder.appending(path: name))
    return try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
  }

  private func inode(_ name: String) throws -> Int {
    let facts = try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)
    return try #require(facts[.systemFileNumber] as? Int)
  }

  private let configuration = ".well-known/openid-configuration"

  @Test(arguments: ["https://id.example.org/%d", "https://id.example.org/%d/"])
  func `the files have the keys, and the address at which the web server shows them`(issuer: String) throws {
    try daemon.start(configuration: "[Proof]\nIssuer=\(issuer)\n")
    // Before the first proof there is no key, and an earlier key must not stay.
    #expect(try write().output == "keys=0\n")
    #expect(try (file("keys")["keys"] as? [Any])?.isEmpty == true)
    #expect(!FileManager.default.fileExists(atPath: folder.appending(path: configuration).path))
    #expect(try daemon.ask("prove vault").hasPrefix("OK "))
    let named = issuer.replacing("%d", with: try daemon.uuid("get device"))
    #expect(try write("--json").output == "{\"keys\":1,\"issuer\":\"\(named)\"}\n")
    let shown = try file(configuration)
    let address = named.hasSuffix("/") ? "\(named)keys" : "\(named)/keys"
    #expect(shown["issuer"] as? String == named && shown["jwks_uri"] as? String == address)
    #expect(shown["id_token_signing_alg_values_supported"] as? [String] == ["ES256"])
    let keys = try #require(file("keys")["keys"] as? [[String: Any]])
    #expect(keys.count == 1 && keys[0]["d"] == nil && keys[0]["kty"] as? String == "EC")
  }

  @Test func `the files change with the keys alone, and all users can read them`() throws {
    try daemon.start(configuration: "[Proof]\nIssuer=https://id.example.org/%d\n")
    #expect(try daemon.ask("prove vault").hasPrefix("OK "))
    let umask = ["sh", "-c", "umask 077; exec \"$@\"", "-"]
    #expect(try client(["proof", "discovery", "--output=\(folder.path)"], through: umask).status == 0)
    for (name, mode) in [(".", 0o755), (".well-known", 0o755), ("keys", 0o644), (configuration, 0o644)] {
      let facts = try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)
      #expect(facts[.posixPermissions] as? Int == mode, "\(name)")
    }
    let inodes = try (inode("keys"), inode(configuration))
    #expect(try write().status == 0)
    #expect(try (inode("keys"), inode(configuration)) == inodes)
    #expect(try daemon.ask("proof rotate revoke=yes").hasPrefix("OK "))
    #expect(try write().status == 0)
    #expect(try inode("keys") != inodes.0 && inode(configuration) == inodes.1)
  }

  @Test func `an issuer that no relying party can find is refused, and so is a folder that is none`() throws {
    try daemon.start()
    #expect(try daemon.ask("prove vault").hasPrefix("OK "))
    let result = try write()
    #expect(result.status == 18 && result.errors.contains("set Issuer= in section [Proof]"), "\(result)")
    #expect(!FileManager.default.fileExists(atPath: folder.path))
    daemon.end()
    try daemon.start(configuration: "[Proof]\nIssuer=https://id.example.org/%d\n")
    try FileManager.default.createDirectory(
      at: folder.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data("x".utf8).write(to: folder)
    #expect(try write().status == 73)
    #expect(try Data(contentsOf: folder) == Data("x".utf8))
    // A link in place of a file would redirect the bytes.
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let victim = daemon.folder.appending(path: "victim")
    try Data("x".utf8).write(to: victim)
    try FileManager.default.createSymbolicLink(at: folder.appending(path: "keys"), withDestinationURL: victim)
    #expect(try write().status == 73)
    #expect(try Data(contentsOf: victim) == Data("x".utf8))
    for words in [["proof", "discovery"], ["proof", "discovery", "x", "--output=\(folder.path)"]] {
      #expect(try client(words).status == 2)
    }
  }
}
