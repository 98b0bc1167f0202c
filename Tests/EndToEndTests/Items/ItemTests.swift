import Foundation
import TestSupport
import Testing

/// Items over a real socket (identityd-protocol(7), section "ITEMS").
@Suite(.tags(.seldomThreads)) struct ItemTests {
  /// Returns the Base64 text that a client sends for these bytes.
  private func text(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  @Test func `an item can be added once, replaced, read, updated, found and deleted`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("item add service=web account=alice data=b25l label=\"my key\" attr.Kind=x") == ["OK"])
    #expect(try client.ask("item add service=web account=alice data=dHdv")[0].hasPrefix("ERR exists "))
    let read = try client.ask("item read service=web account=alice")[0]
    #expect(read.hasPrefix("OK data=b25l service=web account=alice group="))
    #expect(read.contains(" label=\"my key\" attr.kind=x created="))
    #expect(try client.ask("item put service=web account=alice data=dHdv") == ["OK replaced"])
    #expect(try client.ask("item put service=web account=bob data=dHdv attr.kind=x") == ["OK created"])
    #expect(try client.ask("item update service=web account=alice attr.kind=y label=L") == ["OK"])
    let found = try client.ask("item find attr.kind=y")
    #expect(found.count == 2 && found[0].hasPrefix("* service=web account=alice group=") && found[1] == "OK 1")
    #expect(!found[0].contains("data="))
    #expect(try client.ask("item find service=web").last == "OK 2")
    #expect(try client.ask("item find service=web limit=one").last == "OK 1")
    #expect(try client.ask("item read service=web account=alice")[0].hasPrefix("OK data=dHdv "))
    #expect(try client.ask("item delete")[0].hasPrefix("ERR bad-argument "))
    #expect(try client.ask("item delete service=web attr.kind=x") == ["OK 1"])
    #expect(try client.ask("item delete service=web") == ["OK 1"])
    for request in ["item delete service=web", "item find", "item read service=web account=alice"] {
      #expect(try client.ask(request)[0].hasPrefix("ERR not-found "))
    }
    #expect(try client.ask("item update service=web account=alice data=eA==")[0].hasPrefix("ERR not-found "))
  }

  @Test(arguments: [0, 1, 2, 3, 65_535, 65_536])
  func `a secret of any length is read back unchanged, even after a kill`(length: Int) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let secret = (0..<length).map { _ in UInt8.random(in: 0...255) }
    let data = text(secret).isEmpty ? "\"\"" : text(secret)
    #expect(try client.ask("item put service=s account=a data=\(data)") == ["OK created"])
    #expect(try client.ask("item read service=s account=a")[0].hasPrefix("OK data=\(data) service=s "))
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=\(data) service=s "))
  }

  @Test func `an item is read and updated by its attributes, and several are found with their secrets`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for (account, host) in [("alice", "mx1"), ("bob", "mx2"), ("carol", "mx2")] {
      let data = text(Array(account.utf8))
      #expect(
        try client.ask("item put service=mail account=\(account) data=\(data) attr.host=\(host)") == ["OK created"])
    }
    #expect(
      try client.ask("item read attr.host=mx1")[0].hasPrefix("OK data=\(text(Array("alice".utf8))) service=mail "))
    #expect(try client.ask("item read attr.host=mx2")[0].hasPrefix("ERR conflict "))
    #expect(try client.ask("item read attr.host=mx3")[0].hasPrefix("ERR not-found "))
    #expect(try client.ask("item update where.attr.host=mx1 data=eA== attr.host=mx3") == ["OK"])
    #expect(try client.ask("item update where.attr.host=mx2 label=l")[0].hasPrefix("ERR conflict "))
    // A reply with secrets is followed by nothing before it is read, and keeps the order of the requests.
    try client.send(
      "ping\nitem find data=yes service=mail\nitem put service=s account=a data=eA==\nitem find data=yes\n")
    #expect(try client.answer() == ["OK"])
    let found = try client.answer()
    #expect(found.count == 4 && found[3] == "OK 3")
    for (row, secret) in zip(found, ["x", "bob", "carol"]) {
      #expect(row.hasPrefix("* data=\(text(Array(secret.utf8))) service=mail account="), "\(row)")
    }
    #expect(try client.answer() == ["OK created"])
    #expect(try client.answer().last == "OK 4")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().ask("item find data=yes limit=one")[0].hasPrefix("* data=eA== service=mail "))
  }

  @Test func `secrets of 256 KiB are found at once, and one more byte is a limit`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let group = try client.ask("item add service=s account=a data=eA==") == ["OK"] ? "user:0".utf8.count : 0
    let secrets = (0..<4).map { number in
      [UInt8](repeating: UInt8(number), count: 65_536 - (number == 3 ? 4 * (group + 2) : 0))
    }
    for (account, secret) in zip(["a", "b", "c", "d"], secrets) {
      #expect(try client.ask("item put service=s account=\(account) data=\(text(secret))")[0].hasPrefix("OK "))
    }
    let found = try client.ask("item find data=yes")
    #expect(found.count == 5 && found[4] == "OK 4")
    for (row, secret) in zip(found, secrets) { #expect(row.hasPrefix("* data=\(text(secret)) service=s ")) }
    #expect(try client.ask("item update service=s account=d label=l") == ["OK"])
    #expect(try client.ask("item find data=yes")[0].hasPrefix("ERR limit "))
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test func `secrets found during a stream of updates are each of one edition`() throws {
    let daemon = try DaemonUnderTest().start()
    let (writer, reader) = (try daemon.client(), try daemon.client())
    func data(_ number: Int) -> String { text(Array("secret number \(number)".utf8)) }
    for account in ["a", "b", "c"] {
      #expect(
        try writer.ask("item put service=s account=\(account) data=\(data(0)) label=\(data(0))") == ["OK created"])
    }
    var requests = ""
    for number in 1...900 {
      requests +=
        "item put service=s account=\(["a", "b", "c"][number % 3]) data=\(data(number)) label=\(data(number))\n"
    }
    try writer.send(requests)
    var last: Set<String> = []
    var answers = 0
    while last != Set([898, 899, 900].map(data)), answers < 100_000 {
      let rows = try reader.ask("item find data=yes")
      try #require(rows.count == 4 && rows[3] == "OK 3", "\(rows)")
      last = []
      for words in rows.dropLast().map({ $0.split(separator: " ") }) {
        let secret = words[1].dropFirst("data=".count)
        try #require(secret == words.first { $0.hasPrefix("label=") }?.dropFirst("label=".count), "\(words)")
        last.insert(String(secret))
      }
      answers += 1
    }
    #expect(last == Set([898, 899, 900].map(data)))
  }

  @Test func `a secret that is too long or not Base64 is refused and changes nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let long = text([UInt8](repeating: 7, count: 65_537))
    #expect(try client.ask("item put service=s account=a data=\(long)")[0].hasPrefix("ERR limit "))
    for data in ["!!!!", "QUI", "QQ=", "Q", "QUJD====", "QUJD\\n", "QUJ"] {
      let answer = try client.ask("item put service=s account=a data=\"\(data)\"")[0]
      // Two characters for one byte and three for two bytes need no padding, but their unused bits must be zero.
      #expect(data == "QUI" ? answer.hasPrefix("OK ") : answer.hasPrefix("ERR bad-argument "), "\(data): \(answer)")
      #expect(!answer.contains(data))
    }
    #expect(try client.ask("item delete service=s") == ["OK 1"])
  }

  @Test func `pipelined requests see their own changes in order, secrets included`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    var requests = ""
    for number in 0..<300 {
      let data = text(Array("secret number \(number)".utf8))
      requests += "item put service=s account=a data=\(data) label=n\(number)\nitem read service=s account=a\n"
      requests += "item find label=n\(number)\n"
    }
    try client.send(requests)
    try client.endWriting()
    for number in 0..<300 {
      #expect(try client.answer() == [number == 0 ? "OK created" : "OK replaced"])
      let data = text(Array("secret number \(number)".utf8))
      let read = try client.answer()[0]
      #expect(read.hasPrefix("OK data=\(data) ") && read.contains(" label=n\(number) "), "\(read)")
      #expect(try client.answer().last == "OK 1")
    }
    #expect(try client.rest() == [])
  }

  @Test func `row 25e: a request that arrives byte by byte works as usual`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for byte in Array("item put service=s account=a data=aGVsbG8=\nitem read service=s account=a\n".utf8) {
      try client.send([byte])
    }
    #expect(try client.answer() == ["OK created"])
    #expect(try client.answer()[0].hasPrefix("OK data=aGVsbG8= "))
  }

  @Test func `a read during a stream of updates returns one consistent edition`() throws {
    let daemon = try DaemonUnderTest().start()
    let writer = try daemon.client()
    let reader = try daemon.client()
    func data(_ number: Int) -> String { text(Array("secret number \(number)".utf8)) }
    #expect(try writer.ask("item put service=s account=a data=\(data(0)) label=\(data(0))") == ["OK created"])
    var requests = ""
    for number in 1...1_500 { requests += "item put service=s account=a data=\(data(number)) label=\(data(number))\n" }
    try writer.send(requests)
    var last = ""
    var answers = 0
    while last != data(1_500), answers < 200_000 {
      let words = try reader.ask("item read service=s account=a")[0].split(separator: " ")
      try #require(words.count > 5 && words[0] == "OK", "\(words)")
      let secret = words[1].dropFirst("data=".count)
      // Base64 text may end with `=`, the sign between the name and the value of an attribute.
      let label = words.first { $0.hasPrefix("label=") }?.dropFirst("label=".count)
      try #require(secret == label, "\(words)")
      last = String(secret)
      answers += 1
    }
    #expect(last == data(1_500))
    for _ in 1...1_500 { #expect(try writer.answer() == ["OK replaced"]) }
  }

  @Test func `row 30: a quota error names the setting, and a reload changes the quotas`() throws {
    let configuration = "[Limits]\nItemsPerApp=2\nItemBytesPerApp=1K\n"
    let daemon = try DaemonUnderTest().start(configuration: configuration)
    let client = try daemon.client()
    #expect(try client.ask("item put service=s account=a data=eA==") == ["OK created"])
    #expect(try client.ask("item put service=s account=b data=eA==") == ["OK created"])
    #expect(try client.ask("item put service=s account=c data=eA==")[0].contains("ItemsPerApp="))
    let large = text([UInt8](repeating: 1, count: 1_100))
    #expect(try client.ask("item put service=s account=a data=\(large)")[0].contains("ItemBytesPerApp="))
    try daemon.configure("[Limits]\nItemsPerApp=3\nItemBytesPerApp=2K\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try client.ask("item put service=s account=a data=\(large)") == ["OK replaced"])
    #expect(try client.ask("item put service=s account=c data=eA==") == ["OK created"])
    #expect(try daemon.client().ask("status").contains("* items=3"))
  }

  @Test func `migrate can take its value from an item`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let value = "557e5958-d390-4cbf-b928-2a2b19a1399a"
    let data = text(Array(" 557E5958D3904CBFB9282A2B19A1399A\n".utf8))
    #expect(try client.ask("item put service=old account=id data=\(data)") == ["OK created"])
    #expect(
      try client.ask("migrate installation item=id service=old") == [
        "OK \(value) changed=yes committed=no previous=\"\""
      ])
    #expect(try client.ask("history installation") == ["OK 0"])
    #expect(
      try client.ask("migrate installation item=id service=old commit=yes") == [
        "OK \(value) changed=yes committed=yes previous=\"\""
      ])
    #expect(try client.ask("get installation")[0].hasPrefix("OK \(value) "))
    #expect(try client.ask("item put service=old account=no data=c2VjcmV0") == ["OK created"])
    let refusal = try client.ask("migrate device item=no service=old")[0]
    #expect(refusal.hasPrefix("ERR invalid-uuid ") && !refusal.contains("secret\""))
    #expect(try client.ask("migrate device item=none service=old")[0].hasPrefix("ERR not-found "))
  }
}

/// Access groups: which peer may use which item.
@Suite(.enabled(if: isRoot)) struct ItemGroupTests {
  private func install(_ daemon: DaemonUnderTest, _ app: String, _ text: String) throws {
    let folder = daemon.folder.appending(path: "apps")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data("[App]\n\(text)".utf8).write(to: folder.appending(path: "\(app).app"))
  }

  private func started() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest()
    try install(daemon, "org.example.player", "User=games\nAccessGroups=org.example.shared\n")
    try install(daemon, "org.example.editor", "User=news\nAccessGroups=org.example.shared\n")
    try install(daemon, "org.other.thief", "User=mail\n")
    return try daemon.start(configuration: "[Apps]\nDirectories=\(daemon.folder.path)/apps\n")
  }

  private static let games = 5
  private static let news = 9
  private static let mail = 8

  @Test func `row 40: only the apps of a group may use it, and a refusal names group, peer and grant`() throws {
    let daemon = try started()
    let player = try OtherUser(Self.games, of: daemon)
    let editor = try OtherUser(Self.news, of: daemon)
    let thief = try OtherUser(Self.mail, of: daemon)
    #expect(try player.ask("item put service=s account=a data=eA== group=org.example.shared") == "OK created\n")
    #expect(try player.ask("item put service=s account=own data=eA==") == "OK created\n")
    #expect(try editor.ask("item read service=s account=a group=org.example.shared").hasPrefix("OK data=eA== "))
    #expect(try editor.ask("item read service=s account=own").hasPrefix("ERR not-found "))
    #expect(try editor.ask("item find group=*").hasSuffix("OK 1\n"))
    let there = try thief.ask("item read service=s account=a group=org.example.shared")
    let absent = try thief.ask("item read service=s account=none group=org.example.shared")
    #expect(there == absent)
    #expect(there.hasPrefix("ERR denied org.other.thief (uid \(Self.mail)) lacks access group org.example.shared"))
    #expect(there.contains("AccessGroups="))
    for verb in ["item find", "item delete", "item find service=s"] {
      #expect(try thief.ask("\(verb) group=org.example.player").hasPrefix("ERR denied "))
    }
    #expect(try thief.ask("item find group=*").hasPrefix("ERR not-found "))
    #expect(try thief.ask("item delete service=s").hasPrefix("ERR not-found "))
    #expect(try daemon.client().ask("item find group=*").last == "OK 2")
    #expect(
      try daemon.client().ask("item read service=s account=own group=org.example.player")[0].hasPrefix("OK data="))
    for user in [player, editor, thief] { try user.end() }
  }

  @Test func `item events go only to peers that may use the group, and contain no secret`() throws {
    let daemon = try started()
    let editor = try OtherUser(Self.news, of: daemon)
    let thief = try OtherUser(Self.mail, of: daemon)
    for user in [editor, thief] { #expect(try user.ask("subscribe item").hasPrefix("OK ")) }
    let player = try OtherUser(Self.games, of: daemon)
    let data = Data("a secret of many words".utf8).base64EncodedString()
    #expect(try player.ask("item add service=s account=a data=\(data) group=org.example.shared") == "OK\n")
    #expect(try player.ask("item update service=s account=a label=x group=org.example.shared") == "OK\n")
    #expect(try player.ask("item delete service=s group=org.example.shared") == "OK 1\n")
    #expect(try player.ask("item add service=s account=private data=\(data)") == "OK\n")
    let events = try daemon.client().subscribe("item since=0")
    #expect(events.last?.hasPrefix("OK ") == true)
    let told = try editor.quit()
    for name in ["added", "updated", "deleted"] {
      #expect(told.contains(" item \(name) group=org.example.shared service=s account=a time="))
    }
    #expect(!told.contains("private") && !told.contains(data) && !told.contains("secret"))
    #expect(try thief.quit() == "OK\n")
    try player.end()
  }

  @Test func `uninstalling an app deletes only its items with lifetime=installation`() throws {
    let daemon = try started()
    let player = try OtherUser(Self.games, of: daemon)
    #expect(try player.ask("item add service=s account=a data=eA== lifetime=installation") == "OK\n")
    #expect(try player.ask("item add service=s account=b data=eA==") == "OK\n")
    try FileManager.default.removeItem(at: daemon.folder.appending(path: "apps/org.example.player.app"))
    try daemon.waitForLog("org.example.player is suspended")
    #expect(try player.ask("item read service=s account=b").hasPrefix("ERR not-found "))
    #expect(try daemon.client().ask("item find group=org.example.player").count == 3)
    #expect(try daemon.ask("app forget org.example.player") == "OK")
    #expect(try player.ask("item read service=s account=b").hasPrefix("ERR not-found "))
    let left = try daemon.client().ask("item find group=org.example.player")
    #expect(left.count == 2 && left[0].contains(" account=b "))
    try player.end()
  }
}
