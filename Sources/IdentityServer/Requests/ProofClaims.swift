import IdentityCore
import IdentityStore
import IdentityWire

/// The claims of a proof (identityd-protocol(7), section "PROOFS").
struct ProofClaims {
  let statement: ProofStatement
  /// The peer that the proof is about; nil for a proof about another app than the peer's.
  let peer: Peer?
  let settings: ProofSettings
  /// The identifier of the boot, for the app; nil for a proof about another app.
  let boot: UUID?
  /// The source of the master key, which protects a key of the process.
  let keySource: KeySource?
  /// The number of the proof.
  let identifier: UUID
  let issued: Timestamp

  /// The time at which the proof expires.
  var expires: Timestamp { Timestamp(milliseconds: (seconds + statement.request.lifetime) * 1_000) }

  private var seconds: Int64 { issued.seconds }
  private var device: UUID { statement.deviceIdentifier.value }

  /// The claims in JSON.
  var json: [UInt8] {
    var claims = ObjectBytes()
    claims.add("iss", settings.issuer(of: device))
    claims.add("sub", subject)
    claims.add("aud", statement.request.audience)
    claims.add("iat", seconds)
    // A verifier without leeway may be a second behind.
    claims.add("nbf", seconds - 60)
    claims.add("exp", seconds + statement.request.lifetime)
    claims.add("jti", identifier)
    claims.add("nonce", statement.request.nonce)
    claims.add("identityd", facts)
    return claims.ended
  }

  private var facts: ObjectBytes {
    var facts = ObjectBytes()
    facts.add("device", device)
    facts.add("device_origin", statement.deviceIdentifier.origin.rawValue)
    facts.add("installation", statement.installationIdentifier)
    facts.add("vendor", statement.vendorIdentifier)
    facts.add("app", statement.app)
    facts.add("boot", boot)
    if let peer {
      facts.add("user", Int64(peer.userID))
      if peer.place.owner == nil { facts.add("unit", peer.place.unit) } else { facts.add("user_unit", peer.place.unit) }
      facts.add("container", peer.place.containerName)
      if peer.place.isContained { facts.add("contained", true) }
    }
    facts.add("by", statement.asker)
    facts.add("version", statement.release?.version)
    facts.add("build", statement.release?.build)
    facts.add("key", statement.key.pair.place == .tpm2 ? ProofKeyPlace.tpm2.rawValue : keySource?.rawValue)
    facts.add("suspect", statement.suspicion?.rawValue)
    if settings.owner != nil { facts.add("daemon", "user") }
    return facts
  }

  /// The subject: a SPIFFE ID with a trust domain, else the installation.
  private var subject: String {
    guard let domain = settings.trustDomain, settings.owner == nil else {
      return "urn:uuid:\(statement.installationIdentifier)"
    }
    let path = "spiffe://\(domain)/device/\(device)"
    return statement.app.isSPIFFESegment
      ? "\(path)/app/\(statement.app)" : "\(path)/installation/\(statement.installationIdentifier)"
  }
}

/// An object in JSON under construction, as the bytes that are signed. No name repeats.
private struct ObjectBytes {
  private var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(1_024) }

  /// The object.
  var ended: [UInt8] { bytes + [UInt8(ascii: "}")] }

  private mutating func begin(_ name: String) {
    bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: name.utf8)
    bytes.append(contentsOf: "\":".utf8)
  }

  mutating func add(_ name: String, _ text: Text?) {
    guard let text else { return }
    begin(name)
    WordEncoder.appendQuoted(text.bytes.span, to: &bytes)
  }

  mutating func add(_ name: String, _ text: String?) { if let text { add(name, Text(text)) } }

  mutating func add(_ name: String, _ uuid: UUID?) {
    guard let uuid else { return }
    begin(name)
    bytes.append(UInt8(ascii: "\""))
    uuid.append(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  mutating func add(_ name: String, _ number: Int64) {
    begin(name)
    bytes.append(contentsOf: "\(number)".utf8)
  }

  mutating func add(_ name: String, _ flag: Bool) {
    begin(name)
    bytes.append(contentsOf: "\(flag)".utf8)
  }

  mutating func add(_ name: String, _ object: ObjectBytes) {
    begin(name)
    bytes.append(contentsOf: object.ended)
  }
}

extension Text {
  /// Whether the text may be a segment of the path of a SPIFFE ID (SPIFFE-ID, section 2.2).
  fileprivate var isSPIFFESegment: Bool {
    guard !isEmpty, self != ".", self != ".." else { return false }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }
}
