package import FleetWire

/// A summary of the records of all devices, by which two devices notice that they know different ones.
///
/// For each of the sixteen buckets of tags, it is the exclusive or of the digests of the records, so the order in which they
/// came makes no difference, and a change of one record costs as much in an account of any size. Tombstones do not count: a
/// device keeps them for good, and the broker does not.
package struct RosterDigest: Equatable, Sendable {
  /// The number of buckets, and of the bytes for each: half of a SHA-256.
  static let (buckets, width) = (16, 16)

  /// The bytes for all buckets: the field of a message.
  package private(set) var bytes = [UInt8](repeating: 0, count: buckets * width)

  package init() {}

  /// Reads the field of a message; nil for another length.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.buckets * Self.width else { return nil }
    self.bytes = bytes
  }

  /// Adds the record of a device, or takes it away again. Any other message changes nothing.
  package mutating func toggle(_ message: SignedMessage?, at tag: DeviceTag) {
    guard let message, message.kind == .record else { return }
    let start = Int(tag.bucket) * Self.width
    for index in 0..<Self.width { bytes[start + index] ^= message.digest[index] }
  }

  /// Returns the summary without the records of another one, which are among its own.
  func without(_ other: Self) -> Self {
    var left = self
    for index in bytes.indices { left.bytes[index] ^= other.bytes[index] }
    return left
  }

  /// Returns the buckets in which two summaries differ.
  func differences(from other: Self) -> [UInt8] {
    (0..<Self.buckets).filter { bucket in
      let range = bucket * Self.width..<(bucket + 1) * Self.width
      return bytes[range] != other.bytes[range]
    }.map(UInt8.init)
  }
}
