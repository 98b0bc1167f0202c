import Foundation
import IdentityCore
import TestSupport
import Testing

/// Connections that look like systemd's for `LoadCredential=`, outside of a service. SystemTests have those of systemd.
struct CredentialRequestTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest().start() }

  private func request(_ name: String) throws -> Client {
    let client = try Client(daemon.socket, from: name)
    try client.endWriting()
    return client
  }

  @Test(.enabled(if: isRoot, "only root can be a service manager"))
  func `root outside of the service gets no secret, and an answer that makes a start fail`() throws {
    let item = "item put service=credential account=secret group=unit:web.service data=eA=="
    #expect(try daemon.client().ask(item) == ["OK created"])
    let answer = try request("\(UUID().uuidString.prefix(4).lowercased())/unit/web.service/secret").zeros()
    #expect(answer.count == Bound.failingAnswer && answer.areAll)
    try daemon.waitForLog(
      "A connection was refused: for a credential of web.service: user:0 (uid 0) lacks the control group")
  }

  @Test(.enabled(if: isRoot, "only root can be a service manager"))
  func `eight failing answers are sent at a time, and others wait`() throws {
    // None of them is read.
    var sending = try (1...Bound.failingAnswersAtOnce).map { try request("a\($0)/unit/web.service/\(UUID())") }
    try wait("each has its beginning") { sending.allSatisfy(\.hasInput) }
    let next = try request("b/unit/web.service/\(UUID())")
    let last = try request("c/unit/web.service/\(UUID())")
    // A client that goes while it waits leaves nothing.
    let count = { try daemon.client().statusValue("connections") }
    let before = try count()
    do {
      let gone = try request("d/unit/web.service/\(UUID())")
      try wait("it is there") { try count() != before }
      #expect(!gone.hasInput)
    }
    try wait("it has gone") { try count() == before }
    // Requests of other connections are answered meanwhile.
    #expect(try daemon.client().ask("check x") == ["OK invalid"])
    #expect(!next.hasInput && !last.hasInput)
    // A client that goes makes room, and so does one that reads.
    sending.removeFirst()
    #expect(try next.zeros().count == Bound.failingAnswer)
    #expect(try last.zeros().count == Bound.failingAnswer)
    for client in sending { #expect(try client.zeros().count == Bound.failingAnswer) }
  }

  @Test(.enabled(if: isRoot, "only root can be a service manager"))
  func `clients that do not read make another one wait for a time only`() throws {
    let stuck = try (1...Bound.failingAnswersAtOnce).map { try request("f\($0)/unit/web.service/\(UUID())") }
    try wait("each has its beginning") { stuck.allSatisfy(\.hasInput) }
    #expect(try request("f9/unit/web.service/\(UUID())").zeros().count == Bound.failingAnswer)
    // Their answers are cut.
    for client in stuck { #expect(try client.zeros().count < Bound.failingAnswer) }
  }

  @Test(.enabled(if: isRoot, "only root can be a service manager"))
  func `a request beyond the bound of connections gets no text for a secret`() throws {
    daemon.end()
    try daemon.start(configuration: "[Limits]\nConnections=32\nReservedConnections=1\n")
    var clients: [Client] = []
    while true {
      let client = try daemon.client()
      guard try client.ask("check x") == ["OK invalid"] else { break }
      clients.append(client)
    }
    #expect(clients.count == 32)
    #expect(try request("e/unit/web.service/\(UUID())").zeros().count == Bound.failingAnswer)
    // Any other connection is refused.
    #expect(try daemon.client().rest().first?.hasPrefix("ERR busy") == true)
  }

  @Test(arguments: ["0123456789abcdef0/unit/a.service/b", "A/unit/a.service/b", "/unit/a.service/b", "a/unit/b", "a"])
  func `another name gets no answer`(name: String) throws {
    #expect(try request(name).zeros().count == 0)
  }

  @Test func `a connection that has made a request is no request for a credential`() throws {
    let client = try Client(daemon.socket, from: "d/unit/web.service/\(UUID())")
    #expect(try client.ask("check x") == ["OK invalid"])
    try client.endWriting()
    #expect(try client.zeros().count == 0)
  }

  @Test(.enabled(if: isRoot, "only root can become another user"))
  func `a process that is no service manager is refused`() throws {
    let script = """
      import socket, sys
      client = socket.socket(socket.AF_UNIX)
      client.bind(b"\\0e/unit/web.service/" + sys.argv[2].encode())
      client.connect(sys.argv[1])
      client.shutdown(socket.SHUT_WR)
      print(client.recv(65536).decode(), end="")
      """
    let answer = try run(
      [
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, daemon.socket,
        "\(UUID())",
      ])
    #expect(
      answer.output.hasPrefix("ERR denied user:65534 (uid 65534) lacks the control group of web.service"), "\(answer)")
  }

  @Test(arguments: ["{\"method\":\"org.varlink.service.GetInfo\"}\0", "{\"jsonrpc\":\"2.0\"}\nget device\n", "{"])
  func `a connection that begins with a JSON object is refused`(text: String) throws {
    let client = try daemon.client()
    try client.send(text)
    let lines = try client.rest()
    #expect(lines.count == 1 && lines[0].hasPrefix("ERR syntax this is a JSON object, "), "\(lines)")
  }

  @Test func `a brace in a later line ends no connection`() throws {
    let client = try daemon.client()
    #expect(try client.ask("check x") == ["OK invalid"])
    #expect(try client.ask("{\"a\":1}")[0].hasPrefix("ERR syntax misplaced quote"))
    #expect(try client.ask("check x") == ["OK invalid"])
  }
}
