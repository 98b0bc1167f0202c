import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import Testing

struct JSONOutputTests {
  /// Returns the document of an answer to a request.
  private func document(_ lines: String..., to request: String, _ format: UUIDFormat = .hyphen) throws -> String {
    var rows: [ReplyLine.Content] = []
    for line in lines.dropLast() {
      guard case .row(let row)? = ReplyLine(Array(line.utf8)) else { throw NoReply(line: line) }
      rows.append(row)
    }
    guard let last = lines.last, let final = ReplyLine(Array(last.utf8)) else { throw NoReply(line: "") }
    let answer = DaemonConnection.Answer(rows: rows, final: final)
    let text = JSONOutput(format).document(answer, to: request.split(separator: " ").map(String.init))
    #expect(text.hasSuffix("\n"))
    return String(text.dropLast())
  }

  private struct NoReply: Error { let line: String }

  private static let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  @Test func `a final line is an object with the names of its words and attributes`() throws {
    #expect(
      try document("OK \(Self.uuid) level=device created=2026-11-21T08:39:12.345Z origin=machine", to: "get device")
        == #"{"uuid":"\#(Self.uuid)","level":"device","created":"2026-11-21T08:39:12.345Z","origin":"machine"}"#)
    #expect(try document("OK", to: "ping") == "{}")
    #expect(try document("OK 3", to: "item delete service=a") == #"{"deleted":3}"#)
  }

  @Test func `rows are an array of objects, also if there are none`() throws {
    #expect(
      try document("* \(Self.uuid) self=yes", "* \(Self.uuid) self=no name=\"my pad\"", "OK 2", to: "devices")
        == #"[{"uuid":"\#(Self.uuid)","self":true},{"uuid":"\#(Self.uuid)","self":false,"name":"my pad"}]"#)
    #expect(try document("OK 0", to: "app list") == "[]")
  }

  @Test(arguments: [
    ("get uuid", "OK \(uuid)", #"{"uuid":"\#(uuid)"}"#),
    ("get uuid COUNT=1", "* \(uuid)|OK 1", #"[{"uuid":"\#(uuid)"}]"#),
    ("renew device dry-run=yes", "OK 0", "[]"),
    ("app forget user:1", "OK", "{}"),
    ("app forget unused=1", "* user:1|OK 1 left=0", #"{"count":1,"left":0,"apps":[{"app":"user:1"}]}"#),
    ("Get Device", "OK \(uuid)", #"{"uuid":"\#(uuid)"}"#),
  ])
  func `the attributes of the request choose between two answers`(request: String, answer: String, expected: String)
    throws
  {
    let lines = answer.split(separator: "|").map(String.init)
    let text = try lines.count == 1 ? document(lines[0], to: request) : document(lines[0], lines[1], to: request)
    #expect(text == expected)
  }

  @Test(arguments: [
    ("protocol=1", "1"), ("protocol=-1.5e3", "-1.5e3"), ("protocol=01", #""01""#), ("protocol=0x1", #""0x1""#),
    ("protocol=\"\"", #""""#), ("protocol=NaN", #""NaN""#), ("protocol=1.", #""1.""#),
    ("protocol=-0", "-0"), ("protocol=0E+1", "0E+1"), ("protocol=+1", #""+1""#), ("protocol=-", #""-""#),
    ("protocol=1e", #""1e""#), ("protocol=1e+", #""1e+""#), ("protocol=1e5x", #""1e5x""#),
  ])
  func `a number is a number of JSON, and another text is a string`(attribute: String, expected: String) throws {
    #expect(
      try document("OK identityd 1 \(attribute)", to: "hello")
        == #"{"program":"identityd","version":"1","protocol":\#(expected)}"#)
  }

  @Test func `booleans, lists, empty values and prefixed attributes have the forms of JSON`() throws {
    #expect(
      try document("OK user:1 uid=1 gid=2 pid=3 vendor=v groups=a,b admin=maybe", to: "whoami")
        == #"{"app":"user:1","uid":1,"gid":2,"pid":3,"vendor":"v","groups":["a","b"],"admin":"maybe"}"#)
    #expect(
      try document("OK \(Self.uuid) previous=\"\"", to: "renew device")
        == #"{"uuid":"\#(Self.uuid)","previous":null}"#)
    #expect(
      try document("* service=s attr.a=1 label=\"\" attr.service=x", "OK 1", to: "item find")
        == #"[{"service":"s","attributes":{"a":"1","service":"x"},"label":""}]"#)
  }

  @Test func `words and attributes of a later daemon are strings`() throws {
    #expect(
      try document("OK less 7 new=1 order=x", to: "version compare 1 2")
        == #"{"order":"less","words":["7"],"new":"1"}"#)
    #expect(try document("* a b=1", "OK 1", to: "later verb") == #"[{"words":["a"],"b":"1"}]"#)
    #expect(try document("OK a b=1", to: "later verb") == #"{"words":["a"],"b":"1"}"#)
  }

  @Test func `status is one object, and rows that repeat are an array`() throws {
    #expect(
      try document(
        "* version=1", "* uptime=5", "* sealed=yes", "* manifest-folder=/a", "* manifest-folder=/b", "* new=x",
        "* newer=1", "* newer=2", "OK",
        to: "status")
        == #"{"version":"1","uptime":5,"sealed":true,"manifest-folder":["/a","/b"],"new":"x","newer":["1","2"]}"#)
    #expect(try document("* manifest-fault=x", "OK", to: "status") == #"{"manifest-fault":["x"]}"#)
  }

  @Test func `stats is one object, and metrics with labels are an array`() throws {
    #expect(
      try document(
        "* start-time-seconds=1.5", "* requests=3 verb=\"get device\" outcome=ok", "* requests=1 verb=ping outcome=ok",
        "* commit-seconds=2 sum=0.5 le.0.001=1 le.1.0=2", "* later=1 label=x", "OK", to: "stats")
        == #"{"start-time-seconds":1.5,"requests":[{"verb":"get device","outcome":"ok","value":3},"#
        + #"{"verb":"ping","outcome":"ok","value":1}],"#
        + #""commit-seconds":{"count":2,"sum":0.5,"buckets":{"0.001":1,"1.0":2}},"later":[{"later":"1","label":"x"}]}"#)
  }

  @Test func `an error is an object with its code and its message`() throws {
    #expect(
      try document("ERR not-found no \"x\" \u{202e}", to: "get device")
        == #"{"error":{"code":"not-found","message":"no \"x\" \u202e"}}"#)
  }

  @Test func `--format applies to UUIDs and not to other words`() throws {
    #expect(
      try document("OK \(Self.uuid) device=\(Self.uuid)", to: "token get fcm", .plain)
        == #"{"token":"\#(Self.uuid)","device":"557e5958d3904cbfb9282a2b19a1399a"}"#)
  }
}
