import IdentityCore
import IdentityWire
import Testing

struct AccessTests {
  @Test(arguments: VerbTable.verbs.filter { $0.access == .admin }.map(\.words))
  func `a verb for admins is denied to others before its arguments are read`(words: String) throws {
    let verb = try #require(VerbTable.verbs.first { $0.words == words })
    let request = try #require(verb.examples.first?.request)
    let denied = Refusal.denied(app: "user:1000", userID: 1_000, grant: "admin rights for '\(words)'")
    for line in [request, words, "\(words) x y z", "\(words) frob=1", "\(words) a=1 a=1", "\(request) app=org.a"] {
      #expect(refused(line, by: alice) == denied, "\(line)")
    }
    #expect(refused(request, by: root) == nil)
    #expect(refused("\(words) x y z", by: root)?.code != .denied)
  }

  @Test(arguments: VerbTable.verbs.filter { $0.access != .admin }.map(\.words))
  func `other verbs are parsed for any peer`(words: String) throws {
    let verb = try #require(VerbTable.verbs.first { $0.words == words })
    for example in verb.examples { #expect(refused(example.request, by: alice) == nil, "\(example.request)") }
  }

  @Test func `help shows the peers that may use a verb`() throws {
    var bytes: [UInt8] = []
    try VerbTable.help(["devices"]).append(to: &bytes)
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 6)
    #expect(lines[0].hasPrefix("* devices usage=devices access=app "))
    #expect(
      lines[2].hasPrefix("* \"devices put\" usage=\"devices put UUID [name=NAME] [seen=TIME] ")
        && lines[2].contains("\" access=fleet "))
    let usage = "usage=\"devices forget [UUID] [unused=DAYS] [dry-run=yes]\""
    #expect(lines[4].hasPrefix("* \"devices forget\" \(usage) access=admin "))
  }
}
