import Glibc
import LinuxSystem
import Testing

struct ConnectionTests {
  private func copy(of socket: borrowing Descriptor) throws -> Descriptor {
    let number = socket.number
    return Descriptor(adopting: try system("fcntl") { fcntl(number, F_DUPFD_CLOEXEC, 3) })
  }

  @Test func `copies of a socket share an inode number, and other sockets have others`() throws {
    let pair = try Pair.sockets()
    let second = try copy(of: pair.reader)
    #expect(second.number != pair.reader.number)
    #expect(try second.inode() == pair.reader.inode())
    #expect(try pair.writer.inode() != pair.reader.inode())
    #expect(try pair.reader.inode() > 0)
  }

  @Test func `the sender knows when the peer has read everything`() throws {
    let pair = try Pair.sockets()
    var found = [try pair.writer.isAllReadByPeer()]
    for _ in 1...3 { try pair.writer.sendAll(Array("data".utf8)) }
    var buffer = [UInt8](repeating: 0, count: 10)
    for _ in 1...2 {
      found.append(try pair.writer.isAllReadByPeer())
      _ = try pair.reader.receive(into: &buffer)
    }
    found.append(try pair.writer.isAllReadByPeer())
    drop(pair.reader)
    // Everything was read before the close.
    found.append(try pair.writer.isAllReadByPeer())
    #expect(found == [true, false, false, true, true])
  }

  @Test func `a peer that closes without reading everything is an error, reported once`() throws {
    let pair = try Pair.sockets()
    try pair.writer.sendAll(Array("data".utf8))
    drop(pair.reader)
    var found: SystemError?
    do throws(SystemError) { _ = try pair.writer.isAllReadByPeer() } catch { found = error }
    #expect(found == SystemError(call: "send", code: ECONNRESET))
    let isAllRead = try pair.writer.isAllReadByPeer()
    #expect(isAllRead)
  }

  @Test func `a descriptor that is not open has no inode number`() throws {
    #expect(throws: SystemError(call: "fstat", code: EBADF)) { _ = try Descriptor(adopting: 999_999).inode() }
  }

  @Test func `both ends are connected, also after the peer has gone`() throws {
    let pair = try Pair.sockets()
    #expect(UnixSocket.isConnectedStream(pair.reader.number))
    #expect(UnixSocket.isConnectedStream(pair.writer.number))
    drop(pair.writer)
    #expect(UnixSocket.isConnectedStream(pair.reader.number))
  }

  @Test func `other descriptors are no connected Unix streams`() throws {
    let pipe = try Pair.pipe()
    let file = try MemoryFile(named: "test")
    #expect(UnixSocket.isConnectedStream(pipe.reader.number) == false)
    #expect(UnixSocket.isConnectedStream(file.descriptor.number) == false)
    #expect(UnixSocket.isConnectedStream(-1) == false)
    let stream = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let datagram = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
    let alone = Descriptor(adopting: try system("socket") { socket(AF_UNIX, stream, 0) })
    #expect(UnixSocket.isConnectedStream(alone.number) == false, "without a peer")
    var ends: [Int32] = [0, 0]
    try system("socketpair") { unsafe socketpair(AF_UNIX, datagram, 0, &ends) }
    let (one, other) = (ends[0], ends[1])
    #expect(UnixSocket.isConnectedStream(one) == false, "not a stream")
    for number in [one, other] { drop(Descriptor(adopting: number)) }
  }

  @Test func `a connection of another address family is no Unix stream`() throws {
    let stream = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let listener = Descriptor(adopting: try system("socket") { socket(AF_INET, stream, 0) })
    let client = Descriptor(adopting: try system("socket") { socket(AF_INET, stream, 0) })
    let (listening, connecting) = (listener.number, client.number)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    unsafe try withUnsafeMutablePointer(to: &address) { pointer in
      try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        try system("bind") { unsafe bind(listening, address, length) }
        try system("listen") { listen(listening, 1) }
        try system("getsockname") { unsafe getsockname(listening, address, &length) }
        try system("connect") { unsafe connect(connecting, address, length) }
      }
    }
    #expect(UnixSocket.isConnectedStream(connecting) == false)
    withExtendedLifetime((listener.number, client.number)) {}
  }

  @Test func `a shutdown ends a connection for both sides and every copy`() throws {
    let pair = try Pair.sockets()
    let second = try copy(of: pair.reader)
    try pair.writer.sendAll([1])
    try second.shutdownBoth()
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(try pair.reader.receive(into: &bytes) == 1, "what came before is still there")
    #expect(try pair.reader.receive(into: &bytes) == 0)
    #expect(try pair.writer.receive(into: &bytes) == 0)
    do {
      _ = try pair.reader.send([1])
      Issue.record("sent")
    } catch {
      #expect(error == SystemError(call: "send", code: EPIPE))
    }
    try pair.reader.shutdownBoth()
  }

  @Test func `shutting down an unconnected socket succeeds, and shutting down a pipe fails`() throws {
    let stream = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let inet = Descriptor(adopting: try system("socket") { socket(AF_INET, stream, 0) })
    let number = inet.number
    #expect(shutdown(number, Int32(SHUT_RDWR)) == -1 && errno == ENOTCONN)
    try inet.shutdownBoth()
    let pipe = try Pair.pipe()
    do {
      try pipe.reader.shutdownBoth()
      Issue.record("a pipe was shut down")
    } catch {
      #expect(error == SystemError(call: "shutdown", code: ENOTSOCK))
    }
  }

  @Test func `descriptors are refused if the kernel supports it, and bytes still pass`() throws {
    let pair = try Pair.sockets()
    #expect(try pair.writer.sendAlong(0) == 1)
    let refuses = pair.reader.refuseDescriptors()
    #expect(!pair.writer.refuseDescriptors() || refuses)
    if refuses {
      #expect(throws: SystemError(call: "sendmsg", code: EPERM)) { _ = try pair.writer.sendAlong(0) }
    }
    try pair.writer.sendAll([2])
    let buffer = ByteBuffer(count: 8)
    var isCut = false
    #expect(try pair.reader.receive(into: buffer, atMost: 8, isCut: &isCut) == 1, "the kernel stops behind them")
    #expect(isCut, "what came before may hold some")
    #expect(try pair.reader.receive(into: buffer, atMost: 8) == 1)
  }
}

extension Descriptor {
  /// Sends one byte together with a copy of a descriptor (SCM_RIGHTS, unix(7)).
  fileprivate func sendAlong(_ descriptor: Int32) throws -> Int {
    let number = number
    var byte: UInt8 = 1
    // One header and one number, with sizes as from CMSG_LEN() and CMSG_SPACE().
    var control = [UInt64](repeating: 0, count: 3)
    return try unsafe withUnsafeMutablePointer(to: &byte) { byte in
      try unsafe control.withUnsafeMutableBytes { control in
        unsafe control.storeBytes(of: 20, as: Int.self)
        unsafe control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
        unsafe control.storeBytes(of: 1, toByteOffset: 12, as: Int32.self)
        unsafe control.storeBytes(of: descriptor, toByteOffset: 16, as: Int32.self)
        var part = unsafe iovec(iov_base: byte, iov_len: 1)
        return try unsafe withUnsafeMutablePointer(to: &part) { part in
          var header = unsafe msghdr()
          unsafe header.msg_iov = part
          unsafe header.msg_iovlen = 1
          unsafe header.msg_control = control.baseAddress
          unsafe header.msg_controllen = 24
          return try system("sendmsg") { unsafe sendmsg(number, &header, 0) }
        }
      }
    }
  }
}
