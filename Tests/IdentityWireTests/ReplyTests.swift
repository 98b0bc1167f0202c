import Foundation
import IdentityCore
import IdentityWire
import Testing

private func lines(_ reply: Reply) -> [String] {
  var bytes: [UInt8] = []
  reply.append(to: &bytes)
  return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(
    String.init)
}

private let item = Item(
  key: ItemKey(group: "user:0", service: "mail", account: "alice"), number: 1, edition: UUID(high: 1, low: 2),
  owner: "user:0", label: "my mail", attributes: [], isThisDeviceOnly: false, endsWithInstallation: false,
  secretLength: 7, created: Timestamp(milliseconds: 0), modified: Timestamp(milliseconds: 0))

struct ReplyTests {
  @Test func `rows come first, then the final line, each with its line end`() {
    var reply = Reply()
    reply.row()
    reply.word(.text("a b"))
    reply.attribute("n", .number(-3))
    reply.attribute("left-out", nil)
    reply.ok()
    reply.word(.number(1))
    reply.attribute("flag", .yesOrNo(true))
    #expect(lines(reply) == ["* \"a b\" n=-3", "OK 1 flag=yes", ""])
  }

  @Test func `a reply written in pieces of any length or effort is the same`() throws {
    let reply = Reply.rows(Array(0..<20)) { (number: Int64, row) in
      row.word(.number(number))
      row.attribute("name", .text("a b"))
    }
    for length in 1..<200 {
      var bytes: [UInt8] = []
      var pieces = 1
      var rest = reply
      // An odd length has an effort of its own: the piece ends with the first bound reached.
      func piece() throws(Refusal) -> Bool {
        var effort = length % 2 == 0 ? Int.max : length % 7 + 1
        return try rest.appendPiece(to: &bytes, upTo: bytes.count + length, effort: &effort)
      }
      while try !piece() { pieces += 1 }
      #expect(String(decoding: bytes, as: UTF8.self).split(separator: "\n").count == 21)
      #expect(bytes == lines(reply).joined(separator: "\n").utf8.map(\.self))
      #expect(pieces > 1)
    }
  }

  @Test func `a reply without content is OK`() { #expect(lines(.done) == ["OK", ""]) }

  @Test func `whoami shows the facts of the kernel`() {
    let unit = PeerPlace(unit: "a\\x2db.service")
    let escaped = "\"unit:a\\\\x2db.service:998\""
    let peer = Peer(userID: 998, groupID: 997, processID: 42, place: unit, isAdmin: false)
    #expect(
      lines(.whoami(peer, vendor: peer.app, groups: [], rights: [])) == [
        "OK \(escaped) uid=998 gid=997 pid=42 unit=\"a\\\\x2db.service\" vendor=\(escaped) admin=no", "",
      ])
    let contained = Peer(
      userID: 0, groupID: 0, processID: 42, place: PeerPlace(unit: nil, container: "box"), isAdmin: true)
    #expect(
      lines(.whoami(contained, vendor: "v", groups: [], rights: []))
        == ["OK container:box uid=0 gid=0 pid=42 container=box vendor=v admin=no", ""])
  }

  @Test func `whoami shows the facts of the manifest, with the groups in one word`() {
    let peer = Peer(
      app: "org.a", userID: 0, groupID: 0, processID: 1, place: PeerPlace(), session: nil, isAdmin: true)
    #expect(
      lines(.whoami(peer, vendor: "org.v", groups: ["org.v.shared", "org.v.media"], rights: [.fleet])).first
        == "OK org.a uid=0 gid=0 pid=1 vendor=org.v groups=org.v.shared,org.v.media rights=fleet admin=yes")
  }

  @Test func `the secret of an item is written directly after OK`() throws {
    var reply = Reply()
    reply.ok()
    reply.secret(of: item)
    reply.attribute("service", .text("mail"))
    reply.attribute("label", .text("my mail"))
    #expect(lines(reply) == ["OK service=mail label=\"my mail\"", ""])
    var bytes = Array("OK\n".utf8)
    try reply.append(to: &bytes) { (_, output) throws(Refusal) in output += "aHVudGVyMg==".utf8 }
    try reply.append(to: &bytes) { (_, _) throws(Refusal) in }
    #expect(
      String(decoding: bytes, as: UTF8.self) == """
        OK
        OK data=aHVudGVyMg== service=mail label="my mail"
        OK data="" service=mail label="my mail"

        """)
  }

  @Test func `each row has the secret of its item, and a locked one has none`() throws {
    var reply = Reply()
    for length in [3, nil, 0] {
      var item = item
      item.secretLength = length ?? 0
      reply.row()
      if length != nil { reply.secret(of: item) }
      reply.attribute("service", .text("a b\u{1}"))
    }
    reply.ok()
    reply.word(.number(3))
    var bytes: [UInt8] = []
    try reply.append(to: &bytes) { (item, output) throws(Refusal) in
      output += String(repeating: "eHh4", count: item.secretLength / 3).utf8
    }
    let service = "service=\"a b\\u0001\""
    #expect(
      String(decoding: bytes, as: UTF8.self) == """
        * data=eHh4 \(service)
        * \(service)
        * data="" \(service)
        OK 3

        """)
    #expect(bytes.count <= reply.longestLength)
  }

  @Test(arguments: 0..<4)
  func `no answer is longer than the room that is reserved for it`(length: Int) throws {
    var reply = Reply()
    var item = item
    item.secretLength = length
    reply.row()
    reply.secret(of: item)
    reply.attribute("a", .text(Text(String(repeating: "\u{1}", count: 50))))
    reply.attribute("b", .string(String(repeating: "\u{1f}", count: 50)))
    reply.attribute("c", .time(Timestamp(milliseconds: 253_402_300_799_999)))
    reply.attribute("d", .uuid(UUID(high: .max, low: .max)))
    reply.ok()
    reply.word(.number(.min))
    reply.word(.yesOrNo(true))
    var bytes: [UInt8] = []
    try reply.append(to: &bytes) { (_, output) throws(Refusal) in
      output += Data(repeating: 1, count: length).base64EncodedString().utf8
    }
    #expect(bytes.count <= reply.longestLength && reply.longestLength < bytes.count + 32)
  }

  @Test func `nothing is written of a reply whose secret cannot be read`() {
    var reply = Reply()
    reply.ok()
    reply.secret(of: item)
    reply.attribute("service", .text("mail"))
    var bytes = Array("OK\n".utf8)
    #expect(throws: Refusal.broken("it is damaged")) {
      try reply.append(to: &bytes) { (_, output) throws(Refusal) in
        output += "aHVu".utf8
        throw .broken("it is damaged")
      }
    }
    #expect(bytes == Array("OK\n".utf8))
  }

  @Test func `a reply without an item requests no secret`() throws {
    var reply = Reply()
    reply.row()
    reply.word(.number(1))
    reply.ok()
    var bytes: [UInt8] = []
    try reply.append(to: &bytes) { (_, _) throws(Refusal) in throw .broken("it was asked for") }
    #expect(bytes == Array("* 1\nOK\n".utf8))
  }

  @Test(arguments: [
    ("557E5958D3904CBFB9282A2B19A1399A", "OK valid 557e5958-d390-4cbf-b928-2a2b19a1399a"),
    ("00000000-0000-0000-0000-000000000000", "OK valid 00000000-0000-0000-0000-000000000000"),
    ("ffffffffffffffffffffffffffffffff", "OK valid ffffffff-ffff-ffff-ffff-ffffffffffff"),
    ("x", "OK invalid"), ("", "OK invalid"),
  ])
  func `check tells whether a text is a UUID, and its canonical form`(text: String, expected: String) {
    #expect(lines(.check(Text(text))).first == expected)
  }

  @Test func `a written reply is read back unchanged`() throws {
    var reply = Reply()
    reply.ok()
    reply.word(.text("two words"))
    reply.word(.text("a=b"))
    reply.attribute("name", .text("line\nfeed \"quoted\" \u{85}"))
    let line = try #require(lines(reply).first)
    guard case .ok(let content)? = ReplyLine(Array(line.utf8)) else {
      Issue.record("\(line) was not read as OK")
      return
    }
    #expect(content.words == ["two words", "a=b"])
    #expect(content.attributes.map(\.name) == ["name"])
    #expect(content.attributes.map(\.value) == ["line\nfeed \"quoted\" \u{85}"])
  }

  @Test func `an error is read as its code and text`() {
    #expect(ReplyLine(Array("ERR not-found no such app".utf8)) == .error(code: "not-found", text: "no such app"))
  }

  @Test func `an event is read as its number, topic, name and attributes`() throws {
    let line = "EVENT 44 token replaced app=org.example.player provider=\"f c\" time=2026-11-21T08:39:12.345Z"
    guard case .event(44, let content)? = ReplyLine(Array(line.utf8)) else {
      Issue.record("\(line) was not read as event 44")
      return
    }
    #expect(content.words == ["token", "replaced"])
    #expect(content.attributes.map(\.name) == ["app", "provider", "time"])
    #expect(content.attributes.map(\.value) == ["org.example.player", "f c", "2026-11-21T08:39:12.345Z"])
  }

  @Test(arguments: [
    "EVENT", "EVENT x device", "EVENT =1", "EVENT a=1", "EVENT 99999999999999999999 x", "event 1 x", "EVENT \"\" x",
  ])
  func `an event without a number is refused`(line: String) {
    #expect(ReplyLine(Array(line.utf8)) == nil)
  }

  @Test(arguments: ["", "HELLO", "OKAY", "a=b", "\"OK", "EVENTS 1 x"])
  func `a line that is not the protocol is refused`(line: String) {
    #expect(ReplyLine(Array(line.utf8)) == nil)
  }
}
