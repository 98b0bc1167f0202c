import Foundation
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Tests of one client with many callers, some of which are cancelled before their answer.
struct LibraryConcurrencyTests {
  @Test func `many callers of one client get their own answers over one connection`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<1_000 {
        group.addTask {
          let key = ItemPrimaryKey(service: "many", account: "\(number % 100)")
          if number % 3 == 0 { _ = try await client.ask(.putItem(key, secret: Secret("secret"))) }
          let value = UUID().uuidString.lowercased()
          #expect(try await client.ask(.check(value))?.description == value)
          let expected: VersionComparison = number < 500 ? .less : number == 500 ? .equal : .greater
          #expect(try await client.ask(.compareVersions("\(number)", "500")) == expected)
        }
      }
      try await group.waitForAll()
    }
    #expect(try await client.ask(.findItems(ItemQuery(service: "many"))).count == 100)
    // One connection belongs to the client, the other to `waitForStatus`.
    try daemon.waitForStatus("connections", "2")
  }

  @Test func `a cancelled call ends at once, and its late answer goes to nobody`() async throws {
    let isReleased = Locked(false)
    let daemon = try PlayedDaemon { request in
      while !isReleased.withLock({ $0 }) { usleep(1_000) }
      return .lines("OK valid \(request.split(separator: " ")[1])\n")
    }
    let client = IdentityClient(socket: daemon.socket, timeout: nil)
    let values = (0..<5).map { _ in UUID().uuidString.lowercased() }
    let tasks = values.map { value in Task { try await client.ask(.check(value)) } }
    try await eventually { !daemon.requests.isEmpty }
    tasks[0].cancel()
    tasks[3].cancel()
    for place in [0, 3] {
      await #expect(throws: IdentityError.cancelled) { try await tasks[place].value }
    }
    isReleased.withLock { $0 = true }
    for place in [1, 2, 4] { #expect(try await tasks[place].value?.description == values[place]) }
    #expect(try await client.ask(.check(values[0]))?.description == values[0])
  }

  @Test func `a request that is cancelled before it is sent is not sent`() async throws {
    let daemon = try PlayedDaemon { _ in .lines("OK first\n") }
    let client = IdentityClient(socket: daemon.socket)
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await client.ask(.claim("work"))
    }
    task.cancel()
    await #expect(throws: IdentityError.cancelled) { try await task.value }
    #expect(try await client.ask(.claim("other")))
    #expect(daemon.requests == ["version claim other"])
  }

  @Test func `calls that are cancelled at random never get another call's answer`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let answered = Locked(0)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<2_000 {
        let task = Task {
          let value = UUID().uuidString.lowercased()
          do throws(IdentityError) {
            let found = try await client.ask(.check(value))
            #expect(found?.description == value)
            answered.withLock { $0 += 1 }
          } catch {
            #expect(error == .cancelled)
          }
        }
        if number % 3 == 0 { group.addTask { task.cancel() } }
        group.addTask { await task.value }
      }
    }
    #expect(answered.withLock { $0 } >= 1_333)
  }

  @Test func `a released client leaves no thread and no connection behind`() async throws {
    let daemon = try DaemonUnderTest().start()
    for _ in 0..<20 {
      let client = IdentityClient(socket: daemon.socket)
      _ = try await client.ask(.whoami)
      for try await step in client.events() {
        guard case .following = step else { continue }
        break
      }
    }
    try daemon.waitForStatus("connections", "1")
  }

  @Test func `requests continue while the daemon is killed and started repeatedly`() async throws {
    let daemon = try DaemonUnderTest().start()
    let client = IdentityClient(socket: daemon.socket)
    let device = try await client.ask(.identifier(.device)).uuid
    let isOver = Locked(false)
    let answers = Locked(0)
    let asking = (0..<4).map { _ in
      Task {
        while !isOver.withLock({ $0 }) {
          do throws(IdentityError) {
            let found = try await client.ask(.identifier(.device))
            #expect(found.uuid == device)
            answers.withLock { $0 += 1 }
          } catch .connectionLost, .unreachable {
            await Task.yield()
          }
        }
      }
    }
    for round in 0..<6 {
      daemon.end(with: round % 2 == 0 ? SIGKILL : SIGTERM)
      try daemon.start()
      let before = answers.withLock { $0 }
      try await eventually { answers.withLock { $0 } > before + 20 }
    }
    isOver.withLock { $0 = true }
    for task in asking { try await task.value }
  }
}

/// Waits until a condition holds, and lets other tasks run meanwhile.
///
/// The limit is a number of checks, not a time: if many tests share few threads, they delay this task and the awaited
/// tasks alike, and elapsed time shows nothing.
func eventually(_ condition: () throws -> Bool) async throws {
  for _ in 0..<Int(patience * 200) {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(5))
  }
  throw Failure("it did not come to be")
}
