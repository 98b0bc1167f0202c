// Proofs and their keys (identityd-protocol(7), section "PROOFS").
extension RegistryCommand {
  package static func prove(_ request: ProofRequest) -> Self { Self(ProveRule(request: request, made: nil)) }
  package static var proofKeys: Self { Self(ProofKeysRule()) }
  package static func rotateProofKey(revokes: Bool) -> Self { Self(RotateProofKeyRule(revokes: revokes, made: nil)) }

  /// Whether the command asks for a proof, and not for a key alone.
  package var isForProof: Bool { rule is ProveRule }

  /// The command with a key pair that was made for it; nil if the command never stores one.
  package func with(_ made: ProofKeyPair) -> Self? {
    switch rule {
    case let rule as ProveRule: Self(ProveRule(request: rule.request, made: made))
    case let rule as RotateProofKeyRule: Self(RotateProofKeyRule(revokes: rule.revokes, made: made))
    default: nil
    }
  }
}

/// The content of a request for a proof.
package struct ProofRequest: Equatable, Sendable {
  /// The relying party that the proof is for.
  package let audience: Text
  /// The time for which the proof is valid, in seconds.
  package let lifetime: Int64
  /// The text by which the relying party recognizes an answer to its own question.
  package let nonce: Text?
  /// The app that the proof is about; nil for the peer's own.
  package let app: Text?

  package init(
    audience: Text, lifetime: Int64 = ProofRequest.standardLifetime, nonce: Text? = nil, app: Text? = nil
  ) {
    self.audience = audience
    self.lifetime = lifetime
    self.nonce = nonce
    self.app = app
  }
}

/// The settings about proofs (identityd.conf(5), section "[Proof]").
package struct ProofSettings: Equatable, Sendable {
  /// The issuer, with `%d` in place of the device identifier; nil for a name that the device identifier makes.
  package var issuer: Text?
  /// The trust domain of subjects in the form of SPIFFE; nil for subjects that are UUIDs.
  package var trustDomain: Text?
  /// The time from which a new key is published to that from which it signs, in seconds.
  package var overlap: Int64 = 3_600
  /// The place of keys that are made from now on.
  package var place = ProofKeyPlace.software
  /// The requests that the names of credentials stand for; at most ``Bound/proofAudiences``.
  package var audiences: [Text: ProofRequest] = [:]
  /// The owner of the daemon, if it is that of an ordinary user, who can have it say anything.
  package var owner: UInt32?

  package init() {}

  /// Returns the request that the name of a credential stands for: by default, the name is the audience.
  package func request(for name: Text) -> ProofRequest { audiences[name] ?? ProofRequest(audience: name) }

  /// Returns the issuer of the proofs of a device.
  package func issuer(of device: UUID) -> String {
    if let owner { return "urn:uuid:\(device):user:\(owner)" }
    guard let issuer else { return "urn:uuid:\(device)" }
    // Written without a search for a text, because each program would contain the whole engine (see Decisions/0036).
    var bytes: [UInt8] = []
    var rest = issuer.bytes[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.first == UInt8(ascii: "d") {
        bytes += Array("\(device)".utf8)
        rest.removeFirst()
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// All that a proof says, apart from the facts that only the server knows.
///
/// A class, because each reply has room for one, and is copied more often than it has any.
package final class ProofStatement: Sendable {
  package let request: ProofRequest
  /// The key that signs the proof.
  package let key: StoredProofKey
  /// The app that the proof is about.
  package let app: Text
  /// The identifiers of the device, which is that of all apps, of the app and of the vendor.
  package let deviceIdentifier: Identifier
  package let installationIdentifier: UUID
  package let vendorIdentifier: UUID
  /// The version that the app has reported; nil if it has reported none.
  package let release: Release?
  /// The cause of the suspicion that the device identifier is another machine's, too; nil if there is none.
  package let suspicion: Cause?
  /// The party that asked for the proof, if it is another one than the app.
  package let asker: Text?

  init(
    request: ProofRequest, key: StoredProofKey, app: Text, deviceIdentifier: Identifier,
    installationIdentifier: UUID, vendorIdentifier: UUID, release: Release?, suspicion: Cause?, asker: Text?
  ) {
    self.request = request
    self.key = key
    self.app = app
    self.deviceIdentifier = deviceIdentifier
    self.installationIdentifier = installationIdentifier
    self.vendorIdentifier = vendorIdentifier
    self.release = release
    self.suspicion = suspicion
    self.asker = asker
  }
}

// MARK: - Keys

extension Registry {
  /// The keys that count on this machine, oldest first.
  var proofKeysInForce: [StoredProofKey] {
    guard let device = self[.device]?.value else { return [] }
    return proofKeys.filter { key in
      key.device == device
        && (key.machine == nil || machine?.fingerprint.machine == nil || key.machine == machine?.fingerprint.machine)
    }
  }

  /// The keys of the key set at a time, oldest first.
  package func publishedProofKeys(at now: Timestamp) -> [StoredProofKey] {
    proofKeysInForce.filter { key in key.leaves.map { now < $0 } ?? true }
  }

  /// The key that signs proofs at a time; nil if there is none.
  ///
  /// Before the first of them signs, because the clock was set back, the oldest one does.
  package func signingProofKey(at now: Timestamp) -> StoredProofKey? {
    let published = publishedProofKeys(at: now)
    return published.last { $0.signs <= now } ?? published.first
  }

  /// Whether a command needs a key pair that was made for it.
  package func needsProofKey(_ command: RegistryCommand, at now: Timestamp) -> Bool {
    switch command.rule {
    case let rule as ProveRule: rule.made == nil && signingProofKey(at: now) == nil
    case let rule as RotateProofKeyRule: rule.made == nil
    default: false
    }
  }
}

extension Plan {
  /// Stores a new key, which signs from a time on.
  ///
  /// - Returns: the key.
  mutating func add(_ pair: ProofKeyPair, signingFrom signs: Timestamp, at now: Timestamp) -> StoredProofKey? {
    guard let device = registry[.device]?.value else { return nil }
    // Of keys that are locked, the oldest ones end.
    for key in registry.proofKeys.dropLast(Bound.proofKeys - 1) { add(.proofKeyForgotten(key, .lost)) }
    let key = StoredProofKey(
      number: (registry.proofKeys.last?.number ?? 0) + 1, pair: pair, device: device,
      machine: registry.machine?.fingerprint.machine, created: now, signs: signs)
    add(.proofKeyStored(key))
    return key
  }

  /// Ends keys.
  mutating func endProofKeys(_ end: ProofKeyEnd, where isMeant: (StoredProofKey) -> Bool = { _ in true }) {
    for key in registry.proofKeys where isMeant(key) { add(.proofKeyForgotten(key, end)) }
  }
}

/// The reason why a proof key was removed.
package enum ProofKeyEnd: Equatable, Sendable {
  /// Another key signs in its place.
  case rotated
  /// Its device identifier or its machine has ended, so no proof of the key will be made any more.
  case lost
}

// MARK: - Rules

/// `prove AUDIENCE`: makes a proof of the peer's app, and the identifiers and the key for it if they are missing.
struct ProveRule: RegistryRule {
  let request: ProofRequest
  /// A key pair in case there is no key.
  let made: ProofKeyPair?
  var namedApp: Text? { request.app }
  var basis: Basis { Basis(found: [.apps, .identifiers], whole: [.settings, .proofs]) }
  var answerKind: AnswerKind { .proof }

  func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    let id = try registry.app(named: request.app, by: peer, orBy: .prove)
    try requireLinkable(id, in: registry, for: peer)
    let now = context?.now ?? surroundings.now()
    let scopes = [Scope.device, registry.scope(.installation, app: id), registry.scope(.vendor, app: id)]
    var plan = Plan(registry)
    if registry.signingProofKey(at: now) == nil || scopes.contains(where: { registry[$0] == nil }) {
      guard let context else { return nil }
      if let change = try registry.firstUse(of: id, context) { plan.add(change) }
      for scope in scopes where plan.registry[scope] == nil {
        plan.put(try plan.registry.fresh(scope, cause: .firstUse, context))
      }
      if plan.registry.signingProofKey(at: now) == nil {
        guard let made else { throw .unavailable("the proof key has ended meanwhile; try again") }
        _ = plan.add(made, signingFrom: now, at: now)
      }
    }
    guard let key = plan.registry.signingProofKey(at: now), let device = plan.registry[scopes[0]],
      let installation = plan.registry[scopes[1]], let vendor = plan.registry[scopes[2]]
    else { throw .broken("the identifiers of the app are missing") }
    let isOwn = id == peer.app && request.app == nil
    var reply = Reply()
    reply.proof = ProofStatement(
      request: request, key: key, app: id, deviceIdentifier: device,
      installationIdentifier: installation.value, vendorIdentifier: vendor.value,
      release: plan.registry.versions[.app(id)].current?.release, suspicion: plan.registry.machine?.suspicion?.cause,
      asker: isOwn ? nil : peer.isAdmin ? Text("uid:\(peer.userID)") : peer.app)
    return Decision(changes: plan.changes, reply: reply)
  }

  /// Checks that the app may be linked to the others by the key, the issuer and the subject.
  private func requireLinkable(_ id: Text, in registry: Registry, for peer: Peer) throws(Refusal) {
    if request.app != nil, registry.apps[id]?.suspended != nil {
      throw .notFound("\(id) is suspended, because its manifest is missing")
    }
    guard registry.deviceScope(of: id) == .device || request.app == nil && registry.isLinkable(id) else {
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "DeviceIdentifier=shared or Proof=linkable in the manifest of \(id)")
    }
  }
}

/// `proof keys`: returns the key set of this device, and makes nothing.
struct ProofKeysRule: RegistryRule {
  var basis: Basis { Basis(whole: [.settings, .identifiers, .proofs]) }

  func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    _ = try registry.app(named: nil, by: peer)
    guard registry.may(peer, see: .sharing) || registry.isLinkable(peer.app) else {
      throw .denied(
        app: peer.app, userID: peer.userID, grant: "DeviceIdentifier=shared or Proof=linkable in its manifest")
    }
    guard let device = registry[.device]?.value else { return Decision(reply: .done(.string(JSONWebKey.set([])))) }
    let issuer = surroundings.proofs.issuer(of: device)
    let keys = registry.publishedProofKeys(at: surroundings.now()).map(\.pair).map { pair in
      JSONWebKey(identifier: "\(pair.identifier)", x: "\(pair.x)", y: "\(pair.y)", device: device, issuer: issuer)
    }
    return Decision(reply: .done(.string(JSONWebKey.set(keys))))
  }
}

extension Text {
  /// Whether the text is printable ASCII without a space and without characters that JSON escapes, as an issuer has to be.
  package var isPlainInJSON: Bool {
    bytes.allSatisfy { (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
  }
}

/// A public proof key with its publisher, for a key set (RFC 7517).
///
/// No value has a character that JSON escapes: texts in Base64URL, a UUID, and an issuer for which
/// ``Text/isPlainInJSON`` holds.
package struct JSONWebKey {
  private let text: String

  /// - Parameters:
  ///   - identifier: the thumbprint of the key (RFC 7638).
  ///   - x: the first coordinate in Base64URL, and `y` the second one.
  ///   - device: the device identifier of the publisher.
  ///   - issuer: the issuer that the proofs of the key name.
  package init(identifier: String, x: String, y: String, device: UUID, issuer: String) {
    text =
      #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","use":"sig","alg":"ES256","kid":"\#(identifier)","#
      + #""device":"\#(device)","iss":"\#(issuer)"}"#
  }

  /// Returns a key set in JSON.
  package static func set(_ keys: [JSONWebKey]) -> String {
    #"{"keys":[\#(keys.map(\.text).joined(separator: ","))]}"#
  }
}

/// `proof rotate`: publishes a new key, which signs later, or replaces the present one at once.
struct RotateProofKeyRule: ChangeRule {
  let revokes: Bool
  let made: ProofKeyPair?
  var basis: Basis { Basis(whole: [.settings, .identifiers, .proofs]) }
  var answerKind: AnswerKind { .proof }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let context else { return nil }
    guard let made else { throw .unavailable("no key was made; try again") }
    let now = context.now
    var plan = Plan(registry)
    if registry[.device] == nil { plan.put(try registry.fresh(.device, cause: .firstUse, context)) }
    let current = registry.signingProofKey(at: now)
    let next = registry.publishedProofKeys(at: now).last
    if !revokes, let next, now < next.signs {
      throw .conflict(
        "another key is published already, and signs from \(next.signs); 'proof rotate revoke=yes' replaces both at once"
      )
    }
    let signs = revokes || current == nil ? now : now.adding(seconds: context.surroundings.proofs.overlap)
    let inForce = Set(registry.proofKeysInForce.map(\.number))
    guard let key = plan.add(made, signingFrom: signs, at: now) else { throw .broken("there is no device identifier") }
    plan.endProofKeys(.rotated) { key in
      inForce.contains(key.number) && (revokes || (key.leaves.map { $0 <= now } ?? false))
    }
    if !revokes, var current {
      current.leaves = signs.adding(seconds: ProofRequest.lifetimes.upperBound)
      plan.add(.proofKeyStored(current))
    }
    var reply = Reply.done(.text(key.pair.identifier))
    reply.attribute("signs", .time(signs))
    return Decision(changes: plan.changes, reply: reply)
  }
}

extension ProofRequest {
  /// The lifetimes that a request can ask for, in seconds.
  package static let lifetimes: ClosedRange<Int64> = 60...3_600
  /// The lifetime of a proof without a wish for another, in seconds.
  package static let standardLifetime: Int64 = 300
}
