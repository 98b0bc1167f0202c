import CSodium
package import IdentityCore

extension Token {
  convenience init(_ record: TokenRecord) { self.init(record, fingerprint: Self.fingerprint(of: record.value)) }

  /// Returns a fingerprint that identifies a push token in places that must not contain the token itself.
  ///
  /// The fingerprint is the first 16 hexadecimal digits of the SHA-256 of the token. A holder of the token can compute
  /// it with `printf %s "$token" | sha256sum`.
  package static func fingerprint(of value: Text) -> Text {
    Text(trusted: SHA256.digits(of: value.bytes, first: 8))
  }
}

extension FleetRecord {
  /// Returns the SHA-256 of a message that is given in Base64, as hexadecimal digits.
  package static func digest(of message: Text) -> Text {
    Text(trusted: SHA256.digits(of: Base64.bytes(message.bytes) ?? [], first: SHA256.length))
  }
}

/// The hash function SHA-256.
private enum SHA256 {
  /// The length of a hash, in bytes.
  static let length = Int(crypto_hash_sha256_BYTES)

  /// Returns the first bytes of the hash of other bytes, as hexadecimal digits.
  static func digits(of bytes: [UInt8], first count: Int) -> [UInt8] {
    var digits: [UInt8] = []
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length) { hash in
      guard let start = hash.baseAddress else { return }
      // Always returns 0.
      _ = unsafe crypto_hash_sha256(start, bytes, UInt64(bytes.count))
      unsafe digits.append(hexadecimal: UnsafeMutableBufferPointer(rebasing: hash.prefix(count)))
    }
    return digits
  }
}
