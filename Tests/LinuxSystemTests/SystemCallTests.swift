import Glibc
import LinuxSystem
import Testing

struct SystemCallTests {
  @Test func `row 6: a call that a signal interrupts is retried`() throws {
    var tries = 0
    let result = try system("call") { () -> Int32 in
      tries += 1
      errno = EINTR
      return tries < 4 ? -1 : 7
    }
    #expect(result == 7)
    #expect(tries == 4)
  }

  @Test(arguments: [ENOENT, EACCES, EAGAIN, ENOSPC, EIO]) func `any other error is reported at once`(code: Int32)
    throws
  {
    var tries = 0
    let error = try failure(of: SystemError.self) {
      try system("open /somewhere") { () -> Int in
        tries += 1
        errno = code
        return -1
      }
    }
    #expect(error == SystemError(call: "open /somewhere", code: code))
    #expect(tries == 1)
  }

  @Test func `a result other than -1 is a success, whatever errno is`() throws {
    #expect(
      try system("call") { () -> Int32 in
        errno = EIO
        return 0
      } == 0)
  }

  @Test func `an error is described by the call and its reason`() {
    #expect(SystemError(call: "open /x", code: EACCES).description == "open /x: Permission denied")
  }

  @Test func `the name of a call is evaluated only if it fails`() throws {
    var made = 0
    func name() -> String {
      made += 1
      return "call"
    }
    try system(name()) { 0 }
    #expect(made == 0)
  }
}

struct DescriptorTests {
  @Test func `a descriptor is closed when its owner goes`() throws {
    let pipe = try Pair.pipe()
    var byte: [UInt8] = [0]
    #expect(try pipe.writer.write([42]) == 1)
    #expect(try pipe.reader.read(into: &byte) == 1)
    drop(pipe.writer)
    #expect(try pipe.reader.read(into: &byte) == 0, "the end of the stream")
  }

  @Test func `a released descriptor is left open`() throws {
    let pipe = try Pair.pipe()
    let number = pipe.writer.release()
    var byte: [UInt8] = [0]
    #expect(try Descriptor(adopting: number).write([7]) == 1)
    #expect(try pipe.reader.read(into: &byte) == 1)
    #expect(byte == [7])
  }

  @Test func `a descriptor is closed once, and a later one with its number stays open`() throws {
    let pipe = try Pair.pipe()
    // A number so high that nothing else in this process gets it.
    let number = try system("fcntl") { fcntl(pipe.writer.number, F_DUPFD_CLOEXEC, 900) }
    drop(Descriptor(adopting: number))
    #expect(fcntl(number, F_GETFD) == -1)
    let again = try system("fcntl") { fcntl(pipe.writer.number, F_DUPFD_CLOEXEC, number) }
    #expect(again == number)
    #expect(fcntl(number, F_GETFD) == FD_CLOEXEC)
    drop(Descriptor(adopting: again))
    withExtendedLifetime(pipe.reader.number) {}
  }

  @Test func `a read without data is distinguished from the end of the stream`() throws {
    let pipe = try Pair.pipe(flags: O_NONBLOCK)
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(try pipe.reader.read(into: &bytes) == nil)
    #expect(try pipe.writer.write([1, 2, 3], from: 1) == 2)
    #expect(try pipe.reader.read(into: &bytes) == 2)
    #expect(bytes.prefix(2) == [2, 3])
  }

  @Test func `a write without room is no failure`() throws {
    let pipe = try Pair.pipe(flags: O_NONBLOCK)
    let much = [UInt8](repeating: 1, count: 1 << 20)
    let first = try #require(try pipe.writer.write(much))
    #expect(first > 0 && first < much.count)
    #expect(try pipe.writer.write(much) == nil)
    withExtendedLifetime(pipe.reader.number) {}
  }

  @Test func `a failed read names the call and the reason`() throws {
    let pipe = try Pair.pipe()
    let error = try failure(of: SystemError.self) {
      var bytes: [UInt8] = [0]
      _ = try pipe.writer.read(into: &bytes)
    }
    #expect(error == SystemError(call: "read", code: EBADF))
  }

  @Test func `sending without a peer is an error and no signal`() throws {
    let pair = try Pair.sockets()
    drop(pair.writer)
    #expect(refusal(toSendTo: pair.reader, whole: false) == SystemError(call: "send", code: EPIPE))
    #expect(refusal(toSendTo: pair.reader, whole: true) == SystemError(call: "send", code: EPIPE))
  }

  private func refusal(toSendTo socket: borrowing Descriptor, whole: Bool) -> SystemError? {
    do {
      if whole { try socket.sendAll([1, 2, 3]) } else { _ = try socket.send([1]) }
      return nil
    } catch {
      return error
    }
  }

  @Test func `a side that has shut down its sending can still receive`() throws {
    let pair = try Pair.sockets()
    try pair.reader.sendAll([1, 2, 3])
    try pair.reader.shutdownWriting()
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(try pair.writer.receive(into: &bytes) == 3)
    #expect(try pair.writer.receive(into: &bytes) == 0)
    #expect(try pair.reader.receive(into: &bytes) == nil)
    #expect(try pair.writer.send([9]) == 1)
    #expect(try pair.reader.receive(into: &bytes) == 1)
  }
}

/// Consumes a descriptor, which closes it.
func drop(_ descriptor: consuming Descriptor) {}

/// Two connected descriptors, which no tuple can hold.
struct Pair: ~Copyable {
  let reader: Descriptor
  let writer: Descriptor

  /// Creates a pipe, which `reader` reads and `writer` writes.
  static func pipe(flags: Int32 = 0) throws -> Pair {
    var ends: [Int32] = [0, 0]
    try system("pipe") { unsafe Glibc.pipe(&ends) }
    let pair = Pair(reader: Descriptor(adopting: ends[0]), writer: Descriptor(adopting: ends[1]))
    for number in ends {
      try system("fcntl") { fcntl(number, F_SETFD, FD_CLOEXEC) }
      try system("fcntl") { fcntl(number, F_SETFL, flags) }
    }
    return pair
  }

  /// Creates two sockets that are connected with each other.
  static func sockets() throws -> Pair {
    var ends: [Int32] = [0, 0]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    try system("socketpair") { unsafe socketpair(AF_UNIX, kind, 0, &ends) }
    return Pair(reader: Descriptor(adopting: ends[0]), writer: Descriptor(adopting: ends[1]))
  }
}
