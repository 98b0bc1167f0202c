/// What a request asks for, with its arguments checked.
package enum Command: Equatable, Sendable {
  /// Answered by the daemon's loop alone.
  case local(LocalCommand)
  /// Answered from the registry, or by a change to it.
  case registry(RegistryCommand)
}

/// Requests that the registry has no part in.
package enum LocalCommand: Equatable, Sendable {
  /// Is anybody there?
  case ping
  /// Which daemon, which version, which protocol?
  case hello
  /// The verbs, or those that begin with these words.
  case help([Text])
  /// Answer, then close.
  case quit
  /// What an operator wants to see at a glance.
  case status
  /// Who does the daemon take me for?
  case whoami
  /// Is this text a UUID?
  case check(Text)
  /// Fresh UUIDs: one when `count` is nil, else rows.
  case uuids(count: Int?, version: UUIDVersion)
}

/// Requests to the registry.
package enum RegistryCommand: Equatable, Sendable {
  /// The device identifier.
  case device
  /// The installation identifier of the peer's app, or of the app an admin names.
  case installation(app: Text?)
}
