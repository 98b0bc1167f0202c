import IdentityCore
import IdentityStore
import LinuxSystem
import Systemd

/// The derivation of identifiers from facts that live as long as the identifiers (identityd-protocol(7),
/// section "IDENTIFIERS").
///
/// The identifiers survive a restart of the daemon and need no stored state.
struct Lifetimes: Sendable {
  private let derivation: IdentifierDerivation?
  /// The kernel's ID of this boot; nil if unknown.
  let boot: UUID?
  /// The start time of PID 1, in clock ticks since boot; nil if unknown.
  ///
  /// The start time changes when a container boots again, while the kernel's boot ID may be that of the host.
  private let initStart: UInt64?
  /// The last time in this boot at which the machine went on from a snapshot.
  var resumption: Resumption
  /// The settings about proofs.
  var proofs: ProofSettings

  /// Reads the facts that identify a boot.
  ///
  /// - Parameter derivation: nil if the store's key is unknown.
  init(_ derivation: IdentifierDerivation?, _ resumption: Resumption, _ proofs: ProofSettings) {
    self.derivation = derivation
    self.resumption = resumption
    self.proofs = proofs
    boot = (try? MachineIdentity.boot()).map { UUID(high: $0.high, low: $0.low) }
    initStart = (try? ProcessFacts.startTime(of: 1)) ?? nil
  }

  /// Returns the identifier of a kind for these parts in this boot.
  ///
  /// - Throws: `unavailable` if an input is unknown. No substitute is used.
  func identifier(_ kind: String, _ parts: [[UInt8]]) throws(Refusal) -> UUID {
    guard let derivation else {
      throw .unavailable(
        "the store's key is missing, so no identifier can be derived; see store-reason of 'status'")
    }
    guard let boot else { throw .unavailable("the kernel does not report its boot ID") }
    return derivation.identifier(kind, [boot.bytes, Array("\(initStart ?? 0)".utf8)] + parts)
  }

  /// Returns the device identifier of a scope on a machine.
  ///
  /// The device identifier of an app or a vendor also depends on a secret of the store. So nobody can compute the
  /// identifier from the machine-id, which everybody can read, and the identifier ends with the store.
  ///
  /// - Parameter machine: the shared device identifier, derived from the machine-id.
  /// - Returns: nil for an app or a vendor if the store's key is unknown.
  func device(_ scope: Scope, on machine: UUID) -> UUID? {
    switch scope {
    case .device, .vendor, .installation: machine
    case .deviceOfApp(let app): derivation?.identifier("device of an app", [machine.bytes, app.bytes])
    case .deviceOfVendor(let vendor): derivation?.identifier("device of a vendor", [machine.bytes, vendor.bytes])
    }
  }

  /// Returns the UUID that identifies a peer's session in reports of versions.
  func versionSession(of peer: Peer) throws(Refusal) -> UUID {
    try identifier("session of versions", [Array("peer".utf8), try anchor(of: peer)])
  }

  /// Returns the UUID that identifies this boot in reports of the system's version.
  func versionSessionOfSystem() throws(Refusal) -> UUID {
    try identifier("session of versions", [Array("system".utf8)])
  }

  /// Returns the bytes that identify a peer's session; see ``SessionAnchor``.
  ///
  /// - Throws: `unavailable` if the anchor could not be determined.
  func anchor(of peer: Peer) throws(Refusal) -> [UInt8] {
    let beginning: [UInt8]
    switch resumption {
    case .none: beginning = []
    case .last(let value): beginning = Array("resumption".utf8) + value.bytes
    case .unknown(let reason): throw .unavailable("\(reason), so no session can be told from one before a snapshot")
    }
    switch peer.session {
    case .invocation(let invocation)?: return beginning + Array("invocation".utf8) + invocation.bytes
    case .controlGroup(let number)?: return beginning + Array("control group \(number)".utf8)
    case .process(let number, let start)?: return beginning + Array("process \(number) \(start)".utf8)
    case .onlyProcess(let number, let inode)?: return beginning + Array("only process \(number) \(inode)".utf8)
    case nil:
      throw .unavailable(
        "the session is unknown: neither the service's invocation ID nor the start time of the process can be read")
    }
  }

  /// The clock and the session lookup for the rules.
  var surroundings: Surroundings {
    Surroundings(
      now: { Timestamp(milliseconds: Clock.realtimeMilliseconds) },
      session: { (peer) throws(Refusal) in try versionSession(of: peer) },
      proofs: proofs)
  }
}

extension Lifetimes {
  /// Returns the identifier of this boot for an app.
  func boot(of app: Text) throws(Refusal) -> UUID { try identifier(DerivedLevel.boot.rawValue, [app.bytes]) }

  /// `get key`, `get session`, `get boot`: computes an identifier that is not stored.
  func answer(_ identifier: DerivedIdentifier, for peer: Peer, _ registry: Registry) throws(Refusal) -> Reply {
    var parts: [[UInt8]] = []
    let level: DerivedLevel
    let app: Text
    switch identifier {
    case .boot(let named):
      level = .boot
      app = try registry.app(named: named, by: peer)
    case .session:
      level = .session
      app = try registry.app(named: nil, by: peer)
      parts.append(try anchor(of: peer))
    case .key(let name):
      level = .key
      app = try registry.app(named: nil, by: peer)
      parts += [try anchor(of: peer), name.bytes]
    }
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(try self.identifier(level.rawValue, parts + [app.bytes])))
    reply.attribute("level", .string(level.rawValue))
    reply.attribute("app", .text(app))
    return reply
  }
}

/// The lifetimes in force, which a resumption of the machine and a reload of the configuration change.
final class CurrentLifetimes {
  var value: Lifetimes { didSet { surroundings = value.surroundings } }
  /// Kept, so that a request makes no closures.
  private(set) var surroundings: Surroundings

  init(_ value: Lifetimes) {
    self.value = value
    surroundings = value.surroundings
  }
}
