import IdentityWire
import Testing

@testable import Proofs

/// The forms of proofs and key sets, and each reason to refuse a proof.
struct ProofTests {
  private static let device = "5f0f1e5a-4f5c-4b8e-9a56-0c1d2e3f4a5b"
  private static let installation = "0b7e3f51-2d2a-4c0e-8f11-5a6b7c8d9e0f"
  private static let issuer = "urn:uuid:\(device)"
  private static let now: Int64 = 1_800_000_000

  private static func claims(
    issuer: String = issuer, subject: String = "urn:uuid:\(installation)", audience: String = #""vault""#,
    device: String = device, times: String = #""iat":1800000000,"nbf":1799999940,"exp":1800000300"#
  ) -> String {
    """
    {"iss":"\(issuer)","sub":"\(subject)","aud":\(audience),\(times),"jti":"1",\
    "identityd":{"device":"\(device)","installation":"\(installation)","app":"org.example.notes"}}
    """
  }

  private static func set(_ key: ProofKey) -> KeySet {
    KeySet([.init(key.publicKey, device: device, issuer: issuer)])
  }

  /// Verifies claims signed by a key, and returns the refusal.
  private static func refusal(
    _ claims: String, _ key: ProofKey, by keys: KeySet? = nil, for audience: String = "vault", at time: Int64 = now
  ) throws -> ProofRefusal? {
    let text = try #require(Proof.sign(Array(claims.utf8), with: key))
    return try refusal(of: String(decoding: text, as: UTF8.self), by: keys ?? set(key), for: audience, at: time)
  }

  private static func refusal(
    of text: String, by keys: KeySet, for audience: String = "vault", at time: Int64 = now
  ) throws -> ProofRefusal? {
    let proof = try #require(Proof(parsing: Array(text.utf8)))
    do {
      try proof.verify(by: keys, for: audience, at: time)
      return nil
    } catch let refusal as ProofRefusal {
      return refusal
    }
  }

  @Test func `the example of RFC 7515 verifies, and no other message`() throws {
    // Appendix A.3.
    let point =
      Base64URL.bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU".utf8)! + Base64URL.bytes(
        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0".utf8)!
    let message = Array(
      "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        .utf8)
    let signature = try #require(
      Base64URL.bytes("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q".utf8))
    let key = PublicProofKey(point: point)
    #expect(try key.verifies(signature, of: message))
    #expect(try !key.verifies(signature, of: message + [0]))
    for place in signature.indices {
      var changed = signature
      changed[place] ^= 1
      #expect(try !key.verifies(changed, of: message))
    }
    #expect(try !key.verifies([UInt8](repeating: 0, count: 64), of: message))
    #expect(try !PublicProofKey(point: [UInt8](repeating: 0, count: 64)).verifies(signature, of: message))
  }

  @Test func `a key signs, and signs the same after it was stored`() throws {
    let key = try ProofKey.random()
    #expect(try ProofKey.random().publicKey != key.publicKey)
    let again = try key.withStoredForm { stored in
      Result { try ProofKey.stored(stored) }
    }.get()
    #expect(again.publicKey == key.publicKey)
    let signature = try #require(again.signature(of: [1, 2, 3]))
    #expect(try key.publicKey.verifies(signature, of: [1, 2, 3]))
  }

  @Test func `damaged stored keys are refused`() throws {
    let key = try ProofKey.random()
    let stored = try key.withStoredForm { stored in stored.indices.map { stored[$0] } }
    for length in 0..<stored.count {
      #expect(throws: ProofKeyFault.refused) { try ProofKey.stored(Array(stored.prefix(length)).span) }
    }
    // The public key is at the end, and is compared with the private one or with the curve.
    var other = stored
    other[other.count - 1] ^= 1
    #expect(throws: ProofKeyFault.refused) { try ProofKey.stored(other.span) }
  }

  @Test func `a proof is accepted by its key set until it expires`() throws {
    let key = try ProofKey.random()
    let set = try #require(KeySet(parsing: Array(Self.set(key).json.utf8)))
    #expect(set == Self.set(key))
    for time in [Self.now - 60, Self.now, Self.now + 299] {
      #expect(try Self.refusal(Self.claims(), key, by: set, at: time) == nil)
    }
    #expect(try Self.refusal(Self.claims(), key, by: set, at: Self.now - 61) == .notYetValid)
    #expect(try Self.refusal(Self.claims(), key, by: set, at: Self.now + 300) == .expired)
    #expect(try Self.refusal(Self.claims(times: #""iat":1"#), key) == .times)
    #expect(try Self.refusal(Self.claims(times: #""iat":1,"nbf":1,"exp":9e99"#), key) == .times)
  }

  @Test func `a proof is for its audience alone`() throws {
    let key = try ProofKey.random()
    for audience in [#""vault""#, #"["billing","vault"]"#] {
      #expect(try Self.refusal(Self.claims(audience: audience), key) == nil)
      #expect(try Self.refusal(Self.claims(audience: audience), key, for: "Vault") == .audience(audience))
    }
    #expect(try Self.refusal(Self.claims(audience: "[]"), key) == .audience("[]"))
    #expect(try Self.refusal(Self.claims(audience: #"{"vault":1}"#), key) == .audience(#"{"vault":1}"#))
  }

  @Test func `a device cannot sign for another one`() throws {
    let (key, other) = (try ProofKey.random(), try ProofKey.random())
    let stranger = "11111111-1111-4111-8111-111111111111"
    var both = Self.set(key)
    both.entries.append(.init(other.publicKey, device: stranger, issuer: "urn:uuid:\(stranger)"))
    #expect(try Self.refusal(Self.claims(), key, by: both) == nil)
    // The other device claims to be this one.
    #expect(try Self.refusal(Self.claims(), other, by: both) == .publisher("iss"))
    #expect(try Self.refusal(Self.claims(issuer: "urn:uuid:\(stranger)"), other, by: both) == .publisher("device"))
    let domain = "spiffe://example.org/device"
    func subject(_ path: String) throws -> ProofRefusal? {
      try Self.refusal(Self.claims(subject: "\(domain)/\(path)"), key)
    }
    #expect(try subject("\(Self.device)/app/org.example.notes") == nil)
    #expect(try subject("\(Self.device)/installation/\(Self.installation)") == nil)
    for path in [
      "\(stranger)/app/org.example.notes", "\(Self.device)/app/org.example.other", "\(Self.device)/app",
      "\(Self.device)/app/org.example.notes/x", "\(Self.device)/installation/\(stranger)",
    ] { #expect(try subject(path) == .publisher("sub"), "\(path)") }
    #expect(try Self.refusal(Self.claims(subject: "urn:uuid:\(stranger)"), key) == .publisher("sub"))
    // A stranger who publishes the key of this device under its own name takes nothing away.
    let claimed = KeySet([.init(key.publicKey, device: stranger, issuer: "urn:uuid:\(stranger)")])
    #expect(try Self.refusal(Self.claims(), key, by: claimed) == .publisher("iss"))
    #expect(try Self.refusal(Self.claims(), key, by: KeySet(claimed.entries + Self.set(key).entries)) == nil)
  }

  @Test func `an altered proof, another key and another algorithm are refused`() throws {
    let (key, other) = (try ProofKey.random(), try ProofKey.random())
    let text = String(decoding: try #require(Proof.sign(Array(Self.claims().utf8), with: key)), as: UTF8.self)
    #expect(try Self.refusal(of: text, by: Self.set(other)) == .unknownKey(key.publicKey.thumbprint))
    #expect(try Self.refusal(of: text, by: KeySet([])) == .unknownKey(key.publicKey.thumbprint))
    let parts = text.split(separator: ".").map(String.init)
    let changed = Base64URL.text(Self.claims(subject: "urn:uuid:\(Self.device)").utf8)
    #expect(try Self.refusal(of: "\(parts[0]).\(changed).\(parts[2])", by: Self.set(key)) == .signature)
    #expect(try Self.refusal(of: "\(parts[0]).\(parts[1]).", by: Self.set(key)) == .signature)
    let identifier = key.publicKey.thumbprint
    for (header, refusal) in [
      (#"{"alg":"none"}"#, ProofRefusal.algorithm("none")),
      (#"{"alg":"HS256","kid":"\#(identifier)"}"#, .algorithm("HS256")),
      (#"{"alg":"es256","kid":"\#(identifier)"}"#, .algorithm("es256")),
      (#"{"kid":"\#(identifier)"}"#, .algorithm("")),
      (#"{"alg":"ES256","kid":"\#(identifier)","crit":["x"]}"#, .critical),
      (#"{"alg":"ES256"}"#, .unknownKey("")),
      // A key of the proof's own does not count (RFC 8725, section 3.10).
      (#"{"alg":"ES256","kid":"\#(identifier)","jwk":{"kty":"EC"}}"#, .signature),
    ] {
      let forged = "\(Base64URL.text(header.utf8)).\(parts[1]).\(parts[2])"
      #expect(try Self.refusal(of: forged, by: Self.set(key)) == refusal)
    }
  }

  @Test(arguments: [
    "", ".", "..", "a.b", "a.b.c.d", "e30.e30", "e30.e30.=", "e30.e3.e30", "e30.W10.e30", "W10.e30.e30",
    "e30.e30.e30.e30.e30", "e31.e30.e30",
  ])
  func `texts that are no proofs are not read`(text: String) {
    #expect(Proof(parsing: Array(text.utf8)) == nil)
  }

  @Test func `a key under the name of another one, or without its device, is left out of a set`() throws {
    let (key, other) = (try ProofKey.random(), try ProofKey.random())
    let json = Self.set(key).json
    for (old, new) in [
      (key.publicKey.thumbprint, other.publicKey.thumbprint), (#""crv":"P-256""#, #""crv":"P-384""#),
      (#""kty":"EC""#, #""kty":"oct""#), (#""use":"sig""#, #""use":"enc""#), (#""alg":"ES256""#, #""alg":"RS256""#),
      (#""device""#, #""dev""#), (#""iss""#, #""is""#), (key.publicKey.x, key.publicKey.x + "A"),
    ] {
      let text = json.replacing(old, with: new)
      #expect(text != json)
      #expect(KeySet(parsing: Array(text.utf8)) == KeySet([]), "\(text)")
    }
    for text in ["", "{}", "[]", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#] {
      #expect(KeySet(parsing: Array(text.utf8)) == nil)
    }
  }

  /// The value was computed with Python's hashlib.
  @Test func `the key ID is the thumbprint of RFC 7638`() throws {
    let point =
      Base64URL.bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU".utf8)! + Base64URL.bytes(
        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0".utf8)!
    #expect(PublicProofKey(point: point).thumbprint == "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U")
  }
}

extension KeySet {
  /// The set in JSON, as `proof keys` has it.
  fileprivate var json: String {
    let keys = entries.map { entry in
      let key = entry.key
      return #"{"kty":"EC","crv":"P-256","x":"\#(key.x)","y":"\#(key.y)","use":"sig","alg":"ES256","#
        + #""kid":"\#(key.thumbprint)","device":"\#(entry.device)","iss":"\#(entry.issuer)"}"#
    }
    return #"{"keys":[\#(keys.joined(separator: ","))]}"#
  }
}
