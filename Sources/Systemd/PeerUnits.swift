/// The services of peers, each kept under the number of the control group that it was found by.
///
/// The kernel gives no number twice in one boot, and a group of the unified hierarchy is never renamed. So what follows
/// from a group's path is true for its number for good.
package final class PeerUnits {
  /// Nil for a group that is no service's.
  private var units: [UInt64: PeerUnit?] = [:]
  private let bound: Int

  /// Knows none, and keeps so many.
  package init(atMost bound: Int) { self.bound = bound }

  /// How many groups are known.
  package var count: Int { units.count }

  /// Whether what follows from a group is known, and so is the same for whoever is in it.
  package func isKnown(_ group: UInt64) -> Bool { units[group] != nil }

  /// The service of the peer of a connected Unix socket.
  ///
  /// Where it has to be looked up that goes by the peer's process number, so the caller has to make sure that the process
  /// lived until after this.
  /// - Parameter group: the number of the process's control group, by the kernel's word; nil where it does not say.
  /// - Returns: nil where the peer is in no service: in a login session, a scope, or outside of systemd's tree.
  /// - Throws: where the control group could not be read.
  package func look(up socket: Int32, in group: UInt64?) throws(SystemdError) -> PeerUnit? {
    guard let group else { return try PeerUnit.look(up: socket) }
    if let unit = units[group] { return unit }
    let path = try PeerUnit.group(of: socket)
    let unit = try PeerUnit.look(up: socket)
    // Kept only where libsystemd went by this very group. It may have gone by one of another hierarchy, the process may
    // have gone to another one meanwhile, and the number may have become another process's.
    guard let path, try PeerUnit.group(of: socket) == path, PeerUnit.number(ofGroup: path) == group else { return unit }
    // Who makes groups without end has all looked up again, and nothing else.
    if units.count >= bound { units.removeAll(keepingCapacity: true) }
    units.updateValue(unit, forKey: group)
    return unit
  }
}
