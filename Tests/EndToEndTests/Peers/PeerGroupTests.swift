import Foundation
import TestSupport
import Testing

/// Processes that enter and leave services (row 36c). A connection has the rights of the service that its process is in
/// when it is accepted, whatever the daemon has cached about other peers.
@Suite(.enabled(if: canMakeControlGroups, "control groups can be made by root alone, where libsystemd looks for them"))
struct PeerGroupTests {
  private let name = controlGroupName()

  /// Runs a Perl program that may enter cgroups below a cgroup of this test, which is removed afterwards.
  private func perl(_ daemon: DaemonUnderTest, _ script: String) throws -> [String] {
    let folder = try #require(controlGroups) + "/\(name).slice"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer {
      // The last process may still be exiting.
      for _ in 0..<100 where unsafe rmdir(folder) != 0 { usleep(10_000) }
    }
    let begin = """
      use Socket; use POSIX;
      my ($path, $folder) = @ARGV; $| = 1;
      sub enter { my ($group) = @_; mkdir $group;
        open my $file, '>', "$group/cgroup.procs" or die $!; syswrite $file, "$$" or die $!; }
      sub leave { enter($folder); rmdir "$folder/$_[0]" or die $! }
      sub connection { socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die $!;
        connect($socket, sockaddr_un($path)) or die $!; return $socket }
      sub whoami { my ($socket) = @_; syswrite $socket, "whoami\n"; return (split / /, scalar <$socket>)[1] }

      """
    let end = "\nopen my $file, '>', \"$folder/../cgroup.procs\" or die $!; syswrite $file, \"$$\" or die $!;"
    let result = try run(["perl", "-e", begin + script + end, daemon.socket, folder])
    #expect(result.status == 0, "\(result)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test func `row 36c: a connection keeps the service that its process was in at connect time`() throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try perl(
      daemon,
      """
      my @kept;
      for my $group (('a.service', 'b.service', 'c.scope') x 4) {
        enter("$folder/$group");
        my $socket = connection(); push @kept, $socket;
        print whoami($socket), "\\n"; print whoami(connection()), "\\n";
      }
      print whoami($_), "\\n" for @kept;
      leave($_) for 'a.service', 'b.service', 'c.scope';
      """)
    let round = ["unit:a.service", "unit:b.service", "user:0"]
    #expect(heard == (0..<4).flatMap { _ in round.flatMap { [$0, $0] } } + (0..<4).flatMap { _ in round })
  }

  @Test func `row 36c: a new cgroup is not taken for a removed one`() throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try perl(
      daemon,
      """
      for my $round (1 .. 60) {
        my $group = ('a.service', "$round.service", 'a.scope')[$round % 3];
        enter("$folder/$group"); print "$group ", whoami(connection()), "\\n"; leave($group);
      }
      """)
    #expect(heard.count == 60)
    for line in heard {
      let words = line.split(separator: " ")
      #expect(words.last == (words[0].hasSuffix(".scope") ? "user:0" : "unit:\(words[0])"), "\(line)")
    }
  }

  @Test func `concurrent connections from several cgroups are not confused`() throws {
    let daemon = try DaemonUnderTest().start()
    let heard = try perl(
      daemon,
      """
      my @groups = ('a.service', 'b.service', 'c.scope', 'd.service');
      for my $number (0 .. 7) {
        next if fork;
        my $group = $groups[$number % 4];
        enter("$folder/$group");
        for my $round (1 .. 200) {
          my $told = whoami(connection());
          print "$group $told\\n" if $told ne ($group =~ /scope/ ? 'user:0' : "unit:$group");
        }
        POSIX::_exit(0);
      }
      while (wait != -1) { print "status $?\\n" if $? }
      rmdir "$folder/$_" for @groups;
      print "done\\n";
      """)
    #expect(heard == ["done"])
  }

  @Test func `without the ioctl for the cgroup, the cgroup is looked up for each connection`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      for my $group (('a.service', 'b.service') x 2) { enter("$folder/$group"); print whoami(connection()), "\\n" }
      leave($_) for 'a.service', 'b.service';
      """
    let expected = ["unit:a.service", "unit:b.service", "unit:a.service", "unit:b.service"]
    // EINVAL as on kernels before 6.13, ENOTTY as on kernels without ioctls for a pidfd, EPERM as with a system
    // call filter.
    for error in ["EINVAL", "ENOTTY", "EPERM"] {
      try Fault.inject("ioctl:error=\(error)", into: daemon) { () throws in
        #expect(try perl(daemon, script) == expected, "\(error)")
      }
    }
    #expect(try perl(daemon, script) == expected)
  }

  @Test func `each process has its own session, with and without the ioctl`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      sub session { my $socket = connection(); syswrite $socket, "get session\\n"; return (split / /, <$socket>)[1] }
      enter("$folder/a.scope");
      my %told; $told{session()}++ for 1 .. 5;
      if (!fork) { $told{session()} += 10; print join(' ', sort { $a <=> $b } values %told), "\\n"; POSIX::_exit(0) }
      wait; leave('a.scope');
      """
    #expect(try perl(daemon, script) == ["5 10"])
    try Fault.inject("ioctl:error=EINVAL", into: daemon) { () throws in
      #expect(try perl(daemon, script) == ["5 10"])
    }
  }

  @Test func `a process that outlives a restart of its service belongs to the new run`() throws {
    let daemon = try DaemonUnderTest().start()
    // Creates the folders of systemd, which are missing where it does not run.
    let made = ["/run/systemd", "/run/systemd/units"].filter { (path: String) in unsafe mkdir(path, 0o755) == 0 }
    defer { for path in made.reversed() { unsafe rmdir(path) } }
    let link = "/run/systemd/units/invocation:\(name).service"
    let heard = try perl(
      daemon,
      """
      sub session { my $socket = connection(); syswrite $socket, "get session\\n"; return (split / /, <$socket>)[1] }
      my %told; my $link = '\(link)';
      enter("$folder/\(name).service");
      for my $run ('', '0123456789abcdeffedcba9876543210', '1123456789abcdeffedcba9876543210') {
        symlink($run, $link) or die $! if $run;
        my ($first, $second) = (session(), session());
        $told{$first}++; print $first eq $second ? 'same' : 'another', "\\n";
        unlink $link;
      }
      print scalar(keys %told), "\\n"; leave('\(name).service');
      """)
    #expect(heard == ["same", "same", "same", "3"])
  }
}
