import Foundation
import TestSupport
import Testing

/// Copies of secrets. Only the store keeps a secret, in encrypted form.
struct ItemSecrecyTests {
  /// A secret of random letters, with pieces of the secret and of its Base64 text that are too long to occur by chance.
  private struct Marked {
    let data: String
    let marks: [[UInt8]]

    init(length: Int = 96) {
      let secret = (0..<length).map { _ in
        UInt8(ascii: "abcdefghijkmnpqrstuvwxyz".unicodeScalars.randomElement() ?? "a")
      }
      data = Data(secret).base64EncodedString()
      marks = [Array(secret[40..<64]), Array(Array(data.utf8)[48..<72])]
    }
  }

  private func contains(_ haystack: Data, _ marks: [[UInt8]]) -> Bool {
    marks.contains { haystack.range(of: Data($0)) != nil }
  }

  @Test(.enabled(if: isRoot)) func `row 42c: no copy of a secret is left in the daemon's memory`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let whole = Marked()
    #expect(try client.ask("item put service=s account=a data=\(whole.data)") == ["OK created"])
    #expect(try client.ask("item read service=s account=a")[0].contains(whole.data))
    #expect(try client.ask("item update service=s account=a label=x") == ["OK"])
    #expect(try client.ask("item read service=s account=a")[0].contains(whole.data))
    let torn = Marked(length: 20_000)
    let request = Array("item put service=s account=b data=\(torn.data) attr.x=y\n".utf8)
    for start in stride(from: 0, to: request.count, by: 1_000) {
      try client.send(Array(request[start..<min(start + 1_000, request.count)]))
      usleep(2_000)
    }
    #expect(try client.answer() == ["OK created"])
    let escaped = Marked()
    let data = escaped.data.replacing("/", with: "\\/")
    #expect(try client.ask("item put account=c data=\"\(data)\" service=s") == ["OK created"])
    let pipelined = Marked()
    let requests = (0..<50).map {
      "item put service=s account=p\($0) data=\(pipelined.data)\nitem read service=s account=p\($0)\n"
    }
    try client.send(requests.joined())
    for _ in 0..<50 {
      #expect(try client.answer() == ["OK created"])
      #expect(try client.answer()[0].contains(pipelined.data))
    }
    let found = Marked()
    for account in ["f1", "f2"] {
      #expect(try client.ask("item put service=f account=\(account) data=\(found.data)") == ["OK created"])
    }
    #expect(try client.ask("item find service=f data=yes").filter { $0.contains(found.data) }.count == 2)
    #expect(try client.ask("item read account=f1 label=\"\"")[0].contains(found.data))
    let refused = Marked()
    for bad in [
      "item find service=f data=\(refused.data)",
      "item put service=s data=\(refused.data)", "item put service=s account=a data=\(refused.data)!",
      "item put service=s account=a dat=\(refused.data)", "item put service=s account=a \(refused.data)",
      "item add service=s account=a data=\(refused.data)", "\(refused.data) item", "item put \"\(refused.data)",
    ] {
      #expect(try client.ask(bad)[0].hasPrefix("ERR "))
    }
    let unfinished = Marked()
    try daemon.client().send("item put service=s account=u data=\(unfinished.data)")
    // Only the first connection and the one for `status` remain: the daemon has discarded the unfinished request.
    try daemon.waitForStatus("connections", "2")
    let memory = try daemon.memory()
    #expect(memory.count > 1_000_000)
    for (name, marked) in [
      ("whole", whole), ("torn", torn), ("escaped", escaped), ("pipelined", pipelined), ("unfinished", unfinished),
      ("refused", refused), ("found", found),
    ] {
      #expect(!contains(memory, marked.marks), "\(name)")
    }
  }

  @Test
  func `rows 42c and 42d: neither state nor log contains a secret, a label or an attribute in clear text`() throws {
    let daemon = try DaemonUnderTest().start(["--log-level=debug"])
    let client = try daemon.client()
    let (secret, label, name, value) = (Marked(), Marked(), Marked(), Marked())
    let attribute = String(decoding: name.marks[0], as: UTF8.self)
    let described = "label=\(label.data) attr.\(attribute)=\(value.data)"
    func expectSealed() throws {
      let marks = secret.marks + [Array(label.data.utf8.prefix(40)), name.marks[0], Array(value.data.utf8.prefix(40))]
      for file in try FileManager.default.contentsOfDirectory(at: daemon.state, includingPropertiesForKeys: nil) {
        #expect(!contains(try Data(contentsOf: file), marks), "\(file.lastPathComponent)")
      }
      #expect(!contains(Data(daemon.log.utf8), marks))
    }
    #expect(try client.ask("item add service=s account=a data=\(secret.data) \(described)") == ["OK"])
    try expectSealed()
    #expect(try client.ask("item put service=s account=b data=\(secret.data) \(described)") == ["OK created"])
    #expect(try client.ask("item find attr.\(attribute)=\(value.data)").last == "OK 2")
    #expect(try client.ask("item update service=s account=a data=eA== attr.\(attribute)=\"\" label=\"\"") == ["OK"])
    #expect(try client.ask("item delete account=b") == ["OK 1"])
    try expectSealed()
    daemon.end()
    try expectSealed()
    try daemon.start()
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=eA== "))
    try expectSealed()
  }
}
