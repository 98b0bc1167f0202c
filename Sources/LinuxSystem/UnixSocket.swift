import CLinux
import Glibc

/// Unix domain stream sockets in the file system.
package enum UnixSocket {
  /// Why a path cannot be listened on.
  package enum ListenFailure: Error, CustomStringConvertible {
    /// Somebody accepts connections there.
    case inUse(path: String)
    /// Something that is not a socket stands there; it was left alone.
    case notASocket(path: String)
    /// The kernel refused.
    case system(SystemError)

    /// The cause, with the path.
    package var description: String {
      switch self {
      case .inUse(let path): "somebody already listens on \(path)"
      case .notASocket(let path): "\(path) is there and is no socket; it was left alone"
      case .system(let error): error.description
      }
    }
  }

  /// Connects; the descriptor blocks.
  package static func connect(to path: String) throws(SystemError) -> Descriptor {
    let socket = Descriptor(adopting: try system("socket") { clinux_unix_stream(0) })
    let number = socket.number
    try system("connect \(path)") { unsafe path.withCString { unsafe clinux_connect_path(number, $0) } }
    return socket
  }

  /// Listens on a path, replacing a socket there that nobody listens on any more.
  ///
  /// A socket that answers is never taken, and nothing but a socket is ever removed. The mode is set before anybody can
  /// connect.
  package static func listen(at path: String, mode: UInt32, backlog: Int32) throws(ListenFailure) -> Descriptor {
    // Between its bind and its listen, the socket of another daemon that starts looks like a stale one.
    let turn = lockFolder(of: path)
    let socket = try listenInTurn(at: path, mode: mode, backlog: backlog)
    _ = consume turn
    return socket
  }

  private static func listenInTurn(at path: String, mode: UInt32, backlog: Int32) throws(ListenFailure) -> Descriptor {
    do {
      try clearTheWay(to: path)
      let socket = Descriptor(adopting: try system("socket") { clinux_unix_stream(1) })
      let number = socket.number
      let before = umask(0o777 & ~mode)
      defer { umask(before) }
      try system("bind \(path)") { unsafe path.withCString { unsafe clinux_bind_path(number, $0) } }
      try system("listen \(path)") { Glibc.listen(number, backlog) }
      return socket
    } catch let failure as ListenFailure {
      throw failure
    } catch let error as SystemError {
      throw .system(error)
    } catch {
      throw .system(SystemError(call: "listen \(path)", code: EIO))
    }
  }

  /// Takes over a listening socket that somebody else made, so that accepting from it does not block.
  package static func adopt(listening number: Int32) throws(SystemError) -> Descriptor {
    let socket = Descriptor(adopting: number)
    let flags = try system("fcntl F_GETFL") { fcntl(number, F_GETFL) }
    try system("fcntl F_SETFL") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
    return socket
  }

  /// Accepts one connection; the listening socket must not block.
  ///
  /// - Returns: nil when nobody waits, or who waited has gone again.
  package static func accept(on listener: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    let number = listener.number
    let result = attempt { Int(clinux_accept(number)) }
    if case .failed(let code) = result, code == ECONNABORTED { return nil }
    guard let accepted = try result.available(as: "accept") else { return nil }
    return Descriptor(adopting: Int32(accepted))
  }

  /// Which file a path stands for, so that it can be told later whether it still is the same.
  package static func identity(of path: String) -> FileStatus? {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? FileStatus(status) : nil
  }

  /// Removes a socket, if it still is the one that this process made.
  package static func remove(_ path: String, ifStill made: FileStatus?) {
    guard let made, identity(of: path) == made else { return }
    _ = unsafe unlink(path)
  }

  /// Whether the descriptor is a Unix stream socket that has, or had, a peer; one that listens is none.
  package static func isConnectedStream(_ number: Int32) -> Bool { clinux_is_connected_unix_stream(number) == 1 }

  /// Waits for a moment until no other daemon is about to listen in this folder.
  ///
  /// Whoever can read the folder can hold its lock (flock(2)), so it is waited for no longer than a start takes.
  ///
  /// - Returns: what holds the lock; nil where it cannot be had.
  private static func lockFolder(of path: String) -> Descriptor? {
    let number = unsafe open(Folder.path(around: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard number >= 0 else { return nil }
    let descriptor = Descriptor(adopting: number)
    for _ in 0..<lockAttempts {
      if flock(number, LOCK_EX | LOCK_NB) == 0 { return descriptor }
      usleep(lockPauseMicroseconds)
    }
    return nil
  }

  private static let lockAttempts = 100
  private static let lockPauseMicroseconds: UInt32 = 10_000

  private static func clearTheWay(to path: String) throws {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      if errno == ENOENT { return }
      throw SystemError(call: "lstat \(path)", code: errno)
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw ListenFailure.notASocket(path: path) }
    let probe = Descriptor(adopting: try system("socket") { clinux_unix_stream(1) })
    let number = probe.number
    do {
      try system("connect \(path)") { unsafe path.withCString { unsafe clinux_connect_path(number, $0) } }
      throw ListenFailure.inUse(path: path)
    } catch let error as SystemError {
      // EAGAIN: its backlog is full, so somebody listens.
      if error.code == EAGAIN { throw ListenFailure.inUse(path: path) }
      guard error.code == ECONNREFUSED else { throw error }
    }
    try system("unlink \(path)") { unsafe unlink(path) }
  }
}

extension Descriptor {
  /// Receives from a socket into the front of the array, as ``read(into:)`` does.
  package func receive(into bytes: inout [UInt8]) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeMutableBytes { buffer in
      attempt { unsafe recv(number, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) }
    }
    return try result.available(as: "recv")
  }

  /// Has the kernel refuse descriptors that the other side sends along: it gets EPERM (SO_PASSRIGHTS, Linux 6.16). What
  /// it has sent before may hold some.
  ///
  /// - Returns: whether the kernel can do that.
  package func refuseDescriptors() -> Bool { clinux_refuse_descriptors(number) == 0 }

  /// How much has arrived at a socket and was not received yet, in bytes (FIONREAD, unix(7)).
  package func unread() throws(SystemError) -> Int {
    let number = number
    return Int(try system("ioctl FIONREAD") { clinux_unread(number) })
  }

  /// Sends what is taken now, as ``write(_:from:)`` does, and raises no SIGPIPE when nobody reads.
  package func send(_ bytes: [UInt8], from start: Int = 0, to end: Int? = nil) throws(SystemError) -> Int? {
    try send(bytes, from: start, to: end ?? bytes.count, flags: Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
  }

  /// Sends everything, waiting where the socket blocks, and raises no SIGPIPE when nobody reads.
  package func sendAll(_ bytes: [UInt8]) throws(SystemError) {
    var sent = 0
    while sent < bytes.count { sent += try send(bytes, from: sent, to: bytes.count, flags: Int32(MSG_NOSIGNAL)) ?? 0 }
  }

  private func send(_ bytes: [UInt8], from start: Int, to end: Int, flags: Int32) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeBytes { buffer in
      let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<end])
      return attempt { unsafe Glibc.send(number, rest.baseAddress, rest.count, flags) }
    }
    return try result.available(as: "send")
  }

  /// Tells the other side that nothing more comes; it can still send.
  package func shutdownWriting() throws(SystemError) {
    let number = number
    try system("shutdown") { shutdown(number, Int32(SHUT_WR)) }
  }

  /// Ends the connection in both directions for whoever has the socket; one that has no peer is no failure.
  package func shutdownBoth() throws(SystemError) {
    let number = number
    do {
      try system("shutdown") { shutdown(number, Int32(SHUT_RDWR)) }
    } catch  where error.code == ENOTCONN {
      return
    }
  }

  /// The kernel's number of what is open. For a socket it is the same in every process and for every copy of the
  /// descriptor, and no other socket has it as long as this one is open somewhere (socket file system, one for all).
  package func inode() throws(SystemError) -> UInt64 {
    var status = stat()
    let number = number
    try system("fstat") { unsafe fstat(number, &status) }
    return UInt64(status.st_ino)
  }
}
