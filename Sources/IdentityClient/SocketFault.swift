import LinuxSystem

/// The reason why a client does not trust a socket and sends nothing to it.
package enum SocketFault: Equatable, Sendable, CustomStringConvertible {
  /// The process that listens on the socket runs as an untrusted user.
  case listener(user: UInt32)
  /// The socket, or a symbolic link to the socket, belongs to an untrusted user.
  case owner(path: String, user: UInt32)
  /// The folder of the socket belongs to an untrusted user, who can put another socket there.
  case folderOwner(path: String, user: UInt32)
  /// Every user can replace the socket, because its folder is world-writable without the sticky bit.
  case openFolder(path: String)

  /// The cause, without a full stop.
  package var description: String {
    switch self {
    case .listener(let user): "the process that listens there runs as uid \(user), \(Self.stranger)"
    case .owner(let path, let user): "\(path) belongs to uid \(user), \(Self.stranger)"
    case .folderOwner(let path, let user): "the directory \(path) belongs to uid \(user), \(Self.stranger)"
    case .openFolder(let path):
      "every user can replace the socket, because the directory \(path) is world-writable without the sticky bit"
    }
  }

  private static let stranger = "who is neither root nor identityd nor the caller"

  /// The remedy, as a clause for the user of the command line.
  package var remedy: String {
    switch self {
    case .listener, .owner, .folderOwner: "run the command as that user, or name another socket with --socket"
    case .openFolder(let path): "run 'chmod +t \(path)', or name another socket with --socket"
    }
  }
}

extension SocketFault {
  /// Finds the first fault in the owners of a socket; nil if there is none.
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
      // The sticky bit lets only the owner of a file, or of the folder, replace the file.
      guard place.folder.mode & 0o002 == 0 || place.folder.mode & 0o1000 != 0 else {
        self = .openFolder(path: place.folderPath)
        return
      }
    }
    return nil
  }
}
