/// The place of a cgroup among the units and containers of a system, according to its path.
///
/// Only root, the system's service manager and container runtimes create slices, the first unit below them, and folders
/// outside of units. So a container is recognized there, and below `user@UID.service`, where all names belong to that
/// user. A process in any other unit may create cgroups below it (`Delegate=`, systemd.resource-control(5)), so the
/// names of these cgroups prove nothing.
package enum GroupPlace: Hashable, Sendable {
  /// Outside of containers: in a service, at the top of another unit, in a unit of a user's manager, or in no unit.
  case outside
  /// In a container.
  case container(ContainerScope)
  /// In a cgroup below a unit of the system that is neither a service nor a container, such as a scope. The processes
  /// may be those of a container that the name of the cgroup does not prove.
  case below(unit: String)

  /// The names of the cgroups in a path, from the root of the hierarchy.
  package typealias Path = ArraySlice<Substring>

  /// Splits the path of a cgroup in its hierarchy, as in `/proc/PID/cgroup`.
  package static func split(_ path: String) -> Path { path.split(separator: "/")[...] }

  /// Finds the place of a cgroup.
  ///
  /// - Parameters:
  ///   - path: the path of the cgroup in its hierarchy.
  ///   - root: the path that counts as the root of the hierarchy, if the cgroup is below it; see ``root(of:)``.
  package init(of path: String, below root: Path = []) {
    let parts = Self.split(path)
    self = Self.find(in: parts.starts(with: root) ? parts.dropFirst(root.count) : parts).place
  }

  /// Returns the cgroup that counts as the root for a process in a cgroup: that of the process's own container.
  ///
  /// A process in a container without a cgroup namespace sees the whole path (cgroup_namespaces(7)).
  package static func root(of path: String) -> Path {
    let parts = split(path)
    return parts.prefix(find(in: parts).depth)
  }

  /// Finds the place, and the number of names that lead to the cgroup of the container; 0 outside of containers.
  private static func find(in parts: Path) -> (place: GroupPlace, depth: Int) {
    var owner: UInt32?
    /// The first name that counts for the rules about containers.
    var first = parts.startIndex
    for index in parts.indices {
      let part = parts[index]
      if let id = ContainerScope.id(of: part, in: parts[first..<index]) {
        return (.container(ContainerScope(id: id, owner: owner)), index - parts.startIndex + 1)
      }
      guard let unit = UnitName(part) else { continue }
      switch unit.kind {
      case .slice: continue
      case .service:
        guard owner == nil, let user = unit.managedUser else { return (.outside, 0) }
        owner = user
        first = index + 1
      case .scope, .other:
        guard owner == nil else { continue }
        guard index + 1 < parts.endIndex else { return (.outside, 0) }
        return (.below(unit: String(part)), index - parts.startIndex + 2)
      }
    }
    return (.outside, 0)
  }
}
