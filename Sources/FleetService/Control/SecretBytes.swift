import IdentityClient

extension Secret {
  /// Returns a copy of the bytes, which the caller wipes.
  func copy() -> [UInt8] {
    var bytes: [UInt8] = []
    // A growing array would leave copies in memory.
    bytes.reserveCapacity(count)
    withBytes { span in for index in span.indices { bytes.append(span[index]) } }
    return bytes
  }
}
