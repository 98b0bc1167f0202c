import CSodium
package import FleetWire
package import IdentityCore

/// The keys of an account that follow from its root. A device that has the root is a member.
package struct AccountKeys: Sendable {
  /// The root.
  package let root: SecretKey
  /// The name of the account at a broker.
  package let id: AccountID
  /// The key of the first epoch.
  package let firstEpoch: EpochKey
  private let topicKey: SecretKey

  /// Derives the keys; nil if there is not enough memory.
  package init?(root: SecretKey) {
    guard let topicKey = root.derived(1, "IDfleet1"), let first = root.derived(2, "IDfleet1"),
      let id = AccountID(bytes: topicKey.hash(Array("account".utf8)))
    else { return nil }
    self.root = root
    self.topicKey = topicKey
    self.id = id
    firstEpoch = EpochKey(number: 1, key: first)
  }

  /// Returns the name of a device at a broker.
  package func tag(of device: UUID) -> DeviceTag {
    let hash = topicKey.hash(device.bytes)
    return DeviceTag(high: UInt64(bigEndian: hash.prefix(8)), low: UInt64(bigEndian: hash.suffix(8)))
  }

  /// Returns the password of the account in an epoch, at a broker whose users are accounts: 32 letters of base64url.
  ///
  /// It follows from the key of the epoch, and in the first epoch from the root. So a device that a rotation left out does
  /// not know the next one.
  ///
  /// A text, because it ends up in the memory of libmosquitto and on the screen of the broker's admin.
  package func brokerPassword(in epoch: EpochKey) -> String {
    var secret = [UInt8](repeating: 0, count: 24)
    defer { unsafe sodium_memzero(&secret, secret.count) }
    unsafe (epoch.number == firstEpoch.number ? root : epoch.key).withBytes { key in
      // Fails only for lengths out of range.
      _ = unsafe crypto_kdf_derive_from_key(&secret, secret.count, 3, "IDfleet1", key)
    }
    // The 33rd byte is the zero that ends the text.
    var text = [CChar](repeating: 0, count: 33)
    defer { unsafe sodium_memzero(&text, text.count) }
    unsafe sodium_bin2base64(&text, text.count, secret, secret.count, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
    return String(decoding: text.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The key of an epoch, or that of a join code, which belongs to epoch 0.
package struct EpochKey: Sendable {
  /// The number of the epoch.
  package let number: UInt32
  /// The key.
  package let key: SecretKey

  package init(number: UInt32, key: SecretKey) {
    self.number = number
    self.key = key
  }

  /// Calls a closure with the address of the key that seals messages of one kind. The key is wiped afterwards.
  ///
  /// The key is not in guarded memory, because to map and protect that takes as long as to open a message.
  func withSealKey<Result>(
    of kind: MessageKind, _ version: EnvelopeVersion = .one, _ body: (UnsafePointer<UInt8>) -> Result
  ) -> Result {
    var sealKey = [UInt8](repeating: 0, count: SecretKey.length)
    defer { unsafe sodium_memzero(&sealKey, sealKey.count) }
    // Each key has one use: that of version 1 seals, and that of version 2 makes the keys that seal.
    let context = version == .one ? "IDflkind" : "IDflkin2"
    unsafe key.withBytes { key in
      // Fails only for lengths out of range.
      _ = unsafe crypto_kdf_derive_from_key(&sealKey, sealKey.count, UInt64(kind.rawValue), context, key)
    }
    return unsafe body(sealKey)
  }
}
