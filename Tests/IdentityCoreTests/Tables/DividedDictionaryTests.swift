import TestSupport
import Testing

@testable import IdentityCore

struct DividedDictionaryTests {
  private typealias Subject = DividedDictionary<Int, String>

  private func same(_ divided: Subject, _ plain: [Int: String]) -> Bool {
    divided.count == plain.count && divided.values.sorted() == plain.values.sorted()
      && plain.allSatisfy { divided[$0.key] == $0.value }
  }

  @Test func `an empty dictionary has no entries`() {
    let divided = Subject()
    #expect(divided.count == 0)
    #expect(Array(divided.values) == [])
    #expect(divided[1] == nil)
    #expect(divided == Subject())
  }

  @Test(arguments: [1, 63, 64, 65, 128, 129, 1_000, 5_000])
  func `inserted values are found, also where parts are split`(count: Int) {
    var divided = Subject()
    var plain: [Int: String] = [:]
    for key in 0..<count {
      divided[key] = "\(key)"
      plain[key] = "\(key)"
      if divided.count != key + 1 { Issue.record("\(divided.count) of \(key + 1)") }
    }
    #expect(same(divided, plain))
    for key in [-1, count, .max, .min] { #expect(divided[key] == nil) }
  }

  @Test func `replacing a value or removing a missing one does not change the count`() {
    var divided = Subject()
    for key in 0..<200 { divided[key] = "old" }
    for key in 0..<200 { divided[key] = "new" }
    divided[777] = nil
    #expect(divided.count == 200)
    #expect(divided.values.allSatisfy { $0 == "new" })
    divided[5] = nil
    divided[5] = nil
    #expect(divided.count == 199)
    #expect(divided[5] == nil)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `after random changes it equals a plain dictionary`(seed: UInt64) {
    var random = SeededGenerator(seed)
    var divided = Subject()
    var plain: [Int: String] = [:]
    var copies: [(Subject, [Int: String])] = []
    for step in 0..<12_000 {
      // The dictionary grows, shrinks to nearly nothing, and grows again.
      let grows = (step / 3_000).isMultiple(of: 2)
      let key = Int.random(in: 0..<1_500, using: &random)
      let value = random.once(in: 8) != grows ? "\(step)" : nil
      divided[key] = value
      plain[key] = value
      if divided.count != plain.count || divided[key] != plain[key] { Issue.record("step \(step)") }
      if step.isMultiple(of: 1_000) { copies.append((divided, plain)) }
    }
    #expect(same(divided, plain))
    for (divided, plain) in copies { #expect(same(divided, plain)) }
  }

  @Test(arguments: [0, 1, 64, 65, 3_000])
  func `equality does not depend on the order of the changes`(count: Int) {
    var straight = Subject()
    for key in 0..<count { straight[key] = "\(key)" }
    var roundabout = Subject()
    for key in (0..<4_000).reversed() { roundabout[key] = "other" }
    for key in count..<4_000 { roundabout[key] = nil }
    for key in 0..<count { roundabout[key] = "\(key)" }
    #expect(straight == roundabout && roundabout == straight)
    #expect(same(roundabout, Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, "\($0)") })))
  }

  @Test(arguments: [0, 1, 64, 65, 3_000])
  func `dictionaries with different keys, values or counts are unequal`(count: Int) {
    var divided = Subject()
    for key in 0..<count { divided[key] = "v" }
    var (more, moved, changed) = (divided, divided, divided)
    more[count] = "v"
    #expect(more != divided && divided != more)
    guard count > 0 else { return }
    moved[count] = "v"
    moved[0] = nil
    changed[count - 1] = "w"
    for other in [moved, changed] { #expect(other != divided && divided != other) }
    more[count] = nil
    #expect(more == divided)
  }

  @Test func `copies are independent`() {
    var first = Subject()
    for key in 0..<500 { first[key] = "a" }
    var second = first
    second[3] = "b"
    second[1_000] = "b"
    first[4] = "c"
    first[5] = nil
    #expect((first[3], first[4], first[5], first[1_000]) == ("a", "c", nil, nil))
    #expect((second[3], second[4], second[5], second[1_000]) == ("b", "a", "a", "b"))
    #expect((first.count, second.count) == (499, 501))
    for key in 0..<2_000 { first[key] = nil }
    #expect(first == Subject())
    #expect(second.count == 501 && Array(second.values).count == 501)
  }

  @Test func `a value can be changed in place`() {
    var divided = DividedDictionary<Int, [String]>()
    divided[1]?.append("nowhere")
    #expect(divided.count == 0)
    divided[1] = ["a"]
    divided[1]?.append("b")
    #expect(divided[1] == ["a", "b"])
    #expect(divided.count == 1)
  }
}
