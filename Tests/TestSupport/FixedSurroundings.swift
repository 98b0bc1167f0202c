package import IdentityCore

extension Surroundings {
  /// Surroundings in which the time stands still, and a session is known by the number of its process.
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
