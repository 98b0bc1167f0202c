import IdentityCore
import IdentityStore
import LinuxSystem
import Systemd

/// Computes identifiers from what lives as long as they do (protocol, section 3): they survive a restart of the daemon and
/// cost no state.
struct Lifetimes: Sendable {
  private let derivation: IdentifierDerivation?
  /// The kernel's ID of this boot.
  let boot: UUID?
  /// When process 1 was started. A container that is booted again has it anew, where the kernel's ID can be its host's.
  private let initStart: UInt64?

  /// Reads what a boot is told by.
  ///
  /// - Parameter derivation: nil where the store's key is not known.
  init(_ derivation: IdentifierDerivation?) {
    self.derivation = derivation
    boot = (try? MachineIdentity.boot()).map { UUID(high: $0.high, low: $0.low) }
    initStart = (try? ProcessFacts.startTime(of: 1)) ?? nil
  }

  /// The identifier of a kind for these parts in this boot.
  ///
  /// - Throws: `unavailable` where what it is computed from is not known: none is made up in its place.
  func identifier(_ kind: String, _ parts: [[UInt8]]) throws(Refusal) -> UUID {
    guard let derivation else {
      throw .unavailable(
        "nothing can be derived without the store's key; store-reason of 'status' says why it is not known")
    }
    guard let boot else { throw .unavailable("the kernel does not tell its boot ID") }
    return derivation.identifier(kind, [boot.bytes, Array("\(initStart ?? 0)".utf8)] + parts)
  }

  /// The device identifier of a scope on a machine. An app or a vendor that has one of its own has it by a secret of the
  /// store: nobody can compute it from the machine-id, which everybody can read, and it goes with the store.
  ///
  /// - Parameter machine: the device's own, derived from the machine-id.
  /// - Returns: nil where the store's key is not known.
  func device(_ scope: Scope, on machine: UUID) -> UUID? {
    switch scope {
    case .device, .vendor, .installation: machine
    case .deviceOfApp(let app): derivation?.identifier("device of an app", [machine.bytes, app.bytes])
    case .deviceOfVendor(let vendor): derivation?.identifier("device of a vendor", [machine.bytes, vendor.bytes])
    }
  }

  /// What a session's reports of versions are known by.
  func versionSession(of peer: Peer) throws(Refusal) -> UUID {
    try identifier("session of versions", [Array("peer".utf8), try anchor(of: peer)])
  }

  /// What this boot's report of the system is known by.
  func versionSessionOfSystem() throws(Refusal) -> UUID {
    try identifier("session of versions", [Array("system".utf8)])
  }

  /// What a peer's session hangs on.
  func anchor(of peer: Peer) throws(Refusal) -> [UInt8] {
    switch peer.session {
    case .invocation(let invocation)?: return Array("invocation".utf8) + invocation.bytes
    case .controlGroup(let number)?: return Array("control group \(number)".utf8)
    case .process(let number, let start)?: return Array("process \(number) \(start)".utf8)
    case .onlyProcess(let number, let inode)?: return Array("only process \(number) \(inode)".utf8)
    case nil: throw .unavailable("neither the service's invocation nor the start of the process can be seen")
    }
  }

  /// What the rules need to know of the world around them.
  var surroundings: Surroundings {
    Surroundings(
      now: { Timestamp(milliseconds: Clock.realtimeMilliseconds) },
      session: { (peer) throws(Refusal) in try versionSession(of: peer) })
  }
}

extension Server {
  /// `get key`, `get session`, `get boot`.
  func derive(_ identifier: DerivedIdentifier, for peer: Peer) throws(Refusal) -> Reply {
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
      parts.append(try lifetimes.anchor(of: peer))
    case .key(let name):
      level = .key
      app = try registry.app(named: nil, by: peer)
      parts += [try lifetimes.anchor(of: peer), name.bytes]
    }
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(try lifetimes.identifier(level.rawValue, parts + [app.bytes])))
    reply.attribute("level", .string(level.rawValue))
    reply.attribute("app", .text(app))
    return reply
  }
}
