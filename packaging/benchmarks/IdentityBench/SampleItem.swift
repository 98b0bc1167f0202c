import Foundation

/// A sample item, derived from its number, with its request lines and their answers.
struct SampleItem {
  /// The number, from 0.
  let number: Int

  /// The service and the account. Each service has a hundred accounts.
  private var name: String { "service=service-\(number / 100) account=account-\(number)@example.org" }
  private var marker: String { "attr.marker=marker-\(number)" }

  /// The secret: 64 bytes in Base64.
  private var secret: String {
    var generator = SplitMix(seed: UInt64(number))
    return Data((0..<64).map { _ in UInt8.random(in: .min ... .max, using: &generator) }).base64EncodedString()
  }

  /// The request that adds the item, or replaces it with the same content.
  var put: [UInt8] {
    line("item put \(name) data=\(secret) label=\"Sample \(number)\" \(marker) attr.kind=kind-\(number % 10)")
  }

  /// The request that reads the item.
  var read: [UInt8] { line("item read \(name)") }

  /// The beginning of the answer to ``read``.
  var answerToRead: [UInt8] { Array("OK data=\(secret) \(name)".utf8) }

  /// The request that finds the item by its key.
  var findByKey: [UInt8] { line("item find \(name)") }

  /// The request that finds the item by an attribute that no other item has.
  var findByAttribute: [UInt8] { line("item find \(marker)") }

  /// The beginnings of the lines that answer ``findByKey`` or ``findByAttribute``.
  var answerToFind: [[UInt8]] { [Array("* \(name)".utf8), Array("OK 1".utf8)] }

  private func line(_ text: String) -> [UInt8] { Array("\(text)\n".utf8) }
}

/// Random numbers from a seed (SplitMix64), so that both sides get the same sequence.
struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  /// Starts the sequence of a seed.
  init(seed: UInt64) { state = seed }

  /// Returns the next number.
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
