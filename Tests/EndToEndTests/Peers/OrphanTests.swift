import Foundation
import LinuxSystem
import TestSupport
import Testing

/// Connections whose process has exited (row 34). A connection ends when the process that opened it exits: another
/// process that holds the descriptor is a different peer.
@Suite(.tags(.seldomThreads)) struct OrphanTests {
  /// Sends requests on a new connection, then exits and leaves the connection to a child, which sends more requests.
  ///
  /// - Parameters:
  ///   - socket: the path of the socket.
  ///   - first: the requests of the process, each with an answer of one line.
  ///   - later: the requests of the child after the process has exited.
  /// - Returns: all lines that both receive, then `end`, or `silence` if the connection stays open for 10 s.
  private func inherit(_ socket: String, first: [String], later: [String]) throws -> [String] {
    let script = """
      use IO::Socket::UNIX; use POSIX;
      my ($path, $count) = splice @ARGV, 0, 2;
      my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) or die $!;
      $socket->autoflush(1); $| = 1;
      for (splice @ARGV, 0, $count) { print {$socket} "$_\\n"; print scalar <$socket>; }
      pipe my $alive, my $parent;
      if (fork) { POSIX::_exit(0) }
      close $parent; <$alive>;
      select undef, undef, undef, 0.3;
      local $SIG{PIPE} = 'IGNORE'; local $SIG{ALRM} = sub { print "silence\\n"; exit }; alarm 10;
      print {$socket} "$_\\n" for @ARGV;
      print while <$socket>;
      print "end\\n";
      """
    let result = try run(["perl", "-e", script, socket, "\(first.count)"] + first + later)
    return result.output.split(separator: "\n").map(String.init)
  }

  private let reason = "ERR denied the process that opened this connection has ended; connect again"

  @Test func `row 34: a process that inherits a connection gains no rights from it`() throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try inherit(daemon.socket, first: ["ping"], later: ["ping", "account set mallory", "get device"])
    #expect(heard == ["OK", reason, "end"])
    #expect(try daemon.client().statusValue("device-origin") == "none")
    try daemon.waitForStatus("connections", "1")
  }

  @Test(.enabled(if: isRoot, "only an admin may use the socket"))
  func `row 34: nor does one that inherits a connection with the fleet's service`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    // An empty line has no answer, at either socket.
    let heard = try inherit(device.socket, first: ["\naccount leave"], later: ["account create mallory"])
    #expect(heard.first?.hasPrefix("ERR conflict ") == true && heard.dropFirst() == [reason, "end"], "\(heard)")
    #expect(try device.daemon.ask("account") == "OK \"\"")
  }

  @Test(.enabled(if: isRoot, "making events needs root"))
  func `row 40e: a subscription ends with its process and says why`() throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try inherit(daemon.socket, first: ["subscribe"], later: [])
    #expect(heard.first?.hasPrefix("OK 1 epoch=") == true && heard.dropFirst() == [reason, "end"], "\(heard)")
    #expect(try daemon.client().statusValue("subscribers") == "0")
  }

  @Test(.enabled(if: isRoot, "only an admin may list devices"))
  func `rows 25d and 35: all requests that a process sent before its exit are executed`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      use IO::Socket::UNIX; use POSIX;
      my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ARGV[0]) or die $!;
      # Waits for an answer, because a process that exits before the daemon attests it is refused.
      print {$socket} "ping\n"; $socket->flush; <$socket>;
      print {$socket} map { sprintf "devices put 00000000-0000-4000-8000-%012x\\n", $_ } 1 .. 2000;
      $socket->flush; POSIX::_exit(0) if $ARGV[1] eq 'alone';
      if (fork) { POSIX::_exit(0) }
      # Closes the descriptors inherited from Foundation, which would wait for this process too.
      for (3 .. 4095) { POSIX::close($_) if $_ != fileno $socket }
      sleep 20;
      """
    // Puts this device itself on the list.
    _ = try daemon.uuid("get device")
    for how in ["alone", "inherited"] {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/perl")
      process.arguments = ["-e", script, daemon.socket, how]
      try process.runUnmasked()
      process.waitUntilExit()
      try daemon.waitForStatus("devices", "2001")
      try daemon.waitForStatus("connections", "1")
      // Clearing the account leaves only this device in the list.
      #expect(try daemon.ask("account set \(how)") == "OK")
      #expect(try daemon.ask("account clear") == "OK")
      try daemon.waitForStatus("devices", "1")
    }
  }

  /// Returns the number of the daemon's open descriptors, once it equals `expected`, or without `expected` once it
  /// stops changing.
  private func descriptors(_ daemon: DaemonUnderTest, until expected: Int? = nil) throws -> Int {
    var last = -1
    for _ in 0..<100 {
      usleep(100_000)
      let folder = "/proc/\(daemon.process.processIdentifier)/fd"
      let count = try FileManager.default.contentsOfDirectory(atPath: folder).count
      if count == expected ?? last { return count }
      last = count
    }
    return last
  }

  @Test func `all connections of a process share one pidfd, which the last one closes`() throws {
    let daemon = try DaemonUnderTest().start()
    // Includes one pidfd: the daemon keeps the pidfd of the connection that ended last, which `start` made.
    let before = try descriptors(daemon)
    var clients = try (0..<100).map { _ in try daemon.client() }
    for client in clients { #expect(try client.ask("ping") == ["OK"]) }
    // 100 sockets and one pidfd. The daemon starts to watch a process a moment after it connects.
    #expect(try descriptors(daemon, until: before + 101) == before + 101)
    clients.removeLast(99)
    #expect(try descriptors(daemon, until: before + 2) == before + 2)
    #expect(try clients[0].ask("ping") == ["OK"])
    clients.removeAll()
    #expect(try descriptors(daemon, until: before) == before)
  }

  @Test func `row 25d: a thousand processes that come and go leave no descriptor behind`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      use IO::Socket::UNIX; use POSIX;
      for my $round (1 .. 1000) {
        if (fork == 0) {
          my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ARGV[0]) or POSIX::_exit(1);
          print {$socket} $round % 2 ? "get device\\nping\\n" : "get dev"; $socket->flush;
          select undef, undef, undef, 0.1 if $round % 10 == 0;
          POSIX::_exit(0);
        }
        wait if $round > 20;
      }
      1 while wait != -1;
      """
    // Its connection and the pidfd of this process are open before and afterwards.
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    let before = try descriptors(daemon)
    #expect(try run(["perl", "-e", script, daemon.socket]).status == 0)
    try daemon.waitForStatus("connections", "2")
    let after = try descriptors(daemon, until: before)
    // On a busy machine, the connection of `start` may have been counted before.
    #expect((before - 1...before).contains(after), "\(after) after \(before)")
    #expect(try client.ask("ping") == ["OK"])
  }
}
