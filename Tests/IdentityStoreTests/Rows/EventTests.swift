import IdentityCore
import IdentityWire
import TestSupport
import Testing

@testable import IdentityStore

/// The events that the store keeps, without gaps.
struct EventTests {
  private static func events(_ numbers: ClosedRange<Int64>) -> [RecordedChange] {
    numbers.map { number in
      RecordedChange(
        .deviceSuspected(.device, .machineChanged),
        event: Event(
          sequence: number, time: later(number), topic: .device, name: "suspect",
          attributes: [.init("value", Text("\(uuid(1))")), .init("cause", "machine-changed")], audience: .sharing))
    }
  }

  @Test func `the oldest events are removed in the transaction that adds too many`() throws {
    let workspace = try Workspace(inMemory: true)
    let full = Int64(Bound.keptEvents + Bound.spareEvents)
    // Events are removed in blocks of numbers, and at least the required number of events remains.
    func first(of last: Int64) -> Int64 {
      let spare = Int64(Bound.spareEvents)
      return (last - Int64(Bound.keptEvents) + 1) / spare * spare
    }
    func kept() throws -> ClosedRange<Int64> {
      let content = try workspace.found()
      #expect(content.condition == .writable)
      let numbers = content.events.map(\.sequence)
      let first = try #require(numbers.first)
      #expect(try workspace.sql("SELECT min(first) FROM event_batch") == "\(first)\n")
      #expect(numbers == Array(first...content.registry.lastEvent))
      return first...content.registry.lastEvent
    }
    try workspace.withStore { store, _ in try store.mustCommit([deviceMade]) }
    try workspace.withStore { store, _ in try store.mustCommit(Self.events(1...full)) }
    #expect(try kept() == 1...full)
    try workspace.withStore { store, _ in try store.mustCommit(Self.events((full + 1)...(full + 1))) }
    try expect(kept(), from: first(of: full + 1), to: full + 1)
    try workspace.withStore { store, _ in
      // More events at once than the store keeps.
      try store.mustCommit(Self.events((full + 2)...(3 * full)))
      let healed = store.heal()
      #expect(healed?.lastEvent == 3 * full)
      try store.mustCommit(Self.events((3 * full + 1)...(3 * full + 5)))
    }
    try expect(kept(), from: first(of: 3 * full), to: 3 * full + 5)
  }

  /// Expects the events from a number on, and at most those of its batch before it.
  private func expect(_ kept: ClosedRange<Int64>, from first: Int64, to last: Int64) throws {
    #expect(kept.upperBound == last && kept.contains(first))
    #expect(kept.lowerBound > first - Int64(EventBatch.most))
  }

  @Test func `events after a gap are served, and none from before it`() throws {
    let workspace = try Workspace()
    try workspace.commit([[deviceMade]])
    for number: Int64 in 1...9 {
      try workspace.withStore { store, _ in try store.mustCommit(Self.events(number...number)) }
    }
    try workspace.sql("UPDATE event_batch SET lines = x'00' WHERE last = 4")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("a row of event_batch (4) ") == true)
    #expect(content.events.map(\.sequence) == [5, 6, 7, 8, 9])
    #expect(content.registry.lastEvent == 9)
    try workspace.sql("UPDATE event_batch SET lines = x'00' WHERE last = 9")
    let next = try workspace.found()
    #expect(next.events == [])
    #expect(next.registry.lastEvent == 9, "the last number is known all the same")
  }

  @Test func `the events of a transaction share rows of a bounded number of events`() throws {
    let workspace = try Workspace()
    let most = Int64(EventBatch.most)
    try workspace.withStore { store, _ in
      try store.mustCommit([deviceMade])
      try store.mustCommit(Self.events(1...3))
      try store.mustCommit(Self.events(4...(2 * most + 4)))
      try store.mustCommit(Self.events((2 * most + 5)...(2 * most + 5)))
    }
    let rows = "3|1\n\(most + 3)|4\n\(2 * most + 3)|\(most + 4)\n"
    #expect(
      try workspace.sql("SELECT last, first FROM event_batch")
        == rows + "\(2 * most + 4)|\(2 * most + 4)\n\(2 * most + 5)|\(2 * most + 5)\n")
    #expect(try workspace.found().events.map(\.sequence) == Array(1...(2 * most + 5)))
    try workspace.sql("UPDATE event_batch SET lines = x'00' WHERE last = \(most + 3)")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("a row of event_batch (4 to \(most + 3)) is not authentic") == true)
    #expect(content.events.map(\.sequence) == Array((most + 4)...(2 * most + 5)), "only those behind the damage")
  }

  @Test func `events with a gap or out of order are refused as a whole`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      try store.mustCommit(Self.events(1...3))
      for wrong in [Self.events(4...4) + Self.events(6...6), Self.events(5...5), Self.events(3...4)] {
        guard case .unwritable = store.commit(wrong) else { throw Failure("committed") }
        let healed = store.heal()
        #expect(healed?.lastEvent == 3)
      }
    }
    #expect(try workspace.found().events.map(\.sequence) == [1, 2, 3])
  }
}
