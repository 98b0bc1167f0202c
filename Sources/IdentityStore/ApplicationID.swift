import CSodium

/// Application IDs for deriving identifiers from the machine-id (sd_id128_get_machine_app_specific(3)): one for each name,
/// the same on every machine and for good.
package enum ApplicationID {
  /// The first 128 bits of BLAKE2b over the base ID, the kind and the name, each behind its length.
  ///
  /// - Returns: nil where libsodium refuses, which it does only for lengths that these are not.
  package static func id(
    below base: (high: UInt64, low: UInt64), kind: String, name: [UInt8]
  ) -> (high: UInt64, low: UInt64)? {
    var message: [UInt8] = []
    for part in [bytes(base.high) + bytes(base.low), Array(kind.utf8), name] {
      message += bytes(UInt64(part.count)) + part
    }
    var digest = [UInt8](repeating: 0, count: 16)
    guard unsafe crypto_generichash(&digest, digest.count, message, UInt64(message.count), nil, 0) == 0 else {
      return nil
    }
    return (half(digest[0..<8]), half(digest[8..<16]))
  }

  private static func bytes(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
  }

  private static func half(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
