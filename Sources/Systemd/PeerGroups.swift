/// What the control groups of peers say, each kept under its number.
///
/// The kernel gives no number twice in one boot, and a group of the unified hierarchy is never renamed. So what follows
/// from a group's path is true for its number for good.
package final class PeerGroups {
  private var groups: [UInt64: PeerGroup] = [:]
  private let bound: Int
  private let own: ContainerScope?

  /// Knows none, and keeps so many.
  ///
  /// - Parameter own: the container that the daemon is in.
  package init(atMost bound: Int, own: ContainerScope? = nil) {
    self.bound = bound
    self.own = own
  }

  /// How many groups are known.
  package var count: Int { groups.count }

  /// Whether what follows from a group is known, and so is the same for whoever is in it.
  package func isKnown(_ number: UInt64) -> Bool { groups[number] != nil }

  /// The service or the container of the peer of a connected Unix socket.
  ///
  /// Where it has to be looked up that goes by the peer's process number, so the caller has to make sure that the process
  /// lived until after this.
  /// - Parameter number: that of the process's control group, by the kernel's word; nil where it does not say.
  /// - Throws: where the control group could not be read.
  package func look(up socket: Int32, in number: UInt64?) throws(SystemdError) -> PeerGroup {
    if let number, let group = groups[number] { return group }
    let path = try PeerUnit.group(of: socket)
    let group = try PeerGroup.look(up: socket, path: path, own: own)
    // Kept only where libsystemd went by this very group. It may have gone by one of another hierarchy, the process may
    // have gone to another one meanwhile, and the number may have become another process's.
    guard let number, let path, try PeerUnit.group(of: socket) == path, PeerUnit.number(ofGroup: path) == number else {
      return group
    }
    // Who makes groups without end has all looked up again, and nothing else.
    if groups.count >= bound { groups.removeAll(keepingCapacity: true) }
    groups[number] = group
    return group
  }
}
