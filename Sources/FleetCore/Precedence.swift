package import FleetWire
import IdentityCore

/// The precedence of a message over another one about the same device: by its rank, and then by its SHA-256.
package struct Precedence: Comparable, Sendable {
  private let rank: FleetRank
  private let digest: [UInt8]

  package init(_ message: SignedMessage) {
    rank = FleetRank(
      epoch: message.epoch, generation: message.body.generation, isRemoval: message.kind == .tombstone,
      counter: message.body.counter)
    digest = message.digest
  }

  package static func < (left: Self, right: Self) -> Bool {
    left.rank == right.rank ? left.digest.lexicographicallyPrecedes(right.digest) : left.rank < right.rank
  }
}
