import CSystemd
import Glibc

/// The systemd service that a connected peer runs in, by its control group (sd_peer_get_unit(3)).
package struct PeerUnit: Equatable, Sendable {
  /// Its name with the suffix: `player.service`.
  package let name: String
  /// The user whose manager runs it; nil for a service of the system.
  package let owner: UInt32?

  /// Looks up the peer of a connected Unix socket.
  ///
  /// It goes by the peer's process number, so the caller has to make sure that the process lived until after this.
  /// - Returns: nil where the peer is in no service: in a login session, a scope, or outside of systemd's tree.
  /// - Throws: where the control group could not be read.
  package static func look(up socket: Int32) throws(SystemdError) -> PeerUnit? {
    guard let unit = try unsafe name("sd_peer_get_unit", { unsafe sd_peer_get_unit(socket, $0) }) else { return nil }
    guard unit.utf8.starts(with: "user@".utf8) else {
      return unit.hasSuffix(".service") ? PeerUnit(name: unit, owner: nil) : nil
    }
    // Below user@UID.service the tree is that user's own: the name is as trustworthy as the user.
    guard let userUnit = try unsafe name("sd_peer_get_user_unit", { unsafe sd_peer_get_user_unit(socket, $0) }),
      userUnit.hasSuffix(".service")
    else { return nil }
    var owner: uid_t = 0
    try checked("sd_peer_get_owner_uid", unsafe sd_peer_get_owner_uid(socket, &owner))
    return PeerUnit(name: userUnit, owner: owner)
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
