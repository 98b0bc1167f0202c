import IdentityWire
import Proofs

/// Proofs and key sets of other programs, and the JSON in them. The input is a proof, a line feed and a key set.
final class ProofTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    for part in parts { try checkJSON(Array(part)) }
    let keys = parts.count > 1 ? KeySet(parsing: Array(parts[1])) : nil
    if let keys {
      try require(keys.entries.count <= KeySet.bound, "\(keys.entries.count) keys")
      for entry in keys.entries {
        let key = entry.key
        try require(PublicProofKey(point: key.point) == key && key.point.count == PublicProofKey.length, "\(entry)")
      }
    }
    guard let proof = Proof(parsing: Array(parts[0])) else { return }
    for set in [keys ?? KeySet([]), KeySet([])] {
      do {
        try proof.verify(by: set, for: "vault", at: 1_800_000_000)
        // No input has a signature by a key of its own set, unless it is a proof of the corpus.
        try require(!set.entries.isEmpty, "a proof without a key is accepted")
      } catch is ProofRefusal {
        continue
      }
    }
  }

  /// A text that is JSON is the same value after it was written.
  private func checkJSON(_ text: [UInt8]) throws {
    guard let value = JSONValue(parsing: text) else { return }
    let written = value.json
    try require(JSONValue(parsing: Array(written.utf8)) == value, "\(written) is another value")
  }
}
