package import FleetWire

/// The rank of a message among all valid messages about one device. The greatest one holds.
///
/// A message of a later epoch outranks all earlier ones: a removed device can have written those. Within an epoch, a
/// removal outranks each record of its generation, so only a device that joins again outranks a removal. There is one
/// author for each record, so there is nothing to merge.
package struct Precedence: Comparable, Sendable {
  /// The number of the epoch.
  package let epoch: UInt32
  /// The generation of the device.
  package let generation: UInt32
  /// Whether the message removes the device.
  package let isRemoval: Bool
  /// The counter of the author.
  package let counter: UInt64
  /// The SHA-256 of the message, which decides between two messages with the same counter.
  package let digest: [UInt8]

  package init(_ message: SignedMessage) {
    epoch = message.epoch
    generation = message.body.generation
    isRemoval = message.kind == .tombstone
    counter = message.body.counter
    digest = message.digest
  }

  /// Orders by epoch, then by generation, then records below removals, then by counter, then by digest.
  package static func < (left: Self, right: Self) -> Bool {
    if left.epoch != right.epoch { return left.epoch < right.epoch }
    if left.generation != right.generation { return left.generation < right.generation }
    if left.isRemoval != right.isRemoval { return right.isRemoval }
    if left.counter != right.counter { return left.counter < right.counter }
    return left.digest.lexicographicallyPrecedes(right.digest)
  }
}
