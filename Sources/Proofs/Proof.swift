package import IdentityWire

/// A signed statement about one app on this device, for one audience: a JWT (RFC 7519) in the compact form of RFC 7515.
package struct Proof: Sendable {
  /// The longest proof that is read, in bytes.
  package static let length = 16_384

  /// The claims. ``init(parsing:)`` does not verify them.
  package let claims: JSONValue
  private let header: JSONValue
  private let signed: [UInt8]
  private let signature: [UInt8]

  /// Signs claims, which are an object in JSON.
  ///
  /// - Returns: the proof; nil if the library refuses.
  package static func sign(_ claims: [UInt8], with key: ProofKey) -> [UInt8]? {
    let header = #"{"alg":"ES256","kid":"\#(key.publicKey.thumbprint)","typ":"JWT"}"#
    var proof: [UInt8] = []
    proof.reserveCapacity((header.utf8.count + claims.count) * 4 / 3 + 96)
    Base64URL.append(Array(header.utf8).span, to: &proof)
    proof.append(UInt8(ascii: "."))
    Base64URL.append(claims.span, to: &proof)
    guard let signature = key.signature(of: proof) else { return nil }
    proof.append(UInt8(ascii: "."))
    Base64URL.append(signature.span, to: &proof)
    return proof
  }

  /// Reads a proof; nil if the text is no JWT, or longer than ``length``.
  package init?(parsing text: [UInt8]) {
    let parts = text.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard text.count <= Self.length, parts.count == 3, let header = Base64URL.bytes(parts[0]),
      let claims = Base64URL.bytes(parts[1]), let signature = Base64URL.bytes(parts[2]),
      let header = JSONValue(parsing: header), case .object = header,
      let claims = JSONValue(parsing: claims), case .object = claims
    else { return nil }
    self.header = header
    self.claims = claims
    self.signature = signature
    signed = Array(parts[0] + [UInt8(ascii: ".")] + parts[1])
  }

  /// Verifies the proof by a key set, for an audience, at a time in seconds since 1970.
  ///
  /// - Throws: ``ProofRefusal``, unless everything holds.
  package func verify(by keys: KeySet, for audience: String, at now: Int64) throws {
    // The algorithm is compared before anything else, so a proof cannot choose another one (RFC 8725, section 3.1).
    let algorithm = header["alg"]?.text ?? ""
    guard algorithm == "ES256" else { throw ProofRefusal.algorithm(algorithm) }
    guard header["crit"] == nil else { throw ProofRefusal.critical }
    let identifier = header["kid"]?.text ?? ""
    // A hostile device can publish the key of another one under its own name, so one key may have several publishers.
    let entries = keys.entries.filter { $0.key.thumbprint == identifier }
    guard let key = entries.first?.key else { throw ProofRefusal.unknownKey(identifier) }
    guard try key.verifies(signature, of: signed) else { throw ProofRefusal.signature }
    try verifyTimes(at: now)
    guard isMeant(for: audience) else { throw ProofRefusal.audience(claims["aud"]?.json ?? "") }
    let device = claims["identityd"]?["device"]?.text
    try verifyPublisher(entries.first { $0.device == device } ?? entries[0])
  }

  private func verifyTimes(at now: Int64) throws(ProofRefusal) {
    guard let begin = claims["nbf"]?.integer, claims["iat"]?.integer != nil, let end = claims["exp"]?.integer else {
      throw .times
    }
    guard now >= begin else { throw .notYetValid }
    guard now < end else { throw .expired }
  }

  private func isMeant(for audience: String) -> Bool {
    switch claims["aud"] {
    case .string(let text)?: text.utf8.elementsEqual(audience.utf8)
    case .array(let texts)?: texts.contains { $0.text?.utf8.elementsEqual(audience.utf8) == true }
    default: false
    }
  }

  /// Compares issuer, device and subject with the publisher of the key: root on any device can sign claims about another.
  private func verifyPublisher(_ entry: KeySet.Entry) throws(ProofRefusal) {
    guard claims["iss"]?.text == entry.issuer else { throw .publisher("iss") }
    let facts = claims["identityd"]
    guard facts?["device"]?.text == entry.device else { throw .publisher("device") }
    guard let subject = claims["sub"]?.text, let installation = facts?["installation"]?.text else {
      throw .publisher("sub")
    }
    if subject == "urn:uuid:\(installation)" { return }
    // spiffe://DOMAIN/device/DEVICE/app/APP or …/installation/UUID
    let parts = subject.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 7, parts[0] == "spiffe:", parts[1].isEmpty, !parts[2].isEmpty, parts[3] == "device",
      parts[4] == entry.device,
      parts[5] == "app" && parts[6] == facts?["app"]?.text || parts[5] == "installation" && parts[6] == installation
    else { throw .publisher("sub") }
  }
}

/// The reason why a proof is refused.
package enum ProofRefusal: Error, Equatable, CustomStringConvertible {
  /// The proof names another algorithm than ES256.
  case algorithm(String)
  /// The proof has an extension that its verifier must understand (RFC 7515, section 4.1.11).
  case critical
  /// The key set has no key with the ID that the proof names.
  case unknownKey(String)
  /// The signature is not the key's signature of this proof.
  case signature
  /// The proof does not say from when and until when it is valid.
  case times
  /// The proof is valid from a later time.
  case notYetValid
  /// The proof has expired.
  case expired
  /// The proof is for another audience, which is given in JSON.
  case audience(String)
  /// The claim of this name does not belong to the device that published the key.
  case publisher(String)

  package var description: String {
    switch self {
    case .algorithm(let name): "the algorithm is \(WordEncoder.quoted(name)), and proofs are signed with ES256 only"
    case .critical: "it requires an extension (crit), and proofs have none"
    case .unknownKey(let name):
      "the key set does not have its key \(WordEncoder.quoted(name)); fetch the key set again, unless the key was revoked"
    case .signature: "its signature is wrong: it was altered, or made with another key"
    case .times: "it has no iat, nbf or exp in whole seconds"
    case .notYetValid: "it is not valid yet; compare the clocks of this machine and of the device"
    case .expired: "it has expired"
    case .audience(let name): "it is for the audience \(name.isEmpty ? "of nobody" : name)"
    case .publisher(let claim): "its \(claim) is not that of the device that published the key"
    }
  }
}
