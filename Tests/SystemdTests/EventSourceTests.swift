import Glibc
import LinuxSystem
import Systemd
import Testing

/// Who holds a source, and whether it is still there.
private final class Holder {
  var source: EventSource?
  weak var seen: EventSource?
  var calls = 0

  func hold(_ source: EventSource) {
    self.source = source
    seen = source
  }
}

/// Something that only a handler holds.
private final class Treasure {
  var value = 7
}

@Suite struct EventSourceTests {
  /// Lets go of the last reference to a source in its own handler, and uses what only the handler holds after that.
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

  @Test func `a timer may let go of itself`() throws {
    try release { loop, handler in try loop.timer(after: 0, handler) }
  }

  @Test func `a deferred source may let go of itself`() throws {
    try release { loop, handler in
      let source = try loop.deferred(handler)
      source.enable()
      return source
    }
  }

  @Test func `a source that stays readable may let go of itself and is not called again`() throws {
    let bell = try Wakeup(blocking: false)
    bell.ring()
    let number = bell.descriptor.number
    try release { loop, handler in try loop.watch(reading: number, handler) }
    withExtendedLifetime(bell.descriptor.number) {}
  }

  @Test func `a folder's source may let go of itself while more changes wait`() throws {
    let temporary = try TemporaryFolder()
    try release { loop, handler in
      let source = try loop.watch(folder: temporary.path) { _ in handler() }
      for number in 0..<10 { try temporary.makeFolder("\(number)") }
      return source
    }
  }

  @Test func `a handler may let go of another source that is due`() throws {
    let loop = try EventLoop()
    let holders = [Holder(), Holder()]
    for (own, other) in [(holders[0], holders[1]), (holders[1], holders[0])] {
      let source = try loop.deferred {
        own.calls += 1
        other.source = nil
        // One that stays enabled is due before everything else, again and again.
        own.source?.disable()
      }
      source.enable()
      own.hold(source)
    }
    let end = try loop.timer(after: 50_000) { loop.exit(status: 0) }
    #expect(try withExtendedLifetime(end) { try loop.run() } == 0)
    #expect([holders[0].calls, holders[1].calls].sorted()[0] == 0, "one of them was never called")
    #expect(holders.map(\.calls).contains { $0 > 0 })
    #expect(holders.filter { $0.seen == nil }.count == 1)
    for holder in holders { holder.source = nil }
  }

  @Test func `a handler may put another source in the place of its own`() throws {
    let loop = try EventLoop()
    let holder = Holder()
    func again() throws {
      let source = try loop.deferred {
        holder.calls += 1
        if holder.calls == 100 { return loop.exit(status: 0) }
        #expect(throws: Never.self) { try again() }
      }
      source.enable()
      holder.hold(source)
    }
    try again()
    let end = try loop.timer(after: 10_000_000) { loop.exit(status: 1) }
    #expect(try withExtendedLifetime(end) { try loop.run() } == 0)
    #expect(holder.calls == 100)
    holder.source = nil
    #expect(holder.seen == nil)
  }

  @Test func `an idle source waits until nobody else has anything to do`() throws {
    let loop = try EventLoop()
    let busy = Holder()
    var callsBefore: Int?
    let idle = try loop.deferred(idly: true) {
      callsBefore = busy.calls
      loop.exit(status: 0)
    }
    idle.enable()
    busy.hold(
      try loop.deferred {
        busy.calls += 1
        if busy.calls == 100 { busy.source?.disable() }
      })
    busy.source?.enable()
    #expect(try withExtendedLifetime(idle) { try loop.run() } == 0)
    #expect(callsBefore == 100)
    busy.source = nil
  }
}
