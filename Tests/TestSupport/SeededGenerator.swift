/// Random numbers that are the same in every run (SplitMix64), so that a failure can be reproduced.
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  /// Starts the sequence of a seed.
  package init(_ seed: UInt64) { state = seed }

  /// Returns the next 64 bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// Returns true with a probability of 1 in `times`.
  package mutating func once(in times: Int) -> Bool { Int.random(in: 0..<times, using: &self) == 0 }

  /// Returns a random element.
  package mutating func one<Element>(of elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &self)]
  }
}
