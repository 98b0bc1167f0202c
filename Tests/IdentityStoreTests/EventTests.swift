import IdentityCore
import IdentityStore
import Testing

/// The events that the store keeps, without gaps.
@Suite struct EventTests {
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
      #expect(numbers == Array(first...content.registry.lastEvent))
      return first...content.registry.lastEvent
    }
    try workspace.withStore { store, _ in try store.mustCommit([deviceMade]) }
    try workspace.withStore { store, _ in try store.mustCommit(Self.events(1...full)) }
    #expect(try kept() == 1...full)
    try workspace.withStore { store, _ in try store.mustCommit(Self.events((full + 1)...(full + 1))) }
    #expect(try kept() == first(of: full + 1)...(full + 1))
    try workspace.withStore { store, _ in
      // More events at once than the store keeps.
      try store.mustCommit(Self.events((full + 2)...(3 * full)))
      let healed = store.heal()
      #expect(healed?.lastEvent == 3 * full)
      try store.mustCommit(Self.events((3 * full + 1)...(3 * full + 5)))
    }
    #expect(try kept() == first(of: 3 * full)...(3 * full + 5))
    #expect(try workspace.sql("SELECT count(*) FROM event") == "\(3 * full + 6 - first(of: 3 * full))\n")
  }

  @Test func `events after a gap are served, and none from before it`() throws {
    let workspace = try Workspace()
    try workspace.commit([[deviceMade]])
    try workspace.withStore { store, _ in try store.mustCommit(Self.events(1...9)) }
    try workspace.sql("UPDATE event SET name = 'gone' WHERE sequence = 4")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("a row of event (4 ") == true)
    #expect(content.events.map(\.sequence) == [5, 6, 7, 8, 9])
    #expect(content.registry.lastEvent == 9)
    try workspace.sql("UPDATE event SET name = 'gone' WHERE sequence = 9")
    let next = try workspace.found()
    #expect(next.events == [])
    #expect(next.registry.lastEvent == 9, "the last number is known all the same")
  }
}
