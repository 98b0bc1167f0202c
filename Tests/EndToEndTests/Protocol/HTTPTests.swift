import Foundation
import TestSupport
import Testing

/// HTTP requests to the socket, as a web page can make a browser send them. The lines of the page are not executed.
struct HTTPTests {
  private static let refusal = "ERR syntax this is an HTTP request, "
  private let daemon: DaemonUnderTest
  private let app: String
  private let installation: String

  init() throws {
    daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let words = try client.ask("whoami")[0].split(separator: " ")
    app = try String(#require(words.dropFirst().first))
    installation = try daemon.uuid("get installation")
    #expect(try client.ask("item put service=mail account=alice data=eA==") == ["OK created"])
  }

  /// Requests that the peer is allowed to make, each with a visible effect.
  private var page: String {
    """
    item put service=stolen account=a data=eA==
    item delete service=mail
    get vendor
    app forget \(app)

    """
  }

  /// Expects that no request of the page was executed.
  private func expectNothingDone(_ comment: Comment) throws {
    let client = try daemon.client()
    #expect(try client.statusValue("items") == "1", comment)
    #expect(try client.ask("item read service=mail account=alice")[0].hasPrefix("OK data=eA== "), comment)
    #expect(try client.ask("history vendor").last == "OK 0", comment)
    #expect(try client.ask("get installation")[0].hasPrefix("OK \(installation) "), comment)
  }

  @Test func `without an HTTP header before them, the lines of the page are executed`() throws {
    let client = try daemon.client()
    try client.send(page)
    try client.endWriting()
    let lines = try client.rest()
    #expect(lines.count == 4 && lines.allSatisfy { $0.hasPrefix("OK") }, "\(lines)")
    #expect(try daemon.uuid("get installation") != installation)
  }

  // MARK: curl

  /// Runs curl(1) against the socket with the page as standard input.
  private func curl(_ options: String...) throws -> (status: Int32, output: String, errors: String) {
    try run(
      ["curl", "--silent", "--show-error", "--max-time", "60", "--unix-socket", daemon.socket] + options
        + ["http://localhost/"], input: page)
  }

  @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS", "post", "patch", "FROB"])
  func `a request of curl is refused at its first lines, whatever its method`(method: String) throws {
    // An unknown method is refused as an unknown verb. The `Host:` field in the next line then ends the connection.
    let answer = try curl("--http0.9", "--request", method, "--data-binary", "@-")
    let lines = answer.output.split(separator: "\n")
    #expect(lines.last?.hasPrefix(Self.refusal) == true && lines.count == (method == "FROB" ? 2 : 1), "\(answer)")
    try expectNothingDone("\(method)")
  }

  @Test(arguments: [
    ["--http1.0"], ["--http1.1", "--header", "Host:"], ["--http2"], ["--http2-prior-knowledge"],
    ["--header", "Transfer-Encoding: chunked"], ["--header", "Host: a\r\nX-Forwarded-For: b"],
    ["--form", "page=<-"],
  ])
  func `no version and no form of HTTP gets a line of the page executed`(options: [String]) throws {
    let body = options.contains("--form") ? [] : ["--data-binary", "@-"]
    let answer = try run(
      ["curl", "--silent", "--max-time", "60", "--unix-socket", daemon.socket] + options + body
        + ["http://localhost/"], input: page)
    // curl fails because the refusal is not an HTTP response.
    #expect(answer.status != 0, "\(answer)")
    try expectNothingDone("\(options)")
  }

  // MARK: Bytes

  /// The first bytes of HTTP clients, and the beginnings of the replies before the refusal.
  private static let beginnings: [(bytes: String, before: [String])] = [
    ("POST / HTTP/1.1\r\n", []), ("post / HTTP/1.1\r\n", []), ("GET / HTTP/1.0\r\n", []), ("GET /?a=b HTTP/1.1\n", []),
    ("get /?a=b HTTP/1.1\n", []), ("GET device HTTP/1.1\r\n", []), ("PUT /\"a HTTP/1.1\r\n", []),
    ("PUT /a\\b\tc HTTP/1.1\r\n", []), ("HEAD /\u{e9} HTTP/1.1\r\n", []), ("DELETE http://a/ HTTP/1.1\r\n", []),
    ("CONNECT a:80 HTTP/1.1\r\n", []), ("OPTIONS * HTTP/1.1\r\n", []), ("TRACE / HTTP/1.1\r\n", []),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []), ("  POST / HTTP/1.1\r\n", []), ("\r\n\r\nPOST / HTTP/1.1\r\n", []),
    ("\nPATCH / HTTP/1.1\n", []), ("Host: localhost\r\n", []), ("host:localhost\n", []), ("HOST:\r\n", []),
    ("\r\nHost: [::1]:80\r\n", []), ("ping\r\nPOST / HTTP/1.1\r\n", ["OK"]),
    ("FROB / HTTP/1.1\r\nHost: a\r\n", ["ERR "]),
    ("POST / HTTP/\(String(repeating: "1", count: 60_000))\r\n", []),
  ]

  @Test(arguments: beginnings)
  func `nothing after a line of HTTP is executed, and the connection closes`(
    beginning: (bytes: String, before: [String])
  ) throws {
    let client = try daemon.client()
    try client.send(beginning.bytes + "Content-Length: \(page.utf8.count)\r\n\r\n" + page)
    let lines = try client.rest()
    #expect(lines.count == beginning.before.count + 1, "\(lines)")
    for (line, reply) in zip(lines, beginning.before + [Self.refusal]) { #expect(line.hasPrefix(reply), "\(line)") }
    try expectNothingDone("\(beginning.bytes.prefix(40))")
  }

  @Test func `a line of HTTP that arrives in pieces is refused too`() throws {
    let request = Array("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n\(page)".utf8)
    for place in [1, 4, 5, 10, 15, 16, 17, 20, 36, 40] {
      let client = try daemon.client()
      try client.send(Array(request[..<place]))
      // This answer comes after the daemon has read the first part.
      #expect(try daemon.ask("ping") == "OK")
      // A client that has already been refused may find the connection closed.
      try? client.send(Array(request[place...]))
      let lines = try client.rest()
      #expect(lines.count == 1 && lines[0].hasPrefix(Self.refusal), "\(place): \(lines)")
    }
    let client = try daemon.client()
    for byte in request { try? client.send([byte]) }
    let lines = try client.rest()
    #expect(lines.count == 1 && lines[0].hasPrefix(Self.refusal), "\(lines)")
    try expectNothingDone("in pieces")
  }

  @Test func `requests before a line of HTTP are executed and answered in order`() throws {
    let client = try daemon.client()
    let changes = 300
    let before = (0..<changes).map { "item put service=before account=\($0) data=eA==\nget installation\n" }.joined()
    try client.send(before + "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n" + page)
    let lines = try client.rest()
    #expect(lines.count == 2 * changes + 1)
    for pair in 0..<min(changes, lines.count / 2) {
      #expect(lines[2 * pair] == "OK created" && lines[2 * pair + 1].hasPrefix("OK \(installation) "))
    }
    #expect(lines.last?.hasPrefix(Self.refusal) == true)
    #expect(try daemon.client().ask("item delete service=before").last == "OK \(changes)")
    try expectNothingDone("in a pipeline")
  }

  // MARK: Lines that resemble HTTP

  @Test(arguments: [
    ("get key HTTP/1.1", "OK "), ("GET key HTTP/1.1", "OK "), ("get key \"POST / HTTP/1.1\"", "OK "),
    ("check \"GET / HTTP/1.1\"", "OK invalid"), ("version report \"1 HTTP/1.1\"", "OK "),
    ("item put service=\"POST / HTTP/1.1\" account=\"Host: a\" label=\"Host: b\" data=eA==", "OK created"),
    ("item find service=\"POST / HTTP/1.1\"", "ERR not-found "), ("item find HTTP/1.1", "ERR bad-argument "),
    ("frob / HTTP/1.1", "ERR unknown-verb "), ("POSTS / HTTP/1.1", "ERR unknown-verb "), ("POST", "ERR unknown-verb "),
    ("POST /", "ERR unknown-verb "), ("POST /HTTP/1.1", "ERR unknown-verb "), ("Host", "ERR unknown-verb "),
    ("Host :", "ERR unknown-verb "), ("\"Host:\" a", "ERR unknown-verb "), ("X-Host: a", "ERR unknown-verb "),
    ("\"POST\" / HTTP/1.1", "ERR unknown-verb "), ("get POST", "ERR bad-argument "),
  ])
  func `a request that only resembles HTTP is answered, and the connection continues`(
    request: (line: String, reply: String)
  ) throws {
    let client = try daemon.client()
    #expect(try client.ask(request.line).last?.hasPrefix(request.reply) == true, "\(request.line)")
    #expect(try client.ask("ping") == ["OK"])
  }
}
