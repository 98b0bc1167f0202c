import Foundation
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Tests of the event streams of the library.
struct LibraryEventTests {
  @Test func `events of the requested topics arrive as they happen`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    var events = client.events(topics: .item, .token).makeAsyncIterator()
    guard case .following(let after, let epoch)? = try await events.next() else { throw Failure("it does not begin") }
    #expect(epoch != nil)
    _ = try await client.ask(.identifier(.device))
    let key = ItemPrimaryKey(service: "mail", account: "alice")
    try await client.ask(.addItem(key, secret: Secret("1")))
    _ = try await client.ask(.putToken("abc", provider: "fcm"))
    guard case .event(let item)? = try await events.next(), case .event(let token)? = try await events.next() else {
      throw Failure("no events")
    }
    #expect((item.topic, item.name, item["service"], item["account"]) == (.item, "added", "mail", "alice"))
    #expect((token.topic, token.name, token["provider"]) == (.token, "created", "fcm"))
    #expect(try #require(after) < item.sequence && item.sequence < token.sequence)
    #expect(token.time != nil)
  }

  @Test func `across restarts and kills each event arrives once and in order`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let rounds = 6
    let each = 20
    let following = Task {
      var accounts: [String] = []
      var sequences: [Int64] = []
      var interruptions = 0
      for try await step in client.events(topics: .item, since: 0) {
        switch step {
        case .event(let event):
          accounts.append(event["account"] ?? "")
          sequences.append(event.sequence)
        case .interrupted: interruptions += 1
        case .gap(let why): throw Failure(why)
        case .following: continue
        }
        if accounts.last == "last" { break }
      }
      #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
      return (accounts, interruptions)
    }
    for round in 0..<rounds {
      for number in 0..<each {
        let key = ItemPrimaryKey(service: "s", account: "\(round * each + number)")
        try await client.ask(.addItem(key, secret: Secret("1")))
      }
      daemon.end(with: round % 2 == 0 ? SIGKILL : SIGTERM)
      try daemon.start()
    }
    try await client.ask(.addItem(ItemPrimaryKey(service: "s", account: "last"), secret: Secret("1")))
    let (accounts, interruptions) = try await following.value
    #expect(accounts == (0..<(rounds * each)).map(String.init) + ["last"])
    #expect(interruptions > 0)
  }

  @Test func `a position of another store is a gap, even if its number was reached here too`() async throws {
    let first = try DaemonUnderTest().start()
    var events = IdentityClient(socket: first.socket).events().makeAsyncIterator()
    guard case .following(_, let epoch?)? = try await events.next() else { throw Failure("it does not begin") }
    let second = try DaemonUnderTest().start()
    let client = IdentityClient(socket: second.socket)
    _ = try await client.ask(.identifier(.device))
    var elsewhere = client.events(since: 1, epoch: epoch).makeAsyncIterator()
    guard case .gap(let why)? = try await elsewhere.next() else { throw Failure("it goes on") }
    #expect(why.contains("began anew"))
    // A program that stores the position learns the new one, so that its next run sees no false gap.
    guard case .following(let last?, let now?)? = try await elsewhere.next() else { throw Failure("no position") }
    #expect(now != epoch)
    var again = client.events(since: last, epoch: now).makeAsyncIterator()
    guard case .following(last, now)? = try await again.next() else { throw Failure("another gap") }
    var blocking = BlockingIdentityClient(socket: second.socket).events(since: 1, epoch: epoch)
    guard case .gap = try blocking.next(), case .following(last, now) = try blocking.next() else {
      throw Failure("it goes on")
    }
  }

  @Test func `a slow reader misses no event`() async throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nItemsPerApp=2000\n")
    let client = IdentityClient(socket: daemon.socket)
    var events = client.events(topics: .item).makeAsyncIterator()
    guard case .following? = try await events.next() else { throw Failure("it does not begin") }
    let count = 2_000
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask {
          let key = ItemPrimaryKey(service: "s", account: "\(number)")
          try await client.ask(.addItem(key, secret: Secret("1")))
        }
      }
      try await group.waitForAll()
    }
    var seen: Set<String> = []
    while seen.count < count {
      guard case .event(let event)? = try await events.next() else { continue }
      #expect(seen.insert(event["account"] ?? "").inserted)
    }
  }

  @Test func `events that a lag left out are fetched again in order`() async throws {
    let daemon = try PlayedDaemon { request in
      switch request {
      case "subscribe": .lines("OK 1\nEVENT 2 item added account=a\nEVENT 5 lag missed=3 from=2\n")
      case "subscribe since=2": .lines("OK 2\n" + (3...6).map { "EVENT \($0) item added account=b\n" }.joined())
      default: .lines("ERR bad-argument no\n")
      }
    }
    var sequences: [Int64] = []
    for try await step in IdentityClient(socket: daemon.socket).events() {
      if case .event(let event) = step { sequences.append(event.sequence) }
      if sequences.last == 6 { break }
    }
    #expect(sequences == [2, 3, 4, 5, 6])
  }

  @Test func `events that are no longer kept are a gap, and later events follow`() async throws {
    let daemon = try PlayedDaemon { request in
      switch request {
      case "subscribe device since=7": .lines("ERR gone they are not kept\n")
      case "subscribe device": .lines("OK 90\nEVENT 91 device changed value=x\n")
      default: .lines("ERR bad-argument no\n")
      }
    }
    var events = IdentityClient(socket: daemon.socket).events(topics: .device, since: 7).makeAsyncIterator()
    var steps: [IdentityEventStep] = []
    while steps.count < 3, let step = try await events.next() { steps.append(step) }
    #expect(steps.contains { if case .gap(let why) = $0 { why == "they are not kept" } else { false } }, "\(steps)")
    guard case .event(let event)? = steps.last else { throw Failure("\(steps)") }
    #expect(event.sequence == 91)
  }

  @Test func `a real daemon with a new store causes a gap`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    for number in 0..<20 {
      try await client.ask(.addItem(ItemPrimaryKey(service: "s", account: "\(number)"), secret: Secret("1")))
    }
    var events = client.events(topics: .item, since: 0).makeAsyncIterator()
    var seen = 0
    while seen < 20, let step = try await events.next() {
      if case .event = step { seen += 1 }
    }
    #expect(daemon.end() == 0)
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    while let step = try await events.next() {
      if case .gap = step { break }
      if case .event(let event) = step { Issue.record("\(event)") }
    }
    try await client.ask(.addItem(ItemPrimaryKey(service: "s", account: "new"), secret: Secret("1")))
    while let step = try await events.next() {
      guard case .event(let event) = step else { continue }
      #expect(event["account"] == "new")
      break
    }
  }

  @Test func `a cancelled task ends its events, with or without new ones`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let task = Task {
      var steps = 0
      for try await _ in client.events(topics: .item) { steps += 1 }
      return steps
    }
    try await eventually { try daemon.client().statusValue("subscribers") == "1" }
    task.cancel()
    #expect(try await task.value <= 1)
    try daemon.waitForStatus("subscribers", "0")
  }

  @Test func `an unknown topic and a missing daemon end the events with an error`() async throws {
    let daemon = try DaemonUnderTest().start()
    var events = IdentityClient(socket: daemon.socket).events(topics: EventTopic(rawValue: "weather"))
      .makeAsyncIterator()
    do {
      while try await events.next() != nil {}
      Issue.record("there is no such topic")
    } catch {
      guard case .refused(.badArgument, _) = error else { throw error }
    }
    #expect(try await events.next() == nil)
    var nobody = IdentityClient(socket: "\(daemon.socket)-none").events().makeAsyncIterator()
    do {
      while try await nobody.next() != nil {}
      Issue.record("there is nobody")
    } catch {
      guard case .unreachable = error else { throw error }
    }
  }
}
