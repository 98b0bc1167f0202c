import Foundation
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Tests of the blocking client.
struct LibraryBlockingTests {
  /// Returns the error that a request throws, or nil. Replaces `#expect(throws:)`, which cannot capture
  /// a noncopyable value.
  private func failure(_ body: () throws(IdentityError) -> Void) -> IdentityError? {
    do {
      try body()
      return nil
    } catch {
      return error
    }
  }

  @Test func `the blocking client makes the same requests and reads the same answers`() throws {
    let daemon = try DaemonUnderTest().start()
    var client = BlockingIdentityClient(socket: daemon.socket)
    let device = try client.ask(.identifier(.device))
    #expect(device.uuid.description == (try daemon.uuid("get device")))
    let key = ItemPrimaryKey(service: "mail", account: "alice")
    try client.ask(.addItem(key, secret: Secret("correct horse")))
    #expect(text(try client.ask(.readItem(key)).secret) == "correct horse")
    #expect(failure { () throws(IdentityError) in _ = try client.ask(.uuids(count: 0)) } != nil)
    #expect(try client.ask(.uuids(count: 10_000)).count == 10_000)
    #expect(try client.ask(.words("ping")).final.words == [])
    #expect(daemon.end() == 0)
    try daemon.start()
    #expect(try client.ask(.identifier(.device)) == device)
  }

  @Test func `errors are those of the other client, and the next request uses a new connection`() throws {
    let daemon = try PlayedDaemon { request in
      switch request {
      case "whoami": .lastLines("")
      case "status": .lines("nonsense\nOK\n")
      case "check late": .lines("")
      default: .lines("OK valid \(UUID())\n")
      }
    }
    var client = BlockingIdentityClient(socket: daemon.socket, timeout: .milliseconds(200))
    #expect(failure { () throws(IdentityError) in _ = try client.ask(.whoami) } == .connectionLost)
    #expect(failure { () throws(IdentityError) in _ = try client.ask(.check("late")) } == .timedOut)
    guard case .brokenAnswer? = failure({ () throws(IdentityError) in _ = try client.ask(.status) }) else {
      throw Failure("nonsense was taken for an answer")
    }
    #expect(try client.ask(.check("next")) != nil)
    #expect(daemon.requests == ["whoami", "whoami", "check late", "status", "check next"])
    var nobody = BlockingIdentityClient(socket: "\(daemon.socket)-none")
    guard case .unreachable? = failure({ () throws(IdentityError) in _ = try nobody.ask(.whoami) }) else {
      throw Failure("there is nobody")
    }
  }

  @Test func `events continue across a restart, and waiting for one can time out`() throws {
    let daemon = try DaemonUnderTest().start()
    var client = BlockingIdentityClient(socket: daemon.socket)
    var events = client.events(topics: .item)
    guard case .following = try events.next() else { throw Failure("it does not begin") }
    #expect(failure { () throws(IdentityError) in _ = try events.next(timeout: .milliseconds(1)) } == .timedOut)
    try client.ask(.addItem(ItemPrimaryKey(service: "s", account: "1"), secret: Secret("1")))
    #expect(daemon.end(with: SIGKILL) == 128 + SIGKILL)
    try daemon.start()
    try client.ask(.addItem(ItemPrimaryKey(service: "s", account: "2"), secret: Secret("1")))
    var accounts: [String?] = []
    while accounts.count < 2 {
      if case .event(let event) = try events.next(timeout: .seconds(patience)) { accounts.append(event["account"]) }
    }
    #expect(accounts == ["1", "2"])
  }
}
