/// A signed statement about the calling app, for one audience: a JWT (RFC 7519).
///
/// Any party that has the proof can use it until it expires, so a description of the value does not show it.
public struct IdentityProof: Hashable, Sendable, CustomStringConvertible {
  /// The proof, as a server takes it.
  public let text: String
  /// The time at which the proof expires.
  public let expires: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    text = try fields.word(0)
    expires = try fields.requiredTime("expires")
  }

  /// The time at which the proof expires, without the proof.
  public var description: String { "a proof until \(expires)" }
}

extension IdentityRequest where Answer == IdentityProof {
  /// Requests a proof of the app, which a server verifies by the key set of this device.
  ///
  /// Fails with ``IdentityError/Code/unavailable`` if the proof key cannot sign, or after more than 20 proofs a second.
  ///
  /// - Parameters:
  ///   - audience: The server that the proof is for, 1 to 255 bytes.
  ///   - seconds: The lifetime, 60 to 3,600 seconds; nil for 300.
  ///   - nonce: A text of the server, at most 255 bytes; nil for none.
  ///   - app: The ID of the app; nil for the calling app. Any other app is for admins and apps with `Rights=prove`.
  public static func proof(
    for audience: String, lifetimeInSeconds seconds: Int? = nil, nonce: String? = nil, app: String? = nil
  ) -> IdentityRequest {
    let line = RequestLine.question("prove").operand(audience)
      .attribute("lifetime", seconds.map { "\($0)" }).attribute("nonce", nonce).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try IdentityProof(fields) }
  }
}

extension IdentityRequest where Answer == String {
  /// Requests the key set of this device, a JWK Set (RFC 7517) in JSON.
  public static var proofKeys: IdentityRequest {
    IdentityRequest(RequestLine.question("proof keys")) { (fields) throws(IdentityError) in try fields.word(0) }
  }
}
