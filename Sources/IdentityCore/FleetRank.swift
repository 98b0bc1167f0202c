/// The rank of a message of the fleet among all valid messages about one device: the order that the service and the daemon
/// share. The greatest one holds, and between two of the same rank the one with the greater SHA-256.
///
/// A message of a later epoch outranks all earlier ones: a removed device can have written those. Within an epoch, a
/// removal outranks each record of its generation, so only a device that joins again outranks a removal. There is one
/// author for each record, so there is nothing to merge.
package struct FleetRank: Comparable, Sendable {
  /// The number of the epoch.
  let epoch: UInt32
  /// The generation of the device.
  let generation: UInt32
  /// Whether the message removes the device.
  let isRemoval: Bool
  /// The counter of the author.
  let counter: UInt64

  package init(epoch: UInt32, generation: UInt32, isRemoval: Bool, counter: UInt64) {
    self.epoch = epoch
    self.generation = generation
    self.isRemoval = isRemoval
    self.counter = counter
  }

  /// Orders by epoch, then by generation, then records below removals, then by counter.
  package static func < (left: Self, right: Self) -> Bool {
    if left.epoch != right.epoch { return left.epoch < right.epoch }
    if left.generation != right.generation { return left.generation < right.generation }
    if left.isRemoval != right.isRemoval { return right.isRemoval }
    return left.counter < right.counter
  }
}
