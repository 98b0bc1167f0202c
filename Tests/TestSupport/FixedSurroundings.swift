package import IdentityCore

extension Surroundings {
  /// Surroundings with a fixed time, whose sessions are identified by process ID.
  package static func fixed(at milliseconds: Int64) -> Surroundings {
    let now = Timestamp(milliseconds: milliseconds)
    return Surroundings(
      now: { now },
      session: { (peer) throws(Refusal) in
        guard case .process(let number, _)? = peer.session else { throw .unavailable("no session") }
        return UUID(high: 0x7777, low: UInt64(number))
      })
  }
}
