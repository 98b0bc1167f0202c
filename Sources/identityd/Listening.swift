import Glibc
import IdentityCore
import LinuxSystem
import Systemd

/// The socket that clients connect to.
struct ListeningSocket: ~Copyable {
  let descriptor: Descriptor
  /// The path of the socket, for messages.
  let path: String
  /// The identity of the socket file if this process created it and must remove it, else nil.
  let made: FileStatus?
}

extension ListeningSocket {
  /// Adopts the socket that the service manager passed.
  ///
  /// - Returns: nil if the service manager passed none.
  /// - Throws: if it passed more than one descriptor, or one that is not a listening Unix stream socket.
  static func handedOver(_ handed: [(number: Int32, name: String)], path: String?) throws -> ListeningSocket? {
    guard let first = handed.first else { return nil }
    let descriptor = try UnixSocket.adopt(listening: first.number)
    guard handed.count == 1, ServiceManager.isListeningUnixStream(first.number) else {
      throw SystemError(call: "the service manager must pass one listening Unix stream socket", code: EINVAL)
    }
    return ListeningSocket(descriptor: descriptor, path: path ?? "the service manager's socket", made: nil)
  }

  /// Creates a socket, and its folder if it is missing.
  static func make(_ path: String, _ locations: Locations) throws -> ListeningSocket {
    if let end = path.lastIndex(of: "/"), end != path.startIndex {
      try Folder.create(path: String(path[..<end]), mode: locations.runtimeDirectoryMode)
    }
    let descriptor = try UnixSocket.listen(at: path, mode: locations.socketMode, backlog: Bound.backlog)
    return ListeningSocket(descriptor: descriptor, path: path, made: UnixSocket.identity(of: path))
  }
}
