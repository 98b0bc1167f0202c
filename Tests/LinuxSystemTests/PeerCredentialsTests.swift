import Foundation
import LinuxSystem
import TestSupport
import Testing

struct PeerCredentialsTests {
  @Test func `the peer of one's own socket is this process`() throws {
    let pair = try Pair.sockets()
    let peer = try PeerCredentials(of: pair.reader)
    #expect(peer.processID == ProcessInfo.processInfo.processIdentifier)
    #expect(peer.processID == ProcessGuard.processID)
    #expect(peer.userID == geteuid())
    #expect(peer.groupID == getegid())
  }

  @Test func `the groups of the peer are those of this process`() throws {
    let pair = try Pair.sockets()
    var own = [gid_t](repeating: 0, count: 65_536)
    let count = unsafe getgroups(Int32(own.count), &own)
    #expect(try PeerCredentials.groups(of: pair.reader) == Array(own.prefix(Int(count))))
  }

  @Test func `a pipe has no peer`() throws {
    let pipe = try Pair.pipe()
    let error = try failure(of: SystemError.self) { _ = try PeerCredentials(of: pipe.reader) }
    #expect(error == SystemError(call: "getsockopt SO_PEERCRED", code: ENOTSOCK))
    #expect(throws: SystemError.self) { _ = try PeerCredentials.groups(of: pipe.reader) }
  }

  @Test func `a running process is alive`() throws {
    let pair = try Pair.sockets()
    let process = try PeerCredentials.processDescriptor(of: pair.reader, number: ProcessGuard.processID)
    #expect(try PeerCredentials.isAlive(process.number))
    #expect(fcntl(process.number, F_GETFD) == FD_CLOEXEC)
    // The method for kernels before 6.5.
    let same = try PeerCredentials.processDescriptor(number: ProcessGuard.processID)
    #expect(try PeerCredentials.isAlive(same.number))
    #expect(fcntl(same.number, F_GETFD) == FD_CLOEXEC)
  }

  @Test func `an invalid process ID has no descriptor`() throws {
    for (number, code) in [(0, EINVAL), (-1, EINVAL), (Int32.max, ESRCH)] as [(Int32, Int32)] {
      let error = try failure(of: SystemError.self) { _ = try PeerCredentials.processDescriptor(number: number) }
      #expect(error == SystemError(call: "pidfd_open", code: code))
    }
  }

  @Test func `row 35: a peer that has exited is seen as such, and its process ID is still known`() throws {
    let temporary = try TemporaryFolder()
    let listener = try UnixSocket.listen(at: temporary["socket"], mode: 0o700, backlog: 5)
    // Connects, reports the connection, and stays until its input ends.
    let script = """
      use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!;
      $| = 1; print "connected\\n"; <STDIN>;
      """
    let peer = Process()
    peer.executableURL = URL(filePath: "/usr/bin/perl")
    peer.arguments = ["-e", script, temporary["socket"]]
    let (input, output) = (Pipe(), Pipe())
    peer.standardInput = input
    peer.standardOutput = output
    try peer.run()
    #expect(String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) == "connected\n")
    guard let connection = try UnixSocket.accept(on: listener) else { throw Failure("nobody waits") }
    #expect(try PeerCredentials(of: connection).processID == peer.processIdentifier)
    let process = try PeerCredentials.processDescriptor(of: connection, number: peer.processIdentifier)
    let same = try PeerCredentials.processDescriptor(number: peer.processIdentifier)
    #expect(try PeerCredentials.isAlive(process.number))
    #expect(try PeerCredentials.isAlive(same.number))
    try input.fileHandleForWriting.close()
    peer.waitUntilExit()
    #expect(peer.terminationStatus == 0)
    #expect(try PeerCredentials.isAlive(process.number) == false)
    #expect(try PeerCredentials.isAlive(same.number) == false)
    #expect(try PeerCredentials(of: connection).processID == peer.processIdentifier)
  }
}
