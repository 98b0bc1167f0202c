import CLinux
import Glibc

/// Unix domain stream sockets in the file system.
package enum UnixSocket {
  /// The reason why the process cannot listen on a path.
  package enum ListenFailure: Error, CustomStringConvertible {
    /// Another process accepts connections there.
    case inUse(path: String)
    /// A file that is not a socket is in the way. The file was left alone.
    case notASocket(path: String)
    /// A system call failed.
    case system(SystemError)

    /// The cause, with the path.
    package var description: String {
      switch self {
      case .inUse(let path): "another process already listens on \(path)"
      case .notASocket(let path): "\(path) exists and is not a socket; remove it or choose another path"
      case .system(let error): error.description
      }
    }
  }

  /// Connects to a path. The descriptor is blocking.
  package static func connect(to path: String) throws(SystemError) -> Descriptor {
    let socket = Descriptor(adopting: try system("socket") { clinux_unix_stream(0) })
    let number = socket.number
    try system("connect \(path)") { unsafe path.withCString { unsafe clinux_connect_path(number, $0) } }
    return socket
  }

  /// Listens on a path, and replaces a socket that nobody listens on any more.
  ///
  /// A socket that answers is never replaced, and nothing but a socket is ever removed. The mode is set
  /// before any client can connect.
  package static func listen(at path: String, mode: UInt32, backlog: Int32) throws(ListenFailure) -> Descriptor {
    // Between its bind and its listen, the socket of another starting daemon looks stale.
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

  /// Takes over a listening socket that was created elsewhere, and makes it non-blocking.
  package static func adopt(listening number: Int32) throws(SystemError) -> Descriptor {
    let socket = Descriptor(adopting: number)
    let flags = try system("fcntl F_GETFL") { fcntl(number, F_GETFL) }
    try system("fcntl F_SETFL") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
    return socket
  }

  /// Accepts one connection. The listening socket must be non-blocking.
  ///
  /// - Returns: nil if no client waits, or if the waiting client has gone again.
  package static func accept(on listener: borrowing Descriptor) throws(SystemError) -> Descriptor? {
    let number = listener.number
    let result = attempt { Int(clinux_accept(number)) }
    if case .failed(let code) = result, code == ECONNABORTED { return nil }
    guard let accepted = try result.available(as: "accept") else { return nil }
    return Descriptor(adopting: Int32(accepted))
  }

  /// Returns the status of the file at a path, to recognize the file later.
  package static func identity(of path: String) -> FileStatus? {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? FileStatus(status) : nil
  }

  /// Removes a socket if it is still the one that this process created.
  package static func remove(_ path: String, ifStill made: FileStatus?) {
    guard let made, identity(of: path) == made else { return }
    _ = unsafe unlink(path)
  }

  /// Returns whether the descriptor is a Unix stream socket that has or had a peer. False for a listening socket.
  package static func isConnectedStream(_ number: Int32) -> Bool { clinux_is_connected_unix_stream(number) == 1 }

  /// Waits for a moment until no other daemon is about to listen in this folder.
  ///
  /// Anybody who can read the folder can hold its lock (flock(2)), so the wait is limited to
  /// the time that a start takes.
  ///
  /// - Returns: the descriptor that holds the lock, or nil if the lock is not available.
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
      // EAGAIN means that the backlog is full, so a process listens.
      if error.code == EAGAIN { throw ListenFailure.inUse(path: path) }
      guard error.code == ECONNREFUSED else { throw error }
    }
    try system("unlink \(path)") { unsafe unlink(path) }
  }
}

extension Descriptor {
  /// Receives available bytes from a socket into the front of the array, as ``read(into:)`` does.
  package func receive(into bytes: inout [UInt8]) throws(SystemError) -> Int? {
    let number = number
    let result = unsafe bytes.withUnsafeMutableBytes { buffer in
      attempt { unsafe recv(number, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) }
    }
    return try result.available(as: "recv")
  }

  /// Makes the kernel refuse descriptors that the peer sends. The peer gets EPERM (SO_PASSRIGHTS, Linux 6.16).
  ///
  /// Bytes that the peer has sent before may still carry descriptors.
  ///
  /// - Returns: whether the kernel supports the option.
  package func refuseDescriptors() -> Bool { clinux_refuse_descriptors(number) == 0 }

  /// Returns the number of bytes that have arrived at a socket and were not received yet (FIONREAD, unix(7)).
  package func unread() throws(SystemError) -> Int {
    let number = number
    return Int(try system("ioctl FIONREAD") { clinux_unread(number) })
  }

  /// Returns whether the peer has read every byte that was sent to it (SIOCOUTQ, unix(7)).
  ///
  /// - Throws: ECONNRESET if the peer has closed its socket without reading everything.
  package func isAllReadByPeer() throws(SystemError) -> Bool {
    let number = number
    return try system("send") { clinux_is_all_read(number) } == 1
  }

  /// Sends as many bytes as the socket takes now, as ``write(_:from:)`` does. Raises no SIGPIPE if there is no reader.
  package func send(_ bytes: [UInt8], from start: Int = 0, to end: Int? = nil) throws(SystemError) -> Int? {
    try send(bytes, from: start, to: end ?? bytes.count, flags: Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
  }

  /// Sends all of the bytes, and waits if the socket is blocking. Raises no SIGPIPE if there is no reader.
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

  /// Shuts down the writing side. The peer can still send.
  package func shutdownWriting() throws(SystemError) {
    let number = number
    try system("shutdown") { shutdown(number, Int32(SHUT_WR)) }
  }

  /// Shuts down both directions, for every holder of the socket. A socket without a peer is no failure.
  package func shutdownBoth() throws(SystemError) {
    let number = number
    do {
      try system("shutdown") { shutdown(number, Int32(SHUT_RDWR)) }
    } catch  where error.code == ENOTCONN {
      return
    }
  }

  /// Returns the inode number of the open file.
  ///
  /// The inode number of a socket is the same in every process and for every copy of the descriptor. No other socket
  /// has the number while the socket is open anywhere, because all sockets are in one file system.
  package func inode() throws(SystemError) -> UInt64 {
    var status = stat()
    let number = number
    try system("fstat") { unsafe fstat(number, &status) }
    return UInt64(status.st_ino)
  }
}
