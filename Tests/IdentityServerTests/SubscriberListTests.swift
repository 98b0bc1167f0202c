import TestSupport
import Testing

@testable import IdentityServer

struct SubscriberListTests {
  private func token(_ slot: Int) -> ConnectionToken { ConnectionToken(slot: slot, generation: 0) }

  private func list(_ count: Int) -> Round {
    let list = Round()
    for slot in 0..<count { list.insert(token(slot)) }
    return list
  }

  /// Returns the rest of the round, which must end.
  private func rest(of list: Round) throws -> [Int] {
    var slots: [Int] = []
    while let token = list.next() {
      slots.append(token.slot)
      try #require(slots.count < 1_000, "the round does not end")
    }
    return slots
  }

  @Test func `a round visits every subscriber once and then ends`() throws {
    let list = list(5)
    for _ in 0..<3 {
      #expect(list.startRound())
      #expect(try rest(of: list).sorted() == [0, 1, 2, 3, 4])
      #expect(list.next() == nil)
    }
  }

  @Test func `subscribers are visited only within a round, and an empty list has none`() {
    let list = list(2)
    #expect(list.next() == nil)
    list.remove(token(0))
    list.remove(token(1))
    #expect(!list.startRound())
    #expect(list.next() == nil)
  }

  @Test func `a second insertion changes nothing, and neither does removing an unknown token`() throws {
    let list = list(3)
    list.insert(token(1))
    list.remove(token(7))
    list.remove(ConnectionToken(slot: 1, generation: 1))
    #expect(list.count == 3)
    #expect(list.startRound())
    #expect(try rest(of: list).sorted() == [0, 1, 2])
  }

  @Test func `a round that begins during another still visits every subscriber`() throws {
    for visited in 0..<6 {
      let list = list(5)
      #expect(list.startRound())
      for _ in 0..<visited { _ = list.next() }
      #expect(list.startRound())
      #expect(Set(try rest(of: list)) == [0, 1, 2, 3, 4])
    }
  }

  @Test func `rounds that are begun again and again starve no subscriber`() throws {
    let list = list(10)
    var seen: Set<Int> = []
    for _ in 0..<20 {
      #expect(list.startRound())
      seen.insert(try #require(list.next()).slot)
    }
    #expect(seen.count == 10)
  }

  @Test func `a subscriber added during a round makes the round skip nobody`() throws {
    // The round may begin anywhere, because another round was under way before.
    for before in 0..<5 {
      for visited in 0..<5 {
        let list = list(5)
        #expect(list.startRound())
        for _ in 0..<before { _ = list.next() }
        #expect(list.startRound())
        var seen: Set<Int> = []
        for _ in 0..<visited { if let token = list.next() { seen.insert(token.slot) } }
        list.insert(token(5))
        seen.formUnion(try rest(of: list))
        #expect(seen.isSuperset(of: 0..<5), "one came after \(before) and \(visited)")
      }
    }
  }

  @Test func `a subscriber removed during a round makes the round skip nobody`() throws {
    for visited in 0..<6 {
      for gone in 0..<6 {
        let list = list(6)
        #expect(list.startRound())
        var seen: Set<Int> = []
        for _ in 0..<visited { if let token = list.next() { seen.insert(token.slot) } }
        list.remove(token(gone))
        seen.formUnion(try rest(of: list))
        #expect(seen.isSuperset(of: Set(0..<6).subtracting([gone])), "\(gone) gone after \(visited)")
      }
    }
  }

  @Test(arguments: 1...40)
  func `a round visits every subscriber that stays, while others come and go`(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    let list = Round()
    var there: Set<Int> = []
    var nextSlot = 0
    for _ in 0..<200 {
      while there.count < 5 || generator.once(in: 2) {
        list.insert(token(nextSlot))
        there.insert(nextSlot)
        nextSlot += 1
      }
      #expect(list.startRound())
      var due = there
      var visits = 0
      // Sometimes another round begins before this one has ended.
      let cut = generator.once(in: 3) ? Int.random(in: 0..<8, using: &generator) : Int.max
      while visits < cut, let token = list.next() {
        visits += 1
        try #require(visits < 10_000, "the round does not end")
        #expect(there.contains(token.slot), "somebody who is gone")
        due.remove(token.slot)
        if generator.once(in: 8) {
          list.insert(self.token(nextSlot))
          there.insert(nextSlot)
          nextSlot += 1
        }
        if generator.once(in: 8), let gone = there.randomElement(using: &generator) {
          list.remove(self.token(gone))
          there.remove(gone)
          due.remove(gone)
        }
      }
      #expect(list.count == there.count)
      if visits < cut { #expect(due.isEmpty, "not visited: \(due)") }
    }
  }
}

/// The list in an object, because the macros of the tests cannot call mutating functions.
private final class Round {
  private var list = SubscriberList()

  var count: Int { list.count }
  func insert(_ token: ConnectionToken) { list.insert(token) }
  func remove(_ token: ConnectionToken) { list.remove(token) }
  func startRound() -> Bool { list.startRound() }
  func next() -> ConnectionToken? { list.next() }
}
