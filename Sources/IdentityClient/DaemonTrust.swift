/// The users whose daemon a client accepts.
///
/// The process that listens on a socket reads every request, secrets included, and can send any answer. So a client
/// checks the owners of a connection before it sends anything.
public enum DaemonTrust: Hashable, Sendable {
  /// A daemon of root, of the user `identityd`, or of the user that this process runs as.
  ///
  /// The process that listens, the socket and the folder of the socket must each belong to one of these
  /// users. A folder that everybody can write to needs the sticky bit. Otherwise the client sends nothing and
  /// throws ``IdentityError/untrusted(path:reason:)``.
  ///
  /// A user namespace can lack numbers for some users (user_namespaces(7)); in a rootless container the host's root has
  /// none. The kernel does not tell such users apart, so the client accepts an owner without a number there.
  case systemOrOwn
  /// A daemon of any user, without checks.
  case anybody
}
