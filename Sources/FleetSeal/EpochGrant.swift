import CSodium
package import FleetWire

extension EpochKey {
  /// The number of bytes of a key that is sealed to a device.
  package static let boxLength = SecretKey.length + crypto_box_sealbytes()

  /// Returns the key in a box that only one device can open: the field of a grant. Nil for a public key that is none.
  ///
  /// - Parameter boxKey: the X25519 key of the device.
  package func boxed(to boxKey: PublicKey) -> [UInt8]? {
    var box = [UInt8](repeating: 0, count: Self.boxLength)
    let code = unsafe key.withBytes { key in
      unsafe crypto_box_seal(&box, key, UInt64(SecretKey.length), boxKey.bytes)
    }
    return code == 0 ? box : nil
  }
}

extension PublicKey {
  /// Whether bytes can be sealed to this X25519 key. They cannot to a point of small order, such as zeros: everybody knows
  /// the secret that it makes (RFC 7748, section 6.1).
  package var takesBoxes: Bool {
    var box = [UInt8](repeating: 0, count: crypto_box_sealbytes())
    return unsafe crypto_box_seal(&box, [0], 0, bytes) == 0
  }
}

extension DeviceKeys {
  /// Opens a box that was sealed to this device; nil for any other bytes, or without memory.
  package func unboxed(_ box: [UInt8]) -> SecretKey? {
    guard box.count == EpochKey.boxLength else { return nil }
    var secret = [UInt8](repeating: 0, count: SecretKey.length)
    defer { unsafe sodium_memzero(&secret, secret.count) }
    guard opened(box, into: &secret) else { return nil }
    return SecretKey(consuming: &secret)
  }
}
