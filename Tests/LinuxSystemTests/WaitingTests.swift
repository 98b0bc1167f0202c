import LinuxSystem
import Testing

struct ReadinessSetTests {
  /// Returns the present readiness, by token.
  private func ready(_ set: borrowing ReadinessSet) throws -> [UInt64: ReadinessSet.Interest] {
    var found: [UInt64: ReadinessSet.Interest] = [:]
    for place in 0..<(try set.wait(false)) { found[set[place].token] = set[place].interest }
    return found
  }

  @Test func `only ready descriptors are returned, with their token, as long as they are ready`() throws {
    let set = try ReadinessSet()
    let one = try Pair.sockets()
    let other = try Pair.sockets()
    try set.add(one.reader.number, .read, token: 7)
    try set.add(other.reader.number, .read, token: .max)
    #expect(try ready(set) == [:])
    try other.writer.sendAll([1])
    #expect(try ready(set) == [.max: .read])
    #expect(try ready(set) == [.max: .read], "level-triggered")
    try one.writer.sendAll([1])
    #expect(try ready(set) == [7: .read, .max: .read])
    var byte: [UInt8] = [0]
    #expect(try other.reader.read(into: &byte) == 1)
    #expect(try ready(set) == [7: .read])
  }

  @Test func `the interest in a descriptor can be changed and removed`() throws {
    let set = try ReadinessSet()
    let pair = try Pair.sockets()
    try set.add(pair.reader.number, .read, token: 1)
    try set.modify(pair.reader.number, [.read, .write], token: 2)
    #expect(try ready(set) == [2: .write])
    try pair.writer.sendAll([1])
    #expect(try ready(set) == [2: [.read, .write]])
    try set.modify(pair.reader.number, [], token: 3)
    #expect(try ready(set) == [:])
    try set.modify(pair.reader.number, .read, token: 4)
    try set.remove(pair.reader.number)
    #expect(try ready(set) == [:])
  }

  @Test func `edge-triggered readiness is reported again after news or a new request`() throws {
    let set = try ReadinessSet()
    let pair = try Pair.sockets()
    try set.add(pair.reader.number, .news, token: 1)
    try pair.writer.sendAll([1])
    #expect(try ready(set) == [1: .read])
    #expect(try ready(set) == [:])
    try pair.writer.sendAll([2])
    #expect(try ready(set) == [1: .read])
    try set.modify(pair.reader.number, .newsAndRoom, token: 2)
    #expect(try ready(set) == [2: [.read, .write]])
    try pair.writer.shutdownWriting()
    let interest = try #require(try ready(set)[2])
    #expect(interest.hasAny(of: .exceptional))
    #expect(!interest.hasAny(of: .failed), "the other direction is still there")
    #expect(try ready(set) == [:])
  }

  @Test func `a broken connection is reported without being requested`() throws {
    let set = try ReadinessSet()
    let pair = try Pair.sockets()
    try set.add(pair.reader.number, [], token: 5)
    // This has the effect of a close, at once and even if another process inherited the socket.
    try pair.writer.shutdownWriting()
    try pair.reader.shutdownWriting()
    let interest = try #require(try ready(set)[5])
    #expect(!interest.isDisjoint(with: .failed))
  }

  @Test func `a descriptor is added once and removed once`() throws {
    let set = try ReadinessSet()
    let pair = try Pair.sockets()
    try set.add(pair.reader.number, .read, token: 1)
    #expect(throws: SystemError(call: "epoll_ctl", code: 17)) { try set.add(pair.reader.number, .read, token: 1) }
    try set.remove(pair.reader.number)
    #expect(throws: SystemError(call: "epoll_ctl", code: 2)) { try set.remove(pair.reader.number) }
  }

  @Test func `more events than fit into one call come with the next`() throws {
    let set = try ReadinessSet()
    let bells = try (0..<300).map { _ in try Bell() }
    for (token, bell) in bells.enumerated() {
      try set.add(bell.wakeup.descriptor.number, .read, token: UInt64(token))
      bell.wakeup.ring()
    }
    var seen: Set<UInt64> = []
    for _ in 0..<3 {
      let found = try ready(set)
      #expect(found.count <= 256)
      for token in found.keys {
        bells[Int(token)].wakeup.wait()
        seen.insert(token)
      }
    }
    #expect(seen == Set(0..<300))
    #expect(try ready(set) == [:])
  }
}

/// A wakeup that an array can hold.
private final class Bell {
  let wakeup: Wakeup
  init() throws { wakeup = try Wakeup(blocking: false) }
}

struct WakeupTests {
  private func isReadable(_ wakeup: borrowing Wakeup) throws -> Bool {
    let set = try ReadinessSet()
    try set.add(wakeup.descriptor.number, .read, token: 1)
    return try set.wait(false) > 0
  }

  @Test(arguments: [1, 2, 1_000]) func `a bell wakes once, however often it was rung`(times: Int) throws {
    let wakeup = try Wakeup(blocking: false)
    #expect(try isReadable(wakeup) == false)
    for _ in 0..<times { wakeup.ring() }
    #expect(try isReadable(wakeup))
    wakeup.wait()
    #expect(try isReadable(wakeup) == false)
    wakeup.ring()
    #expect(try isReadable(wakeup), "and again the next time")
  }

  @Test func `waiting for a non-blocking bell returns at once`() throws {
    let wakeup = try Wakeup(blocking: false)
    wakeup.wait()
    #expect(try isReadable(wakeup) == false)
  }

  @Test func `a waiting thread is woken by another`() throws {
    let there = Shared(try Wakeup(blocking: true))
    let back = Shared(try Wakeup(blocking: true))
    let thread = try Thread(named: "a name that is longer than the kernel keeps") {
      there.wakeup.wait()
      back.wakeup.ring()
    }
    there.wakeup.ring()
    back.wakeup.wait()
    thread.join()
    #expect(try isReadable(back.wakeup) == false)
  }
}

/// A wakeup that two threads share.
private final class Shared: Sendable {
  let wakeup: Wakeup
  init(_ wakeup: consuming Wakeup) { self.wakeup = wakeup }
}
