import CSystemd
import Glibc

/// What the control group of a connected peer says: the service, or the container, that it runs in.
package struct PeerGroup: Equatable, Sendable {
  /// The service; nil outside of one.
  package let unit: PeerUnit?
  /// The container; nil outside of one, and in a service.
  package let container: ContainerScope?
  /// The user in whose slice it is (`user-UID.slice`, user@.service(5)); nil outside of these.
  package let user: UInt32?

  /// Looks up the peer of a connected Unix socket; see ``PeerUnit/look(up:)``.
  ///
  /// - Parameter own: the container that the daemon is in, which is no other world to it.
  static func look(up socket: Int32, path: String?, own: ContainerScope?) throws(SystemdError) -> PeerGroup {
    let user = path.flatMap { Self.user(ofSlice: $0) }
    if let container = path.flatMap({ ContainerScope(group: $0) }), container != own {
      return PeerGroup(unit: nil, container: container, user: user)
    }
    return PeerGroup(unit: try PeerUnit.look(up: socket), container: nil, user: user)
  }

  private static func user(ofSlice path: String) -> UInt32? {
    let parts = path.split(separator: "/").prefix(2)
    guard parts.count == 2, parts[0] == "user.slice", parts[1].hasPrefix("user-"), parts[1].hasSuffix(".slice") else {
      return nil
    }
    return UInt32(parts[1].dropFirst("user-".count).dropLast(".slice".count))
  }
}

/// The systemd service that a connected peer runs in, by its control group (sd_peer_get_unit(3)).
package struct PeerUnit: Equatable, Sendable {
  /// Its name with the suffix: `player.service`.
  package let name: String
  /// The user whose manager runs it; nil for a service of the system.
  package let owner: UInt32?
  /// The number of a user's service's own control group. systemd removes the group when the service ends and makes another
  /// for its next run, and the kernel gives no number twice in one boot. Nil where it is not known.
  ///
  /// Only the system's manager tells others which run it is: a user's keeps that in a folder closed to everybody else.
  package let controlGroup: UInt64?

  /// Which run of a service of the system it is now; nil where that is not known.
  package var invocation: Invocation? { owner == nil ? Invocation(ofSystemUnit: name) : nil }

  /// Looks up the peer of a connected Unix socket.
  ///
  /// It goes by the peer's process number, so the caller has to make sure that the process lived until after this.
  /// - Returns: nil where the peer is in no service: in a login session, a scope, or outside of systemd's tree.
  /// - Throws: where the control group could not be read.
  package static func look(up socket: Int32) throws(SystemdError) -> PeerUnit? {
    guard let unit = try unsafe name("sd_peer_get_unit", { unsafe sd_peer_get_unit(socket, $0) }) else { return nil }
    guard unit.utf8.starts(with: "user@".utf8) else {
      guard unit.hasSuffix(".service") else { return nil }
      return PeerUnit(name: unit, owner: nil, controlGroup: nil)
    }
    // Below user@UID.service the tree is that user's own: the name is as trustworthy as the user.
    guard let userUnit = try unsafe name("sd_peer_get_user_unit", { unsafe sd_peer_get_user_unit(socket, $0) }),
      userUnit.hasSuffix(".service")
    else { return nil }
    var owner: uid_t = 0
    try checked("sd_peer_get_owner_uid", unsafe sd_peer_get_owner_uid(socket, &owner))
    let own = try group(of: socket).flatMap { controlGroup(ofUserUnit: userUnit, in: $0) }
    return PeerUnit(name: userUnit, owner: owner, controlGroup: own.flatMap { number(ofGroup: $0) })
  }

  /// The path of the peer's control group, below its hierarchy.
  static func group(of socket: Int32) throws(SystemdError) -> String? {
    try unsafe name("sd_peer_get_cgroup", { unsafe sd_peer_get_cgroup(socket, $0) })
  }

  /// The number of a control group's folder, in the unified hierarchy, wherever that is (cgroups(7)); nil for what is in
  /// no such hierarchy.
  package static func number(ofGroup path: String) -> UInt64? {
    for hierarchy in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
      var status = stat()
      // The file is in each group there, and in no other hierarchy.
      guard unsafe access("\(hierarchy)\(path)/cgroup.controllers", F_OK) == 0 else { continue }
      if unsafe lstat(hierarchy + path, &status) == 0 { return UInt64(status.st_ino) }
    }
    return nil
  }

  /// The control group of a user's unit itself, from that of a process in it, which may be further down where the unit
  /// divides its group (`Delegate=`, systemd.resource-control(5)).
  ///
  /// - Returns: nil where the unit is not on the way.
  package static func controlGroup(ofUserUnit unit: String, in group: String) -> String? {
    let parts = group.split(separator: "/")
    guard let manager = parts.firstIndex(where: { $0.hasPrefix("user@") && $0.hasSuffix(".service") }),
      // systemd puts an underscore before a name that the kernel might take for a file of its own.
      let own = parts[(manager + 1)...].firstIndex(where: { $0 == unit || $0 == "_\(unit)" })
    else { return nil }
    return "/" + parts[...own].joined(separator: "/")
  }

  /// One of libsystemd's look-ups that allocate a name; nil where there is no such unit.
  private static func name(
    _ call: String, _ look: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32
  ) throws(SystemdError) -> String? {
    var name: UnsafeMutablePointer<CChar>?
    let code = unsafe look(&name)
    defer { unsafe free(name) }
    // Outside of any unit, or on a machine whose control groups are not the ones of systemd.
    if [-ENXIO, -ENODATA, -ENOMEDIUM, -EUNATCH].contains(code) { return nil }
    try checked(call, code)
    return unsafe name.map { unsafe String(cString: $0) }
  }
}
