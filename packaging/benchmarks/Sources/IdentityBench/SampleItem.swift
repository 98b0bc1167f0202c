import Foundation

/// An item that follows from its number alone, with the request lines about it and what they are answered with.
struct SampleItem {
  /// From 0 on.
  let number: Int

  /// A hundred accounts have one service.
  private var name: String { "service=service-\(number / 100) account=account-\(number)@example.org" }
  private var marker: String { "attr.marker=marker-\(number)" }

  /// 64 bytes in Base64.
  private var secret: String {
    var generator = SplitMix(seed: UInt64(number))
    return Data((0..<64).map { _ in UInt8.random(in: .min ... .max, using: &generator) }).base64EncodedString()
  }

  /// Adds it, or replaces it by itself.
  var put: [UInt8] {
    line("item put \(name) data=\(secret) label=\"Sample \(number)\" \(marker) attr.kind=kind-\(number % 10)")
  }

  /// Reads it.
  var read: [UInt8] { line("item read \(name)") }

  /// What the answer to ``read`` begins with.
  var answerToRead: [UInt8] { Array("OK data=\(secret) \(name)".utf8) }

  /// Finds it by its key.
  var findByKey: [UInt8] { line("item find \(name)") }

  /// Finds it by what no other item has.
  var findByAttribute: [UInt8] { line("item find \(marker)") }

  /// What the lines of the answer to either begin with.
  var answerToFind: [[UInt8]] { [Array("* \(name)".utf8), Array("OK 1".utf8)] }

  private func line(_ text: String) -> [UInt8] { Array("\(text)\n".utf8) }
}

/// Numbers that follow from a seed (SplitMix64), so that both sides get the same sequence.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  /// Begins a sequence.
  init(seed: UInt64) { state = seed }

  /// The next number.
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
