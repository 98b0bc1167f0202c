import Glibc

/// The users who control where a connection to a Unix socket leads.
package struct SocketOwners: Equatable, Sendable {
  /// A path of the socket, with the folder that contains it.
  package struct Place: Equatable, Sendable {
    /// The path of the socket, or of a symbolic link to it.
    package let path: String
    /// The status of the path itself, without following a symbolic link.
    package let status: PathStatus
    /// The path of the folder.
    package let folderPath: String
    /// The status of the folder.
    package let folder: PathStatus

    /// Reads the status of a path and of its folder. Nil if there is no file.
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

  /// The effective user of the listening process, at the time of its listen(2).
  package let listener: UInt32
  /// The place of the path that was connected to, and behind a symbolic link also the place of the socket.
  ///
  /// Empty if the socket is gone again, as when a daemon ends.
  package let places: [Place]

  /// Reads the owners of a connection.
  ///
  /// The listener is that of the connection itself. The places are as they are at the time of the call.
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
