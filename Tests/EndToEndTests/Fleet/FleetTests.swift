import Foundation
import TestSupport
import Testing

/// The verbs of the fleet's service, with a real daemon (identityd-protocol(7), section "The fleet").
@Suite(.enabled(if: isRoot, "the verbs are for admins")) struct FleetTests {
  private func open(_ digit: Int) -> String { "fleet open run=\(String(repeating: "\(digit)", count: 32))" }

  @Test func `one connection at a time has the fleet open`() throws {
    let daemon = try DaemonUnderTest().start()
    let stranger = try PeerConnection(8, of: daemon)
    #expect(try stranger.ask(open(1))[0].hasPrefix("ERR denied "))
    let first = try daemon.client()
    let second = try daemon.client()
    #expect(try first.ask(open(2)).last?.hasPrefix("OK ") == true)
    let conflict = ["ERR conflict another connection has the fleet open; stop the other program first"]
    #expect(try second.ask(open(3)) == conflict)
    // The answer to a request in one packet with a change keeps its place.
    try second.send("devices name desk\n\(open(3))\nping\n")
    #expect(try [second.answer(), second.answer(), second.answer()] == [["OK"], conflict, ["OK"]])
    #expect(try first.ask(open(4)).first == "* run \(String(repeating: "2", count: 32))")
    #expect(try first.ask("quit") == ["OK"])
    let deadline = Date(timeIntervalSinceNow: patience)
    while try second.ask(open(3)) == conflict, Date() < deadline { usleep(5_000) }
    #expect(try second.ask(open(3)).dropLast() == [4, 2].map { "* run \(String(repeating: "\($0)", count: 32))" })
  }

  @Test func `a connection whose opening was refused does not have the fleet open`() throws {
    let daemon = try DaemonUnderTest().start()
    let (first, second) = (try daemon.client(), try daemon.client())
    #expect(try first.ask(open(1)).last?.hasPrefix("OK ") == true)
    #expect(try first.ask("seal") == ["OK"])
    // The earlier opening still holds.
    #expect(try first.ask(open(2))[0].hasPrefix("ERR unavailable "))
    #expect(try second.ask(open(3))[0].hasPrefix("ERR conflict "))
    #expect(try first.ask("quit") == ["OK"])
    let deadline = Date(timeIntervalSinceNow: patience)
    while try second.ask(open(3))[0].hasPrefix("ERR conflict "), Date() < deadline { usleep(5_000) }
    #expect(try second.ask(open(3))[0].hasPrefix("ERR unavailable "))
    #expect(try daemon.ask(open(4)).hasPrefix("ERR unavailable "))
  }

  @Test func `no counter is given out twice, however the daemon ends`() throws {
    let daemon = try DaemonUnderTest().start()
    var last = 0
    for _ in 1...4 {
      let client = try daemon.client()
      #expect(try client.ask(open(1)).last?.contains(" generation=0 counter=\(last) ") == true)
      for _ in 1...5 {
        let counter = try #require(try client.ask("fleet next").last.flatMap { Int($0.dropFirst("OK ".count)) })
        #expect(counter == last + 1)
        last = counter
      }
      daemon.end(with: SIGKILL)
      try daemon.start()
    }
    #expect(try daemon.ask("fleet next above=1000") == "OK 1001")
    daemon.end()
    try daemon.start()
    #expect(try daemon.ask("fleet next") == "OK 1002")
    for wrong in [
      "fleet next above=9223372036854775807", "fleet next above=-1", "fleet open",
      "fleet open run=\(String(repeating: "g", count: 32))", "fleet open run=557e5958-d390-4cbf-b928-2a2b19a1399a",
    ] {
      #expect(try daemon.ask(wrong).hasPrefix("ERR bad-argument "), "\(wrong)")
    }
  }

  private static let phone = "11111111-1111-4111-8111-111111111111"
  private static let laptop = "22222222-2222-4222-8222-222222222222"

  @Test func `records outlive a killed daemon, together with the list and the events`() throws {
    let daemon = try DaemonUnderTest().start()
    let stranger = try PeerConnection(8, of: daemon)
    let first = "devices put \(Self.phone) generation=1 counter=1 record=AAAA name=phone"
    for denied in [first, "devices remove \(Self.phone) generation=1 counter=1 record=AAAA", "fleet records"] {
      #expect(try stranger.ask(denied)[0].hasPrefix("ERR denied "), "\(denied)")
    }
    #expect(try daemon.ask(first) == "OK added")
    #expect(try daemon.ask("devices put \(Self.laptop) generation=2 counter=7 record=AAAB suspect=yes") == "OK added")
    #expect(try daemon.ask("devices remove \(Self.phone) generation=1 counter=2 record=AAAC") == "OK")
    let answers = try ["fleet records", "devices", "status"].map { try records(daemon, $0) }
    #expect(
      answers[0] == [
        "* \(Self.phone) generation=1 counter=2 gone=yes record=AAAC",
        "* \(Self.laptop) generation=2 counter=7 gone=no record=AAAB", "OK 2",
      ])
    #expect(answers[1].count == 2 && answers[1][0].hasSuffix(" suspect=yes"))
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try ["fleet records", "devices", "status"].map { try records(daemon, $0) } == answers)
    #expect(try daemon.ask("devices put \(Self.phone) generation=1 counter=9 record=AAAD").hasPrefix("ERR conflict "))
    #expect(try daemon.ask("devices put \(Self.laptop) generation=2 counter=7 record=AAAB") == "OK same")
    #expect(try daemon.ask("fleet records after=\(Self.phone) limit=1").hasPrefix("OK 1"))
  }

  /// Returns an answer; of `status` only the rows about devices and events.
  private func records(_ daemon: DaemonUnderTest, _ request: String) throws -> [String] {
    let answer = try daemon.client().ask(request)
    return request == "status" ? answer.filter { $0.hasPrefix("* last-event=") || $0.hasPrefix("* devices=") } : answer
  }

  @Test func `between messages of one counter the greater SHA-256 decides`() throws {
    // printf %s AAAA | base64 -d | sha256sum, and so on.
    let ascending = ["AAAB", "AAAA", "AAAC"].sorted {
      Self.digest(of: $0).lexicographicallyPrecedes(Self.digest(of: $1))
    }
    let daemon = try DaemonUnderTest().start()
    func put(_ message: String) throws -> String {
      try daemon.ask("devices put \(Self.phone) generation=1 counter=1 record=\(message)")
    }
    #expect(try put(ascending[1]) == "OK added")
    #expect(try put(ascending[0]).hasPrefix("ERR conflict "))
    #expect(try put(ascending[1]) == "OK same")
    #expect(try put(ascending[2]) == "OK changed")
    #expect(try put(ascending[1]).hasPrefix("ERR conflict "))
  }

  /// Returns the SHA-256 of the bytes that a text in Base64 stands for, as `sha256sum` prints it.
  private static func digest(of text: String) -> String {
    let program = Process()
    let output = Pipe()
    program.executableURL = URL(filePath: "/bin/sh")
    program.arguments = ["-c", "printf %s '\(text)' | base64 -d | sha256sum"]
    program.standardOutput = output
    do { try program.run() } catch { return "\(error)" }
    program.waitUntilExit()
    return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  @Test func `a backup has the records, and a restore never lowers one`() throws {
    let daemon = try DaemonUnderTest().start()
    let longest = String(repeating: "+/+/", count: 1_338) + "AAA="
    #expect(try daemon.ask("account set alice") == "OK")
    for request in [
      "put \(Self.phone) generation=1 counter=1 record=\(longest) name=phone",
      "remove \(Self.laptop) generation=1 counter=18446744073709551615 record=AAAC",
    ] {
      #expect(try daemon.ask("devices \(request)").hasPrefix("OK"))
    }
    #expect(try daemon.ask("fleet next above=41") == "OK 42")
    let before = try records(daemon, "fleet records")
    let backup = try daemon.backup()
    #expect(try daemon.ask("devices put \(Self.phone) generation=1 counter=2 record=AAAA") == "OK changed")
    let later = try records(daemon, "fleet records")
    _ = try daemon.restore(backup)
    #expect(try records(daemon, "fleet records") == later && later != before)
    let other = try DaemonUnderTest().start()
    let answer = try other.restore(backup)
    #expect(answer.contains("* devices added value=\(Self.phone)") && answer.contains("* fleet restored counter=42"))
    #expect(try records(other, "fleet records") == before)
    #expect(try other.ask("account clear") == "OK")
    #expect(try records(other, "fleet records") == ["OK 0"])
    #expect(try other.ask("fleet next") == "OK 43")
  }

  @Test func `status shows what the fleet's service said until its connection ends`() throws {
    let daemon = try DaemonUnderTest().start()
    func told() throws -> [String] { try daemon.client().ask("status").filter { $0.hasPrefix("* fleet") } }
    let client = try daemon.client()
    #expect(try told() == ["* fleet=none"])
    #expect(try client.ask("fleet said state=live")[0].hasPrefix("ERR conflict "))
    #expect(try client.ask(open(1)).last?.hasPrefix("OK ") == true)
    #expect(try told() == ["* fleet=open"])
    #expect(try client.ask("fleet said state=waiting said.broker=\"a b\" said.reason=refused") == ["OK"])
    #expect(try told() == ["* fleet=waiting", "* fleet-said=\"broker=a b\"", "* fleet-said=reason=refused"])
    #expect(try daemon.ask("fleet said state=live").hasPrefix("ERR conflict "))
    let names = (1...16).map { "said.n\($0)=\(String(repeating: "x", count: 255))" }
    #expect(try client.ask("fleet said \(names.joined(separator: " "))") == ["OK"])
    #expect(try told().count == 17 && told()[0] == "* fleet=open")
    for wrong in [
      "said.n17=x \(names.joined(separator: " "))", "said.a=\(String(repeating: "x", count: 256))", "said.=x",
    ] {
      #expect(try client.ask("fleet said \(wrong)")[0].hasPrefix("ERR "), "\(wrong.prefix(20))")
    }
    #expect(try told().count == 17)
    #expect(try client.ask("quit") == ["OK"])
    let deadline = Date(timeIntervalSinceNow: patience)
    while try told() != ["* fleet=none"], Date() < deadline { usleep(5_000) }
    #expect(try told() == ["* fleet=none"])
  }

  @Test func `a twin is an event, a row of status, and the cause of the next identifier`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("device").last?.hasPrefix("OK ") == true)
    #expect(try daemon.ask("fleet twin copy=yes") == "OK")
    let event = try subscriber.answer().last ?? ""
    #expect(event.contains(" device suspect value=\(device) cause=cloned copy=yes "), "\(event)")
    daemon.end()
    try daemon.start()
    #expect(try daemon.client().ask("status").contains { $0.hasPrefix("* suspect=\"cloned ") })
    #expect(try daemon.ask("renew device").hasSuffix(" previous=\(device)"))
    #expect(try daemon.client().ask("history device").contains { $0.contains(" cause=cloned ") })
    #expect(try daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") } == false)
  }
}
