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

/// A secret in an answer.
struct SecretAttribute {
  /// The name of the attribute, which is the first one of the answer.
  let name: String
  /// The bytes of its value, which need no quotes.
  let value: Secret
}
