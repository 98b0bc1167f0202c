import Foundation
import TestSupport
import Testing

/// The recovery key at a real daemon.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized) struct RecoveryKeyTests {
  private static let credential = "identityd.key"
  private static let (first, second) = (String(repeating: "1", count: 32), String(repeating: "2", count: 32))
  /// Recovery keys, as requests have them.
  private static let key = Data((1...32).map { UInt8($0) }).base64EncodedString()
  private static let another = Data((2...33).map { UInt8($0) }).base64EncodedString()

  /// Returns a daemon with an item, under the credential ``first``, and with the recovery key ``key``.
  private func protected() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    try daemon.credential(Self.credential, Self.first)
    try daemon.startWithCredentials()
    #expect(try daemon.ask("item put service=s account=a data=c2VjcmV0 label=l") == "OK created")
    #expect(try daemon.client().statusValue("recovery-key") == nil)
    #expect(try daemon.ask("key protect data=\(Self.key)") == "OK")
    #expect(try daemon.client().statusValue("recovery-key") != nil)
    return daemon
  }

  private func expectItem(_ daemon: DaemonUnderTest) throws {
    let answer = try daemon.ask("item read service=s account=a")
    #expect(answer.contains("data=c2VjcmV0") && answer.contains("label=l"), "\(answer)")
  }

  @Test func `the recovery key opens the items under another credential`() throws {
    let daemon = try protected()
    #expect(try daemon.ask("key recover data=\(Self.key)").hasPrefix("ERR conflict "))
    try daemon.credential(Self.credential, Self.second)
    try daemon.restart()
    #expect(try daemon.client().statusValue("master-key") == "unavailable")
    #expect(try daemon.client().statusValue("recovery-key") != nil)
    #expect(try daemon.ask("key protect data=\(Self.another)").hasPrefix("ERR unavailable "))
    for key in [Self.another, "AAAA", "!"] {
      #expect(try daemon.ask("key recover data=\(key)").hasPrefix("ERR bad-argument "), "\(key)")
    }
    #expect(try daemon.ask("key recover dry-run=yes data=\(Self.key)") == "OK")
    #expect(try daemon.client().statusValue("master-key") == "unavailable")
    #expect(try daemon.ask("key recover data=\(Self.key)") == "OK credential")
    try daemon.restart()
    #expect(try daemon.client().statusValue("master-key") == "credential")
    try expectItem(daemon)
    #expect(try daemon.client().statusValue("recovery-key") != nil)
    // Under the former credential nothing opens, until the recovery key does so again.
    try daemon.credential(Self.credential, Self.first)
    try daemon.restart()
    #expect(try daemon.ask("item find").hasPrefix("ERR unavailable "))
    daemon.end(with: SIGKILL)
    try daemon.startWithCredentials()
    #expect(try daemon.ask("key recover data=\(Self.key)") == "OK credential")
    daemon.end(with: SIGKILL)
    try daemon.startWithCredentials()
    try expectItem(daemon)
  }

  @Test func `a backup does not carry the recovery key, and a restore and a seal remove it`() throws {
    let daemon = try protected()
    let backup = try daemon.backup()
    #expect(backup.range(of: Data((1...32).map { UInt8($0) })) == nil)
    let target = try protected()
    #expect(try target.ask("item delete service=s account=a") == "OK 1")
    _ = try target.restore(backup)
    #expect(try target.client().statusValue("recovery-key") == nil)
    try expectItem(target)
    #expect(try daemon.ask("seal").hasPrefix("OK"))
    #expect(try daemon.client().statusValue("recovery-key") == nil)
    #expect(try daemon.ask("key protect data=\(Self.key)").hasPrefix("ERR unavailable "))
  }

  @Test func `only an admin uses the recovery key, and neither the log, an event nor an error has it`() throws {
    let daemon = try protected()
    let other = try OtherUser(65_534, of: daemon)
    for verb in ["protect", "recover"] {
      #expect(try other.ask("key \(verb) data=\(Self.another)").hasPrefix("ERR denied "))
    }
    try other.end()
    let answers = [
      try daemon.ask("key protect \(Self.another)"), try daemon.ask("key recover data=\(Self.another)"),
      try daemon.ask("key recover data=\(Self.another)!"),
      try daemon.ask("key protect data=\(Self.another.dropLast(4))"),
    ]
    daemon.end()
    for text in answers + [daemon.log] {
      for key in [Self.key, Self.another] { #expect(!text.contains(key.dropLast(4)), "\(text)") }
    }
    #expect(daemon.log.contains("new recovery key"))
  }

  @Test func `the client reads the recovery key from standard input`() throws {
    let daemon = try protected()
    let file = daemon.folder.appending(path: "recovery")
    try Data((2...33).map { UInt8($0) }).write(to: file)
    for _ in 0..<2 {
      let outcome = try identityctl(daemon, "key", "protect", "--data-file=\(file.path)")
      #expect(outcome.status == 0, "\(outcome)")
    }
    #expect(try identityctl(daemon, "key", "protect").errors.contains("the secret is missing"))
    try daemon.credential(Self.credential, Self.second)
    try daemon.restart()
    #expect(try daemon.ask("key recover data=\(Self.key)").hasPrefix("ERR bad-argument "))
    #expect(try identityctl(daemon, "key", "recover", "--data-file=\(file.path)").status == 0)
    try daemon.restart()
    try expectItem(daemon)
  }
}
