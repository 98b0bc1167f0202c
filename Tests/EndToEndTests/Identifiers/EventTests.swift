import Foundation
import TestSupport
import Testing

/// Events and subscriptions (identityd-protocol(7), section "EVENTS").
@Suite(.tags(.threads)) struct EventTests {
  /// Reads the next line, which must be an event, and returns its sequence number and the text after that.
  private func event(_ client: Client) throws -> (sequence: Int, text: String) {
    let line = try #require(try client.line())
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    try #require(words.count == 3 && words[0] == "EVENT", "\(line)")
    return (try #require(Int(words[1])), words[2])
  }

  /// Returns a different UUID for each number.
  private func uuid(_ number: Int) -> String {
    "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - "\(number)".count) + "\(number)"
  }

  /// Makes two events of the topic `devices` for each number: pipelined requests add a device and remove it.
  private func makeEvents(_ daemon: DaemonUnderTest, _ numbers: Range<Int>) throws {
    let client = try daemon.client()
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 500) {
      let part = start..<min(start + 500, numbers.upperBound)
      try client.send(part.map { "devices put \(uuid($0))\ndevices remove \(uuid($0))\n" }.joined())
      for _ in part {
        #expect(try client.answer() == ["OK"])
        #expect(try client.answer() == ["OK"])
      }
    }
  }

  @Test func `a subscriber gets events in order, in the format of the protocol`() throws {
    let daemon = try DaemonUnderTest().start()
    let subscriber = try daemon.client()
    // The first event is the version of the system.
    #expect(try subscriber.subscribe() == ["OK 1"])
    let device = try daemon.uuid("get device")
    let first = try event(subscriber)
    #expect(first.sequence == 2)
    #expect(first.text.hasPrefix("device created value=\(device) cause=first-use time="))
    let second = try event(subscriber)
    #expect(second.sequence == 3)
    #expect(second.text.hasPrefix("devices added value=\(device) time="))
    let installation = try daemon.uuid("get installation")
    let app = "user:\(getuid())"
    #expect(try event(subscriber).text.hasPrefix("app installed app=\(app) vendor=\(app) time="))
    let made = "installation created value=\(installation) cause=first-use app=\(app) vendor=\(app) time="
    #expect(try event(subscriber).text.hasPrefix(made))
    #expect(try daemon.ask("status").hasPrefix("OK"))
    #expect(try daemon.client().ask("status").contains("* last-event=5"))
  }

  @Test func `events are sent between replies, never within one`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.subscribe() == ["OK 1"])
    try client.send("get uuid count=200\nget device\nget uuid count=200\nget installation\nping\nget uuid count=200\n")
    var replies = 0
    var rows = 0
    var events = 0
    while replies < 6 || events < 4, let line = try client.line() {
      if line.hasPrefix("* ") {
        rows += 1
      } else if line.hasPrefix("EVENT ") {
        #expect(rows == 0, "an event within a reply")
        events += 1
      } else {
        #expect(line.hasPrefix("OK"))
        if rows > 0 { #expect(line == "OK 200") }
        rows = 0
        replies += 1
      }
    }
    #expect(events == 4)
  }

  @Test func `a subscriber can choose, add and drop topics`() throws {
    let daemon = try DaemonUnderTest().start()
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("installation") == ["OK 1"])
    _ = try daemon.uuid("get device")
    _ = try daemon.uuid("get installation")
    #expect(try event(subscriber).sequence == 5)
    #expect(try subscriber.subscribe("VENDOR") == ["OK 5"])
    #expect(try subscriber.ask("unsubscribe installation") == ["OK"])
    _ = try daemon.uuid("get vendor")
    #expect(try event(subscriber).text.hasPrefix("vendor created "))
    #expect(try subscriber.ask("unsubscribe") == ["OK"])
    #expect(try daemon.client().ask("status").contains("* subscribers=0"))
    #expect(try subscriber.subscribe("nonsense").first?.hasPrefix("ERR bad-argument ") == true)
    #expect(try subscriber.subscribe("since=1000000").first?.hasPrefix("ERR bad-argument ") == true)
    #expect(try subscriber.subscribe("since=-1").first?.hasPrefix("ERR bad-argument ") == true)
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `events are replayed from any sequence number, even after a stop or a kill`() throws {
    let daemon = try DaemonUnderTest().start()
    try makeEvents(daemon, 0..<50)
    for signal in [SIGTERM, SIGKILL] {
      daemon.end(with: signal)
      try daemon.start()
      for since in [0, 1, 57, 99] {
        let subscriber = try daemon.client()
        #expect(try subscriber.subscribe("since=\(since)") == ["OK \(since)"])
        for sequence in (since + 1)...101 { #expect(try event(subscriber).sequence == sequence) }
      }
    }
    // Sequence numbers continue after a restart.
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("since=101") == ["OK 101"])
    try makeEvents(daemon, 50..<51)
    #expect(try event(subscriber).sequence == 102)
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `a replay of one topic repeats no event of other topics`() throws {
    let daemon = try DaemonUnderTest().start()
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("devices") == ["OK 1"])
    try makeEvents(daemon, 0..<3)
    for sequence in 2...7 { #expect(try event(subscriber).sequence == sequence) }
    #expect(try daemon.ask("account set alice") == "OK")
    #expect(try daemon.ask("account set bob") == "OK")
    #expect(try subscriber.subscribe("account since=0") == ["OK 0"])
    #expect(try event(subscriber).text.hasPrefix("account changed value=alice "))
    #expect(try event(subscriber).text.hasPrefix("account changed value=bob "))
    try makeEvents(daemon, 3..<4)
    #expect(try event(subscriber).sequence == 10)
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `a snapshot is the state at the sequence number that it ends with`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(try daemon.ask("account set \"alice and bob\"") == "OK")
    let rows = try daemon.client().subscribe("device account devices snapshot=yes")
    #expect(
      rows == [
        "* device value=\(device) cause=first-use", "* devices value=\(device)", "* account value=\"alice and bob\"",
        "OK 4",
      ])
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `at least 10,000 events are kept, and a replay of older ones is refused`() throws {
    let daemon = try DaemonUnderTest().start()
    try makeEvents(daemon, 0..<5_600)
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("since=1200") == ["OK 1200"])
    for sequence in 1_201...11_201 { #expect(try event(subscriber).sequence == sequence) }
    daemon.end(with: SIGKILL)
    try daemon.start()
    let again = try daemon.client()
    #expect(try again.subscribe("since=0").first?.hasPrefix("ERR gone ") == true)
    #expect(try again.subscribe("since=1200") == ["OK 1200"])
    for sequence in 1_201...11_201 { #expect(try event(again).sequence == sequence) }
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `row 28: a slow subscriber is told which events it missed and can fetch them`() throws {
    let daemon = try DaemonUnderTest().start()
    let slow = try daemon.client()
    #expect(try slow.subscribe() == ["OK 1"])
    let count = 9_000
    try makeEvents(daemon, 0..<count)
    var last = 1
    var lag: (sequence: Int, text: String)?
    while lag == nil {
      let next = try event(slow)
      if next.text.hasPrefix("lag ") {
        lag = next
      } else {
        #expect(next.sequence == last + 1)
        last = next.sequence
      }
    }
    let found = try #require(lag)
    // About 1 MiB of unread events waits in the daemon before the subscriber lags. The socket buffers hold some more.
    #expect(last > 8_000 && last < 2 * count, "\(last)")
    #expect(found.text == "lag missed=\(found.sequence - last) from=\(last)")
    #expect(found.sequence == 2 * count + 1)
    #expect(try slow.subscribe("since=\(last)") == ["OK \(last)"])
    for sequence in (last + 1)...(2 * count + 1) { #expect(try event(slow).sequence == sequence) }
    // The subscription continues as before the lag.
    try makeEvents(daemon, count..<(count + 1))
    #expect(try event(slow).sequence == 2 * count + 2)
  }

  @Test(.enabled(if: isRoot, "acting as two users needs root"))
  func `row 40d: a peer gets the events that it may read, and no others`() throws {
    let daemon = try DaemonUnderTest().start()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let other = try OtherUser(65_534, of: daemon)
    #expect(try other.ask("subscribe").hasPrefix("OK 1 epoch="))
    // The other user gets no event about root's app, but gets those about the device and about its own app.
    _ = try daemon.uuid("get installation")
    _ = try daemon.uuid("get device")
    let own = try run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "get", "installation"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(own.status == 0)
    let text = try other.quit()
    let seen = text.split(separator: "\n").map { $0.split(separator: " ").prefix(4).joined(separator: " ") }
    #expect(
      seen == [
        "EVENT 4 device created", "EVENT 5 devices added", "EVENT 6 app installed", "EVENT 7 installation created",
        "OK",
      ])
    #expect(!text.contains("user:0"))
    #expect(text.contains("app installed app=user:65534"))
  }

  @Test(.enabled(if: isRoot, "making events at will needs root"))
  func `many subscribers all get every event`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnections=4096\n")
    let subscribers = try (0..<1_000).map { _ in try daemon.client() }
    for subscriber in subscribers { #expect(try subscriber.subscribe("devices") == ["OK 1"]) }
    try makeEvents(daemon, 0..<20)
    for subscriber in subscribers {
      for sequence in 2...41 { #expect(try event(subscriber).sequence == sequence) }
    }
  }

  @Test func `a subscriber that quits with events pending is closed without effect on others`() throws {
    let daemon = try DaemonUnderTest().start()
    for level in ["installation", "vendor", "device"] { #expect(try daemon.ask("get \(level)").hasPrefix("OK ")) }
    let leaving = try daemon.client()
    try leaving.send("subscribe since=0\nquit\n")
    #expect(try leaving.answer()[0].hasPrefix("OK 0 epoch="))
    #expect(try leaving.answer() == ["OK"])
    #expect(try daemon.ask("ping") == "OK")
    #expect(try leaving.rest() == [])
  }
}
