import Glibc
import LinuxSystem
import Systemd
import TestSupport
import Testing

/// Holds a source, and tells whether the source still exists.
private final class Holder {
  var source: EventSource?
  weak var seen: EventSource?
  var calls = 0

  func hold(_ source: EventSource) {
    self.source = source
    seen = source
  }
}

/// An object that only a handler holds.
private final class Treasure {
  var value = 7
}

struct EventSourceTests {
  /// Drops the last reference to a source in its own handler, then uses an object that only the handler holds.
  private func release(_ make: (EventLoop, @escaping () -> Void) throws -> EventSource) throws {
    let loop = try EventLoop()
    let holder = Holder()
    weak var kept: Treasure?
    do {
      let treasure = Treasure()
      kept = treasure
      holder.hold(
        try make(loop) {
          holder.calls += 1
          holder.source = nil
          #expect(holder.seen != nil, "its object is there until the handler has returned")
          treasure.value += 1
          #expect(treasure.value == 8)
        })
    }
    let end = try loop.timer(after: 100_000) { loop.exit(status: 0) }
    #expect(try withExtendedLifetime(end) { try loop.run() } == 0)
    #expect(holder.calls == 1)
    #expect(holder.seen == nil, "and then it goes")
    #expect(kept == nil, "with what its handler held")
  }

  @Test func `a timer may release itself`() throws {
    try release { loop, handler in try loop.timer(after: 0, handler) }
  }

  @Test func `a folder's source may release itself while more changes wait`() throws {
    let temporary = try TemporaryFolder()
    try release { loop, handler in
      let source = try loop.watch(folder: temporary.path) { _ in handler() }
      for number in 0..<10 { try temporary.makeFolder("\(number)") }
      return source
    }
  }

  @Test func `a descriptor's handler is called as long as the descriptor is readable`() throws {
    let loop = try EventLoop()
    let bell = try Wakeup(blocking: false)
    var calls = 0
    let source = try loop.watch(readable: bell.descriptor.number) {
      calls += 1
      if calls == 3 { bell.wait() }
    }
    bell.ring()
    let end = try loop.timer(after: 50_000) { loop.exit(status: 0) }
    #expect(try withExtendedLifetime((source, end)) { try loop.run() } == 0)
    #expect(calls == 3)
  }

  @Test func `a handler may release another source that is due`() throws {
    let loop = try EventLoop()
    let holders = [Holder(), Holder()]
    for (own, other) in [(holders[0], holders[1]), (holders[1], holders[0])] {
      own.hold(
        try loop.timer(after: 0) {
          own.calls += 1
          other.source = nil
        })
    }
    let end = try loop.timer(after: 50_000) { loop.exit(status: 0) }
    #expect(try withExtendedLifetime(end) { try loop.run() } == 0)
    #expect([holders[0].calls, holders[1].calls].sorted()[0] == 0, "one of them was never called")
    #expect(holders.map(\.calls).contains { $0 > 0 })
    #expect(holders.filter { $0.seen == nil }.count == 1)
    for holder in holders { holder.source = nil }
  }

  @Test func `a handler may replace its own source`() throws {
    let loop = try EventLoop()
    let holder = Holder()
    func again() throws {
      holder.hold(
        try loop.timer(after: 0, accuracy: 1) {
          holder.calls += 1
          if holder.calls == 100 { return loop.exit(status: 0) }
          #expect(throws: Never.self) { try again() }
        })
    }
    try again()
    let end = try loop.timer(after: 10_000_000) { loop.exit(status: 1) }
    #expect(try withExtendedLifetime(end) { try loop.run() } == 0)
    #expect(holder.calls == 100)
    holder.source = nil
    #expect(holder.seen == nil)
  }

  @Test func `sources are called while a function waits in place of the loop`() throws {
    let loop = try EventLoop()
    let set = try ReadinessSet()
    try set.add(loop.descriptor, .read, token: 1)
    let bell = try Wakeup(blocking: false)
    try set.add(bell.descriptor.number, .read, token: 2)
    var calls: [String] = []
    // This timer is armed within its own handler, the other one while the loop is prepared for its wait.
    let timer = Holder()
    timer.hold(
      try loop.timer(after: 0, accuracy: 1) {
        calls.append("timer")
        if calls.count < 3 { timer.source?.arm(after: 100) } else { bell.ring() }
      })
    let last = try loop.timer(after: UInt64.max / 2, accuracy: 1) { loop.exit(status: 5) }
    let status = try withExtendedLifetime(last) {
      try loop.run { waits in
        do {
          for place in 0..<(try set.wait(waits)) {
            if set[place].token == 1 { loop.wake() } else { calls.append("bell") }
          }
        } catch {
          Issue.record(error)
          loop.exit(status: 1)
        }
        if calls.last == "bell" {
          bell.wait()
          calls.append("end")
          last.arm(after: 100)
        }
      }
    }
    #expect(status == 5)
    #expect(calls == ["timer", "timer", "timer", "bell", "end"])
    timer.source = nil
  }

  @Test func `an exit that is requested in that function ends the loop`() throws {
    let loop = try EventLoop()
    var turns = 0
    let status = try loop.run { _ in
      turns += 1
      loop.exit(status: 3)
    }
    #expect(status == 3)
    #expect(turns == 1)
  }
}
