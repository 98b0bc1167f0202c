import Glibc

/// The users who decide what a connection to a Unix socket leads to.
package struct SocketOwners: Equatable, Sendable {
  /// A name of the socket, with the folder that the name stands in.
  package struct Place: Equatable, Sendable {
    /// The path of the socket, or of a symbolic link to it.
    package let path: String
    /// The status of the path itself, no link followed.
    package let status: PathStatus
    /// The path of the folder.
    package let folderPath: String
    /// The folder itself.
    package let folder: PathStatus

    /// Looks at a path; nil where nothing stands there.
    init?(_ path: String) throws(SystemError) {
      let around = Folder.path(around: path)
      guard let status = try PathStatus.of(path, followsLink: false), let folder = try PathStatus.of(around) else {
        return nil
      }
      self.path = path
      self.status = status
      self.folder = folder
      folderPath = around == "/" ? around : String(around.dropLast())
    }
  }

  /// The effective user of the process that listens, at the moment of its listen(2).
  package let listener: UInt32
  /// The path that was connected to; behind a symbolic link the place of the socket as well. None where the socket is gone
  /// again, as that of a daemon that ends.
  package let places: [Place]

  /// Looks.
  ///
  /// The listener is that of the connection. The places are as they are now.
  package init(of connection: borrowing Descriptor, at path: String) throws(SystemError) {
    listener = try PeerCredentials(of: connection).userID
    guard let place = try Place(path) else {
      places = []
      return
    }
    guard place.status.kind == .link, let path = try PathStatus.resolved(path), let target = try Place(path) else {
      places = [place]
      return
    }
    places = [place, target]
  }
}
