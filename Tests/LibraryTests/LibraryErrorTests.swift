import Foundation
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Tests of the errors that the library throws.
struct LibraryErrorTests {
  /// Returns the code that a request is refused with. Nil if it is not refused.
  private func code<Answer>(
    _ client: IdentityClient, _ request: IdentityRequest<Answer>
  ) async -> IdentityError.Code? {
    do {
      _ = try await client.ask(request)
      return nil
    } catch {
      guard case .refused(let code, let text) = error else { return nil }
      #expect(!text.isEmpty)
      return code
    }
  }

  @Test func `each error of the daemon is thrown with its code`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let key = ItemPrimaryKey(service: "mail", account: "alice")
    #expect(await code(client, .check("a\0b")) == .syntax)
    #expect(await code(client, .words("")) == .syntax)
    #expect(await code(client, .words("nonsense")) == .unknownVerb)
    #expect(await code(client, .uuids(count: 0)) == .badArgument)
    #expect(await code(client, .identifier(IdentifierLevel(rawValue: "month"))) == .badArgument)
    let zeros = try #require(IdentityUUID("00000000000000000000000000000000"))
    #expect(await code(client, .migrate(.device, to: zeros, commits: false)) == .invalidUUID)
    // Root is never denied anything.
    if !isRoot { #expect(await code(client, .renew(.device)) == .denied) }
    #expect(await code(client, .readItem(key)) == .notFound)
    #expect(await code(client, .resolve(zeros)) == .invalidUUID)
    try await client.ask(.addItem(key, secret: Secret("1")))
    #expect(await code(client, .addItem(key, secret: Secret("2"))) == .exists)
    _ = try await client.ask(.identifier(.device))
    let other = try #require(IdentityUUID("557e5958d3904cbfb9282a2b19a1399a"))
    #expect(await code(client, .migrate(.device, to: other, commits: true)) == .conflict)
    let long = [UInt8](repeating: 7, count: 65_537)
    #expect(await code(client, .putItem(key, secret: Secret(long.span))) == .limit)
    // The client still works.
    #expect(try await client.ask(.check(other.description)) == other)
  }

  @Test(arguments: [
    "syntax", "too-long", "unknown-verb", "bad-argument", "invalid-uuid", "denied", "not-found", "exists", "conflict",
    "limit", "gone", "busy", "no-space", "read-only", "unavailable", "internal", "unknown", "code-of-later",
  ])
  func `any code of the daemon is thrown, also an unknown one`(code: String) async throws {
    let daemon = try PlayedDaemon { _ in .lines("ERR \(code) so it is\n") }
    let client = IdentityClient(socket: daemon.socket)
    let expected = IdentityError.refused(IdentityError.Code(rawValue: code), "so it is")
    await #expect(throws: expected) { try await client.ask(.whoami) }
    await #expect(throws: expected) { try await client.ask(.words("later", "verb")) }
    #expect(expected.isWorthRetrying == ["busy", "no-space", "read-only", "unavailable"].contains(code))
  }

  @Test func `an error has the daemon's text, and its description is printable`() async throws {
    let daemon = try PlayedDaemon { _ in .lines("ERR lat\u{202e}er so\u{1b}[2J\u{2066} it is\n") }
    let client = IdentityClient(socket: daemon.socket)
    do {
      _ = try await client.ask(.whoami)
      Issue.record("it was refused")
    } catch {
      #expect(error == .refused(IdentityError.Code(rawValue: "lat\u{202e}er"), "so\u{1b}[2J\u{2066} it is"))
      #expect(error.description == #"so\u001b[2J\u2066 it is (lat\u202eer)"#)
    }
  }

  @Test func `a request that does not fit into a line is refused and not sent`() async throws {
    let daemon = try PlayedDaemon { _ in .lines("OK\n") }
    let client = IdentityClient(socket: daemon.socket)
    let long = [UInt8](repeating: 7, count: 75_000)
    let key = ItemPrimaryKey(service: "a", account: "b")
    #expect(await code(client, .putItem(key, secret: Secret(long.span))) == .tooLong)
    #expect(await code(client, .words("check", String(repeating: "a", count: 98_298))) == .tooLong)
    #expect(await code(client, .words("subscribe")) == .badArgument)
    #expect(await code(client, .words("Quit")) == .badArgument)
    let odd = ItemMetadata(attributes: ["two words": "x"])
    #expect(await code(client, .addItem(key, secret: Secret("1"), odd)) == .badArgument)
    #expect(daemon.requests == [])
  }

  @Test(arguments: ["EVENT", "nonsense", "* a\nnonsense", "OK", "OK no-uuid level=device", "OK \(UUID()) level"])
  func `an invalid answer is an error and never taken for a result`(lines: String) async throws {
    let daemon = try PlayedDaemon { $0 == "ping" ? .lines("OK\n") : .lines("\(lines)\n") }
    let client = IdentityClient(socket: daemon.socket)
    do {
      let identifier = try await client.ask(.identifier(.device))
      Issue.record("\(identifier)")
    } catch {
      guard case .brokenAnswer = error else { throw error }
    }
    #expect(try await client.ask(.words("ping")).final.words == [])
  }

  @Test func `a missing daemon is unreachable, and is found once it is there`() async throws {
    let daemon = try DaemonUnderTest()
    let client = IdentityClient(socket: daemon.socket)
    for _ in 0..<2 {
      do {
        _ = try await client.ask(.whoami)
        Issue.record("there is no daemon")
      } catch .unreachable(let path, let reason) {
        #expect(path == daemon.socket)
        #expect(!reason.isEmpty)
      }
    }
    try daemon.start()
    #expect(try await client.ask(.whoami).processID == getpid())
  }

  @Test func `a query whose connection breaks is sent once more, and a change is not`() async throws {
    let daemon = try PlayedDaemon { _ in .lastLines("") }
    let client = IdentityClient(socket: daemon.socket)
    await #expect(throws: IdentityError.connectionLost) { try await client.ask(.whoami) }
    #expect(daemon.requests == ["whoami", "whoami"])
    await #expect(throws: IdentityError.connectionLost) { try await client.ask(.claim("work")) }
    #expect(daemon.requests == ["whoami", "whoami", "version claim work"])
  }

  /// A daemon that refuses requests as busy. A real one then closes the connection at an unpredictable time, so this
  /// one never closes it.
  private func busyDaemon() throws -> PlayedDaemon {
    try PlayedDaemon { .lines($0 == "whoami" ? "ERR busy too many\n" : "OK\n") }
  }

  @Test func `a daemon without room is busy, and the next request connects again`() async throws {
    let daemon = try busyDaemon()
    let client = IdentityClient(socket: daemon.socket)
    await #expect(throws: IdentityError.refused(.busy, "too many")) { try await client.ask(.whoami) }
    #expect(try await client.ask(.words("ping")).final.words == [])
    #expect(daemon.connections == 2)
  }

  @Test func `the blocking client also connects again after a busy daemon`() throws {
    let daemon = try busyDaemon()
    var client = BlockingIdentityClient(socket: daemon.socket)
    var refusal: IdentityError?
    do { _ = try client.ask(.whoami) } catch { refusal = error }
    #expect(refusal == .refused(.busy, "too many"))
    #expect(try client.ask(.words("ping")).final.words == [])
    #expect(daemon.connections == 2)
  }

  @Test func `requests survive restarts of the daemon`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let device = try await client.ask(.identifier(.device)).uuid
    #expect(daemon.end() == 0)
    try daemon.start()
    #expect(try await client.ask(.identifier(.device)).uuid == device)
    #expect(daemon.end(with: SIGKILL) == 128 + SIGKILL)
    try daemon.start()
    #expect(try await client.ask(.identifier(.device)).uuid == device)
  }

  @Test func `a late answer is a timeout, and the next request gets its own answer`() async throws {
    let isReleased = Locked(false)
    let daemon = try PlayedDaemon { request in
      while request == "check late", !isReleased.withLock({ $0 }) { usleep(1_000) }
      return .lines("OK \(request == "check late" ? "invalid" : "valid \(UUID())")\n")
    }
    let hurried = IdentityClient(socket: daemon.socket, timeout: .milliseconds(50))
    await #expect(throws: IdentityError.timedOut) { try await hurried.ask(.check("late")) }
    isReleased.withLock { $0 = true }
    // The client's timeout may expire again before the played daemon comes to this request.
    while true {
      do {
        let found = try await hurried.ask(.check("next"))
        #expect(found != nil)
        break
      } catch .timedOut {
        continue
      }
    }
  }

  @Test func `a daemon that accepts nobody is waited for only until the timeout`() async throws {
    let path = temporaryPath("identity-client-\(UUID().uuidString.prefix(13))")
    let listener = try UnixSocket.listen(at: path, mode: 0o700, backlog: 0)
    defer { UnixSocket.remove(path, ifStill: UnixSocket.identity(of: path)) }
    // A backlog of 0 has room for one connection.
    let first = try UnixSocket.connect(to: path)
    let client = IdentityClient(socket: path, timeout: .milliseconds(100))
    await #expect(throws: IdentityError.timedOut) { try await client.ask(.whoami) }
    var blocking = BlockingIdentityClient(socket: path, timeout: .milliseconds(100))
    do {
      _ = try blocking.ask(.whoami)
      Issue.record("nobody was let in")
    } catch {
      #expect(error == .timedOut)
    }
    #expect(first.number >= 0 && listener.number >= 0)
  }
}
