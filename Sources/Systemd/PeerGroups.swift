/// A cache of the place behind each peer's cgroup, by cgroup ID.
///
/// The kernel never reuses a cgroup ID within one boot, and a cgroup of the unified hierarchy is never renamed. So a
/// fact that follows from the path of a cgroup stays true for its ID.
package final class PeerGroups {
  private var groups: [UInt64: PeerGroup] = [:]
  private let bound: Int
  private let root: GroupPlace.Path

  /// Creates an empty cache.
  ///
  /// - Parameters:
  ///   - bound: the largest number of cgroups in the cache.
  ///   - own: the path of the cgroup of this process; nil if the process has none. If it is in a container, the places
  ///     of peers in the same container count from that container.
  package init(atMost bound: Int, own: String? = nil) {
    self.bound = bound
    root = own.map { GroupPlace.root(of: $0) } ?? []
  }

  /// The number of cgroups in the cache.
  package var count: Int { groups.count }

  /// Returns whether the cache has a cgroup, so that all processes in the cgroup get the same result.
  package func isKnown(_ number: UInt64) -> Bool { groups[number] != nil }

  /// Returns the place of the peer of a connected Unix socket.
  ///
  /// If the cgroup is not in the cache, the look-up goes by the peer's process ID. So the caller must make sure that
  /// the process outlives the call.
  ///
  /// - Parameter number: the ID of the process's cgroup, as the kernel reports it; nil if the
  ///   kernel does not report it.
  /// - Throws: an error if the cgroup cannot be read.
  package func look(up socket: Int32, in number: UInt64?) throws(SystemdError) -> PeerGroup {
    if let number, let group = groups[number] { return group }
    let path = try PeerUnit.group(of: socket)
    let group = try PeerGroup.look(up: socket, path: path, below: root)
    // Cached only if libsystemd used this very cgroup. libsystemd may have used one of another hierarchy, the process
    // may have moved to another cgroup meanwhile, and the process ID may belong to another process by now.
    guard let number, let path, try PeerUnit.group(of: socket) == path, PeerUnit.number(ofGroup: path) == number else {
      return group
    }
    // A user who creates cgroups without end only causes further look-ups.
    if groups.count >= bound { groups.removeAll(keepingCapacity: true) }
    groups[number] = group
    return group
  }
}
