import Foundation
import LinuxSystem
import Testing

@Suite struct PeerCredentialsTests {
  @Test func `the peer of an own socket is this process`() throws {
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

  @Test func `what is no socket has no peer`() throws {
    let pipe = try Pair.pipe()
    let error = try failure(of: SystemError.self) { _ = try PeerCredentials(of: pipe.reader) }
    #expect(error == SystemError(call: "getsockopt SO_PEERCRED", code: ENOTSOCK))
    #expect(throws: SystemError.self) { _ = try PeerCredentials.groups(of: pipe.reader) }
  }

  @Test(.enabled(if: hasPeerDescriptors, "the kernel has no SO_PEERPIDFD (Linux 6.5)"))
  func `a process that runs is alive`() throws {
    let pair = try Pair.sockets()
    guard let process = try PeerCredentials.processDescriptor(of: pair.reader) else { throw Failure("no descriptor") }
    #expect(try PeerCredentials.isAlive(process))
    #expect(fcntl(process.number, F_GETFD) == FD_CLOEXEC)
  }

  @Test(.enabled(if: hasPeerDescriptors, "the kernel has no SO_PEERPIDFD (Linux 6.5)"))
  func `a peer that has ended is seen to have ended, and its number is still told`() throws {
    let temporary = try TemporaryFolder()
    let listener = try UnixSocket.listen(at: temporary["socket"], mode: 0o700, backlog: 5)
    // Connects, says so, and stays until its input ends.
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
    guard let process = try PeerCredentials.processDescriptor(of: connection) else { throw Failure("no descriptor") }
    #expect(try PeerCredentials.isAlive(process))
    try input.fileHandleForWriting.close()
    peer.waitUntilExit()
    #expect(peer.terminationStatus == 0)
    #expect(try PeerCredentials.isAlive(process) == false)
    #expect(try PeerCredentials(of: connection).processID == peer.processIdentifier)
  }
}

private let hasPeerDescriptors: Bool = {
  guard let pair = try? Pair.sockets() else { return false }
  do {
    return try PeerCredentials.processDescriptor(of: pair.reader) != nil
  } catch {
    return false
  }
}()
