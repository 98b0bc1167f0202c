import IdentityWire

/// The public proof keys that are valid now, as a JWK Set (RFC 7517, section 5).
///
/// Each key names the device that published it and the issuer of its proofs. General verifiers ignore these members, so
/// they must have one set for each device.
package struct KeySet: Equatable, Sendable {
  /// A key with its publisher.
  package struct Entry: Equatable, Sendable {
    package let key: PublicProofKey
    /// The device identifier of the publisher.
    package let device: String
    /// The issuer that the proofs of the key name.
    package let issuer: String

    package init(_ key: PublicProofKey, device: String, issuer: String) {
      self.key = key
      self.device = device
      self.issuer = issuer
    }
  }

  /// The keys, the one that signs first.
  package var entries: [Entry]

  package init(_ entries: [Entry]) { self.entries = entries }

  /// The longest set that is read, in bytes.
  package static let length = 33_554_432
  /// The number of keys that ``init(parsing:)`` reads at most.
  package static let bound = 65_536

  /// Reads a set that an identityd published. Keys of other kinds are left out, as RFC 7517 demands; nil for anything else.
  package init?(parsing bytes: [UInt8]) {
    guard let set = JSONValue(parsing: bytes), case .array(let keys)? = set["keys"], keys.count <= Self.bound else {
      return nil
    }
    entries = keys.compactMap(Entry.init(jwk:))
  }
}

extension KeySet.Entry {
  /// Reads one key; nil for a key that no proof of an identityd can be verified with.
  init?(jwk: JSONValue) {
    guard jwk["kty"]?.text == "EC", jwk["crv"]?.text == "P-256", let x = jwk["x"]?.text, let y = jwk["y"]?.text,
      [nil, "sig"].contains(jwk["use"]?.text), [nil, "ES256"].contains(jwk["alg"]?.text),
      let device = jwk["device"]?.text, let issuer = jwk["iss"]?.text,
      let first = Base64URL.bytes(x.utf8), let second = Base64URL.bytes(y.utf8), first.count == 32, second.count == 32
    else { return nil }
    self.init(PublicProofKey(point: first + second), device: device, issuer: issuer)
    // A name of another key would let the wrong key of a set count.
    guard jwk["kid"]?.text == key.thumbprint else { return nil }
  }
}
