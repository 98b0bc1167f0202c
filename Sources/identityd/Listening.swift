import Glibc
import LinuxSystem
import Systemd

/// The socket that clients connect to.
struct ListeningSocket: ~Copyable {
  let descriptor: Descriptor
  /// Its path, for messages.
  let path: String
  /// The socket in the file system, where this process made it and has to remove it.
  let made: FileStatus?
}

extension ListeningSocket {
  /// Takes the socket that the service manager hands over.
  ///
  /// - Returns: nil where it hands none over.
  /// - Throws: what is wrong with what it hands over.
  static func handedOver(_ handed: [(number: Int32, name: String)], path: String?) throws -> ListeningSocket? {
    guard let first = handed.first else { return nil }
    let descriptor = try UnixSocket.adopt(listening: first.number)
    guard handed.count == 1, ServiceManager.isListeningUnixStream(first.number) else {
      throw SystemError(call: "the service manager has to hand over one listening Unix stream socket", code: EINVAL)
    }
    return ListeningSocket(descriptor: descriptor, path: path ?? "the service manager's socket", made: nil)
  }

  /// Makes a socket, and the folder around it.
  static func make(_ path: String, _ locations: Locations) throws -> ListeningSocket {
    if let end = path.lastIndex(of: "/"), end != path.startIndex {
      try Folder.create(path: String(path[..<end]), mode: locations.runtimeDirectoryMode)
    }
    // Full backlogs make clients wait; the kernel cuts this to net.core.somaxconn.
    let descriptor = try UnixSocket.listen(at: path, mode: locations.socketMode, backlog: 4_096)
    return ListeningSocket(descriptor: descriptor, path: path, made: UnixSocket.identity(of: path))
  }
}
