import CSystemd
import Glibc

/// The place of a connected peer, according to its cgroup.
package struct PeerGroup: Equatable, Sendable {
  /// The place among units and containers.
  package enum Place: Equatable, Sendable {
    /// In no service and no container: in a login session, in another scope, or outside systemd's tree.
    case outside
    /// In a service, which may be the container of the process.
    case service(PeerUnit)
    /// In a container outside of services, other than the container of this process.
    case container(ContainerScope)
    /// Below a unit of the system that is neither; see ``GroupPlace/below(unit:)``.
    case below(unit: String)
  }

  /// The place.
  package let place: Place
  /// The user of the slice that contains the cgroup (`user-UID.slice`, user@.service(5)); nil outside such slices.
  package let user: UInt32?

  /// The service; nil outside any service.
  package var unit: PeerUnit? { if case .service(let unit) = place { unit } else { nil } }
  /// The container; nil outside any container, and in a service.
  package var container: ContainerScope? { if case .container(let container) = place { container } else { nil } }

  /// Looks up the peer of a connected Unix socket; see ``PeerUnit/look(up:)``.
  ///
  /// - Parameter root: the path that counts as the root of the hierarchy; see ``GroupPlace/root(of:)``.
  static func look(up socket: Int32, path: String?, below root: GroupPlace.Path) throws(SystemdError) -> PeerGroup {
    let user = path.flatMap { Self.user(ofSlice: $0) }
    switch path.map({ GroupPlace(of: $0, below: root) }) ?? .outside {
    case .container(let container): return PeerGroup(place: .container(container), user: user)
    case .below(let unit): return PeerGroup(place: .below(unit: unit), user: user)
    case .outside:
      return PeerGroup(place: try PeerUnit.look(up: socket).map(Place.service) ?? .outside, user: user)
    }
  }

  private static func user(ofSlice path: String) -> UInt32? {
    let parts = path.split(separator: "/").prefix(2)
    guard parts.count == 2, parts[0] == "user.slice" else { return nil }
    return UnitName(parts[1])?.slicedUser
  }
}

/// The systemd service of a connected peer, according to its cgroup (sd_peer_get_unit(3)).
package struct PeerUnit: Equatable, Sendable {
  /// The name with its suffix: `player.service`.
  package let name: String
  /// The user whose manager runs the service; nil for a service of the system.
  package let owner: UInt32?
  /// The ID of the own cgroup of a user's service, which identifies a run of the service. Nil for a service of the
  /// system, or if the ID is not known.
  ///
  /// systemd removes the cgroup when the service ends and creates another for the next run, and the kernel never reuses
  /// a cgroup ID within one boot. Only the system's manager publishes the invocation of a service. A user's manager
  /// keeps the invocation in a folder that is closed to other users.
  package let controlGroup: UInt64?

  /// The current run of a service of the system; nil for a user's service, or if the run is not known.
  package var invocation: Invocation? { owner == nil ? Invocation(ofSystemUnit: name) : nil }

  /// Looks up the peer of a connected Unix socket.
  ///
  /// The look-up goes by the peer's process ID, so the caller must make sure that the process outlives the call.
  ///
  /// - Returns: nil if the peer is in no service: in a login session, in a scope, or outside systemd's tree.
  /// - Throws: an error if the cgroup cannot be read.
  package static func look(up socket: Int32) throws(SystemdError) -> PeerUnit? {
    guard let unit = try unsafe name("sd_peer_get_unit", { unsafe sd_peer_get_unit(socket, $0) }) else { return nil }
    guard let found = UnitName(Substring(unit)), found.kind == .service else { return nil }
    guard let owner = found.managedUser else { return PeerUnit(name: unit, owner: nil, controlGroup: nil) }
    // Below user@UID.service the tree belongs to that user, so the name is only as trustworthy as the user.
    guard let userUnit = try unsafe name("sd_peer_get_user_unit", { unsafe sd_peer_get_user_unit(socket, $0) }),
      userUnit.hasSuffix(".service")
    else { return nil }
    let own = try group(of: socket).flatMap { controlGroup(ofUserUnit: userUnit, in: $0) }
    return PeerUnit(name: userUnit, owner: owner, controlGroup: own.flatMap { number(ofGroup: $0) })
  }

  /// Returns the path of the peer's cgroup in its hierarchy.
  static func group(of socket: Int32) throws(SystemdError) -> String? {
    try unsafe name("sd_peer_get_cgroup", { unsafe sd_peer_get_cgroup(socket, $0) })
  }

  /// Returns the ID of a cgroup: the inode number of its folder in the unified hierarchy, wherever the
  /// hierarchy is (cgroups(7)).
  ///
  /// Nil for a cgroup that is not in the unified hierarchy.
  package static func number(ofGroup path: String) -> UInt64? {
    for hierarchy in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
      var status = stat()
      // Every cgroup of the unified hierarchy has this file, and no other hierarchy has it.
      guard unsafe access("\(hierarchy)\(path)/cgroup.controllers", F_OK) == 0 else { continue }
      if unsafe lstat(hierarchy + path, &status) == 0 { return UInt64(status.st_ino) }
    }
    return nil
  }

  /// Returns the own cgroup of a user's unit, from the cgroup of a process in the unit.
  ///
  /// The process may be in a lower cgroup if the unit divides its cgroup (`Delegate=`, systemd.resource-control(5)).
  ///
  /// - Returns: nil if the unit is not on the path.
  package static func controlGroup(ofUserUnit unit: String, in group: String) -> String? {
    let parts = group.split(separator: "/")
    guard let manager = parts.firstIndex(where: { UnitName($0)?.managedUser != nil }),
      // systemd puts an underscore before a name that the kernel could use for a file of its own.
      let own = parts[(manager + 1)...].firstIndex(where: { $0 == unit || $0 == "_\(unit)" })
    else { return nil }
    return "/" + parts[...own].joined(separator: "/")
  }

  /// Calls a function of libsystemd that allocates a name. Returns nil if there is no such unit.
  private static func name(
    _ call: String, _ look: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32
  ) throws(SystemdError) -> String? {
    var name: UnsafeMutablePointer<CChar>?
    let code = unsafe look(&name)
    defer { unsafe free(name) }
    // The process is outside any unit. Not ENOMEDIUM, the error without a mounted hierarchy, where nothing is known.
    if [-ENXIO, -ENODATA, -EUNATCH].contains(code) { return nil }
    try checked(call, code)
    return unsafe name.map { unsafe String(cString: $0) }
  }
}
