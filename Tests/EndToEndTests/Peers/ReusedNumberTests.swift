import Foundation
import TestSupport
import Testing

/// Reused process IDs: the ID of a process that has ended identifies no peer (row 33).
@Suite(.tags(.trial)) struct ReusedNumberTests {
  private static let counter = "/proc/sys/kernel/ns_last_pid"
  /// Whether this process may choose process IDs by writing to the file. A container may not.
  private static let canSteer = isRoot && FileHandle(forWritingAtPath: counter) != nil

  @Test(.enabled(if: canSteer, "steering the numbers of processes needs root and \(counter)"))
  func `row 33: a root process that reuses the peer's process ID gives the peer no rights`() throws {
    let daemon = try DaemonUnderTest().start()
    let rounds = Trial.rounds(300, long: 3_000)
    // While the daemon is stopped, another user's process connects, sends a request, leaves the connection to a child
    // and exits. Then a process of root gets its ID.
    let script = """
      use IO::Socket::UNIX; use POSIX;
      my ($path, $daemon, $rounds) = @ARGV;
      $| = 1;
      for (1 .. $rounds) {
        kill 'STOP', $daemon;
        pipe my $answer, my $tell;
        my $stranger = fork;
        if (!$stranger) {
          POSIX::setgid(65534); POSIX::setuid(65534);
          my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) or POSIX::_exit(1);
          print {$socket} "whoami\\n"; $socket->flush;
          if (fork) { POSIX::_exit(0) }
          my $line = <$socket>; syswrite $tell, $line // "closed\\n"; POSIX::_exit(0);
        }
        waitpid $stranger, 0;
        my $root;
        for (1 .. 20) {
          open my $counter, '>', '\(Self.counter)' or die $!; print {$counter} $stranger - 1; close $counter;
          $root = fork;
          if (!$root) { sleep 60; POSIX::_exit(0) }
          last if $root == $stranger;
          kill 'KILL', $root; waitpid $root, 0; $root = 0;
        }
        kill 'CONT', $daemon;
        close $tell;
        print $root ? 'reused ' : 'missed ', scalar <$answer>;
        if ($root) { kill 'KILL', $root; waitpid $root, 0 }
      }
      """
    let result = try run(
      ["perl", "-e", script, daemon.socket, "\(daemon.process.processIdentifier)", "\(rounds)"])
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(result.status == 0 && lines.count == rounds, "\(result)")
    let refused = "ERR denied the kernel could not identify the client, which may have ended; connect again"
    for line in lines { #expect(line.dropFirst(7) == refused, "\(line)") }
    let wrong = lines.count { $0.dropFirst(7) != refused }
    try Trial("numbers of processes used again").report(tried: lines.count { $0.hasPrefix("reused ") }, lost: wrong)
    // Without reused IDs, this test would prove nothing.
    #expect(lines.count { $0.hasPrefix("reused ") } > rounds / 2)
  }
}
