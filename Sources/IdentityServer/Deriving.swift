import IdentityCore
import IdentityStore

// Identifiers that are computed from what lives as long as they do (protocol, section 3): they survive a restart of the
// daemon and cost no state.
extension Server {
  /// `get key`, `get session`, `get boot`.
  ///
  /// - Throws: `unavailable` where what they are computed from is not known: none is made up in its place.
  func derive(_ identifier: DerivedIdentifier, for peer: Peer) throws(Refusal) -> Reply {
    guard let derivation else { throw .unavailable("the store's key is missing, so nothing can be derived") }
    guard let boot else { throw .unavailable("the kernel does not tell its boot ID") }
    var parts = [boot.bytes, Array("\(initStart ?? 0)".utf8)]
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
    reply.word(.uuid(derivation.identifier(level.rawValue, parts + [app.bytes])))
    reply.attribute("level", .string(level.rawValue))
    reply.attribute("app", .text(app))
    return reply
  }

  private func anchor(of peer: Peer) throws(Refusal) -> [UInt8] {
    switch peer.session {
    case .invocation(let invocation)?: return Array("invocation".utf8) + invocation.bytes
    case .controlGroup(let number)?: return Array("control group \(number)".utf8)
    case .process(let number, let start)?: return Array("process \(number) \(start)".utf8)
    case nil: throw .unavailable("neither the service's invocation nor the start of the process can be seen")
    }
  }
}
