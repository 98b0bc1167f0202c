import LinuxSystem

/// Why a client sends nothing to a socket.
package enum SocketFault: Equatable, Sendable, CustomStringConvertible {
  /// The process that listens on the socket is another user's.
  case listener(user: UInt32)
  /// The socket, or a link to the socket, belongs to another user.
  case owner(path: String, user: UInt32)
  /// The folder around the socket belongs to another user, who can put another socket there.
  case folderOwner(path: String, user: UInt32)
  /// Everybody can put another socket into the folder.
  case openFolder(path: String)

  /// The cause.
  package var description: String {
    switch self {
    case .listener(let user): "the process that listens there runs as uid \(user), \(Self.stranger)"
    case .owner(let path, let user): "\(path) belongs to uid \(user), \(Self.stranger)"
    case .folderOwner(let path, let user): "the folder \(path) belongs to uid \(user), \(Self.stranger)"
    case .openFolder(let path):
      "everybody can replace the socket, because the folder \(path) is open to all without the sticky bit"
    }
  }

  private static let stranger = "who is neither root nor identityd nor the caller"

  /// The remedy, for the user.
  package var remedy: String {
    switch self {
    case .listener, .owner, .folderOwner: "ask as that user, or name another socket with --socket"
    case .openFolder(let path): "set the bit with 'chmod +t \(path)', or name another socket with --socket"
    }
  }
}

extension SocketFault {
  /// Judges; nil for a socket without a fault.
  init?(_ owners: SocketOwners, isTrusted: (UInt32) -> Bool) {
    guard isTrusted(owners.listener) else {
      self = .listener(user: owners.listener)
      return
    }
    for place in owners.places {
      guard isTrusted(place.status.owner) else {
        self = .owner(path: place.path, user: place.status.owner)
        return
      }
      guard isTrusted(place.folder.owner) else {
        self = .folderOwner(path: place.folderPath, user: place.folder.owner)
        return
      }
      // In a folder with the sticky bit nobody can replace what is another's.
      guard place.folder.mode & 0o002 == 0 || place.folder.mode & 0o1000 != 0 else {
        self = .openFolder(path: place.folderPath)
        return
      }
    }
    return nil
  }
}
