import Foundation
import IdentityCore
import TestSupport
import Testing

/// Peers that have exited, that change their user, or that cannot be identified in the daemon's namespaces.
@Suite(.enabled(if: isRoot, "acting as another user needs root"), .tags(.seldomThreads)) struct PeerFaultTests {
  /// Runs a Perl program with the daemon's socket as its first argument.
  private func perl(_ daemon: DaemonUnderTest, _ script: String, _ arguments: String...) throws -> [String] {
    let begin =
      "use IO::Socket::UNIX; use POSIX; $| = 1; sub connection { my $socket = IO::Socket::UNIX->new("
      + "Type => SOCK_STREAM, Peer => $ARGV[0]) or die $!; $socket->autoflush(1); return $socket }\n"
    let result = try run(["perl", "-e", begin + script, daemon.socket] + arguments)
    #expect(result.status == 0, "\(result)")
    return result.output.split(separator: "\n").map(String.init)
  }

  private func descriptors(_ daemon: DaemonUnderTest) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.process.processIdentifier)/fd").count
  }

  @Test(arguments: [false, true])
  func `row 32: after many requests without descriptors a client can send none, and goes on`(sendsFirst: Bool) throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      import array, os, socket, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
      file = s.makefile()
      fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
      def ask(send):
          send(); assert file.readline() == "OK\\n"
      if \(sendsFirst ? "True" : "False"): ask(lambda: s.sendmsg([b"ping\\n"], fds))
      for _ in range(\(Bound.readingsBeforeRefusal + 2)): ask(lambda: s.sendall(b"ping\\n"))
      try:
          ask(lambda: s.sendmsg([b"ping\\n"], fds)); print("taken")
      except PermissionError: print("refused")
      ask(lambda: s.sendall(b"ping\\n"))
      # SO_PASSRIGHTS, which older kernels lack.
      try: s.setsockopt(socket.SOL_SOCKET, 83, 1); print("refusable")
      except OSError: print("unknown")
      """
    let result = try run(["python3", "-c", script, daemon.socket])
    let words = result.output.split(separator: "\n")
    #expect(words.count == 2, "\(result)")
    #expect(words.first == (!sendsFirst && words.last == "refusable" ? "refused" : "taken"))
  }

  @Test func `row 32: descriptors that a client sends are not kept`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    #expect(try client.ask("ping") == ["OK"])
    let script = """
      import array, os, socket, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
      file = s.makefile()
      s.sendall(b"ping\\n"); file.readline(); os.write(1, b"ready\\n"); sys.stdin.readline()
      fds = array.array("i", [os.open("/dev/null", os.O_RDONLY)] * 253)
      for _ in range(100):
          s.sendmsg([b"ping\\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
          assert file.readline() == "OK\\n"
      os.write(1, b"sent\\n"); sys.stdin.readline()
      """
    let sender = Process()
    sender.executableURL = URL(filePath: "/usr/bin/python3")
    sender.arguments = ["-c", script, daemon.socket]
    let (input, output) = (Pipe(), Pipe())
    sender.standardInput = input
    sender.standardOutput = output
    try sender.runUnmasked()
    #expect(output.fileHandleForReading.availableData == Data("ready\n".utf8))
    // The daemon starts to watch the process a moment later, which takes one more descriptor.
    var before = try descriptors(daemon)
    for _ in 0..<20 {
      usleep(20_000)
      before = max(before, try descriptors(daemon))
    }
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    #expect(output.fileHandleForReading.availableData == Data("sent\n".utf8))
    #expect(try descriptors(daemon) <= before)
    let links = try run(["ls", "-l", "/proc/\(daemon.process.processIdentifier)/fd"]).output
    // At most one: the daemon's own standard input.
    #expect(links.components(separatedBy: "/dev/null").count <= 2, "\(links)")
    try input.fileHandleForWriting.close()
    sender.waitUntilExit()
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test(arguments: [
    #"s.sendmsg([b"ping\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])"#,
    #"s.send(b"ping\n", socket.MSG_OOB)"#,
  ])
  func `row 32: requests behind descriptors or out-of-band bytes are answered at once`(sending: String) throws {
    let daemon = try DaemonUnderTest().start()
    let process = daemon.process.processIdentifier
    let script = """
      import array, os, signal, socket, sys
      s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
      file = s.makefile()
      s.sendall(b"hello\\n"); file.readline()
      os.kill(int(sys.argv[2]), signal.SIGSTOP)
      # All bytes arrive while the daemon is stopped, so the kernel reports them only once.
      s.sendall(b"ping\\n"); \(sending); s.sendall(b"\\nhello\\n")
      os.kill(int(sys.argv[2]), signal.SIGCONT)
      while "identityd" not in file.readline(): pass
      """
    let words = ["timeout", "\(patience)", "/usr/bin/python3", "-c", script, daemon.socket, "\(process)"]
    #expect(try run(words).status == 0)
  }

  @Test func `row 35: requests of peers that exit before they are accepted change nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    kill(daemon.process.processIdentifier, SIGSTOP)
    _ = try perl(
      daemon,
      """
      for (1 .. 50) {
        if (fork == 0) { my $socket = connection(); print {$socket} "account set mallory\\nget device\\n"; POSIX::_exit(0) }
      }
      1 while wait != -1;
      """)
    kill(daemon.process.processIdentifier, SIGCONT)
    #expect(try daemon.ask("account") == "OK \"\"")
    #expect(try daemon.client().statusValue("device-origin") == "none")
    try daemon.waitForStatus("connections", "1")
  }

  @Test(arguments: [
    "getsockopt:error=ENOTCONN:when=1", "getsockopt:error=ESRCH:when=2", "getsockopt:error=EINVAL:when=2",
    "poll:error=EFAULT", "poll:error=ENOMEM", "read:error=EIO",
  ])
  func `row 35: a peer that cannot be identified is refused and never taken for root`(fault: String) throws {
    let daemon = try DaemonUnderTest().start()
    // Only reads about the peer, which is this process, fail. A failed read of the event loop ends the daemon.
    let file = fault.hasPrefix("read") ? "/proc/\(getpid())/uid_map" : nil
    try Fault.inject(fault, on: file, into: daemon) { () throws in
      let answer = try? daemon.client().ask("whoami").last
      #expect(answer == nil || answer?.hasPrefix("ERR ") == true, "\(answer ?? "")")
    }
    #expect(try daemon.ask("whoami").contains("uid=0"))
  }

  @Test func `row 36: a peer that changes its user keeps the identity that it connected with`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      my $socket = connection();
      POSIX::setgid(65534); POSIX::setuid(65534) or die $!;
      print {$socket} "whoami\\n"; print scalar <$socket>;
      my $other = connection(); print {$other} "whoami\\n"; print scalar <$other>;
      """
    let answers = try perl(daemon, script)
    #expect(answers.count == 2)
    #expect(answers.first?.contains(" uid=0 ") == true && answers.first?.contains("admin=yes") == true)
    #expect(answers.last?.contains(" uid=65534 ") == true && answers.last?.contains("admin=no") == true)
  }

  @Test func `row 36: each new connection has the process's current user and groups`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Access]\nAdminGroup=tty\n")
    let script = """
      import grp, os, socket, sys
      tty = grp.getgrnam("tty").gr_gid
      def ask():
        with socket.socket(socket.AF_UNIX) as s:
          s.connect(sys.argv[1]); s.sendall(b"whoami\\n")
          words = dict(word.split("=") for word in s.makefile().readline().split()[2:])
          return words["uid"], words["admin"]
      for _ in range(3):
        for user, group, groups in [
          (0, 0, []), (65534, 65534, []), (65534, tty, []), (65534, 65534, [tty]), (65534, 65534, []),
          (65533, 65534, []), (65533, 65534, [65534, tty])]:
          os.setgroups(groups); os.setegid(group); os.seteuid(user)
          expected = str(user), "yes" if user == 0 or tty in [group, *groups] else "no"
          for _ in range(2):
            answer = ask()
            assert answer == expected, (user, group, groups, answer)
          os.seteuid(0); os.setegid(0)
      """
    let result = try run(["/usr/bin/python3", "-c", script, daemon.socket])
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test(arguments: [2_147_483_647, 2_147_483_648, 2_147_483_649, 4_294_967_294] as [UInt32])
  func `row 36: a user ID beyond the signed range is that user and no admin`(user: UInt32) throws {
    let daemon = try DaemonUnderTest().start()
    let answer = try OtherUser(Int(user), of: daemon).ask("whoami")
    #expect(answer.hasPrefix("OK user:\(user) uid=\(user) "), "\(answer)")
    #expect(answer.contains("admin=no"))
    #expect(try identityctl(daemon, "account", "set", "x", asUser: Int(user)).status == 15)
  }

  /// Sends `whoami` from a process that `wrapper` starts, and returns the answer.
  private func whoami(_ daemon: DaemonUnderTest, _ wrapper: String...) throws -> String {
    try run(wrapper + ["socat", "-t", "10", "-", "UNIX-CONNECT:\(daemon.socket)"], input: "whoami\n").output
  }

  /// Connects from a process that `wrapper` starts, and returns the received text. Sends no request, because the daemon
  /// may close a refused connection before the request arrives.
  private func refusal(_ daemon: DaemonUnderTest, _ wrapper: String...) throws -> String {
    try run(wrapper + ["timeout", "10", "socat", "-u", "UNIX-CONNECT:\(daemon.socket)", "STDOUT"]).output
  }

  @Test func `row 36b: root in a user namespace is the user outside of it`() throws {
    let daemon = try DaemonUnderTest().start()
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    let answer = try run(
      nobody + [
        "unshare", "--user", "--map-root-user", "sh", "-c",
        "id -u; echo whoami | socat -t 10 - UNIX-CONNECT:\(daemon.socket)",
      ]
    ).output
    #expect(answer.hasPrefix("0\nOK user:65534 uid=65534 "), "\(answer)")
    #expect(answer.contains("admin=no"))
    #expect(try whoami(daemon, "unshare", "--pid", "--fork", "--mount-proc").hasPrefix("OK user:0 uid=0 "))
  }

  @Test func `row 36b: peers whose users have no ID in the daemon's namespace are refused`() throws {
    let inside = try DaemonUnderTest().start(through: ["unshare", "--user", "--map-root-user"])
    #expect(try whoami(inside, "env").hasPrefix("OK user:0 uid=0 "))
    for user in ["1000", "1001", "65534"] {
      let answer = try refusal(inside, "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups")
      #expect(answer.hasPrefix("ERR denied the client's process or user has no ID"), "\(answer)")
    }
  }

  @Test func `row 36b: a process without a number in the daemon's namespace is refused`() throws {
    let daemon = try DaemonUnderTest()
    try daemon.launch(through: ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    try daemon.waitForLog("Serving on")
    #expect(try daemon.client().rest().isEmpty == false)
    #expect(try refusal(daemon, "env").hasPrefix("ERR denied the client's process or user has no ID"))
  }

  @Test func `row 37: names and paths of a peer are never parsed as its identity`() throws {
    let daemon = try DaemonUnderTest().start(["--log-level=debug"])
    let name = ";uid=0;pid=1;admin=yes\n<0>) R 1 1 (root"
    let folder = daemon.folder.appending(path: name)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
    let program = folder.appending(path: name)
    try FileManager.default.copyItem(atPath: "/usr/bin/perl", toPath: program.path)
    let script = """
      use Socket; use POSIX;
      $0 = ";uid=0;\\n<0>) R 1";
      open my $comm, '>', '/proc/self/comm' or die $!; print {$comm} "x) R 1\\n;uid=0"; close $comm;
      POSIX::setgid(65534); POSIX::setuid(65534);
      socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die $!;
      bind($socket, sockaddr_un($ARGV[1])) or die $!;
      connect($socket, sockaddr_un($ARGV[0])) or die $!;
      syswrite $socket, "whoami\\naccount set mallory\\nget session\\n"; shutdown $socket, 1;
      print while <$socket>;
      """
    let own = folder.appending(path: "x;uid=0;\n").path
    let heard = try run([program.path, "-e", script, daemon.socket, own])
    let lines = heard.output.split(separator: "\n")
    #expect(lines.count == 3, "\(heard)")
    #expect(lines.first?.hasPrefix("OK user:65534 uid=65534 gid=65534 ") == true && lines[0].hasSuffix("admin=no"))
    #expect(lines.dropFirst().first?.hasPrefix("ERR denied ") == true)
    #expect(lines.last?.contains("level=session") == true)
    #expect(!daemon.log.contains("uid=0;") && !daemon.log.contains("R 1"))
  }

  @Test func `row 38: the daemon listens on one path and on nothing else`() throws {
    let daemon = try DaemonUnderTest().start()
    let process = daemon.process.processIdentifier
    let links = try run(["ls", "-l", "/proc/\(process)/fd"]).output
    let sockets = Set(links.matches(of: /socket:\[([0-9]+)\]/).map { String($0.1) })
    var listening: Set<String> = []
    // While other sockets are opened and closed, the kernel may leave out one of the lines.
    for _ in 0..<10 {
      let table = try daemon.kernelFile("net/unix")
      for line in table.split(separator: "\n") {
        // Field 4 has the flags of the socket, here those of a listening one. Field 7 is its inode, and the last field
        // its path.
        let fields = line.split(separator: " ").map(String.init)
        guard fields.count > 6, sockets.contains(fields[6]), fields[3] == "00010000" else { continue }
        listening.insert(fields[fields.count - 1])
      }
    }
    #expect(listening == [daemon.socket])
    for kind in ["tcp", "tcp6", "udp", "udp6", "raw", "packet", "netlink"] {
      let table = (try? daemon.kernelFile("net/\(kind)")) ?? ""
      for socket in sockets { #expect(!table.contains(" \(socket) ") && !table.hasSuffix(" \(socket)\n"), "\(kind)") }
    }
    #expect(sockets.count >= 1)
  }
}
