import Foundation
import TestSupport
import Testing

/// Bad configurations, changes of policy, and storms of signals.
@Suite(.tags(.threads)) struct ConfigurationFaultTests {
  /// Returns a random line that makes a configuration invalid.
  private static func badLine(_ generator: inout SeededGenerator) -> String {
    let settings = [
      ("Limits", "Connections"), ("Limits", "ConnectionsPerUser"), ("Limits", "ReservedConnections"),
      ("Limits", "ItemsPerApp"), ("Limits", "ItemBytesPerApp"), ("Store", "CheckpointSize"), ("Log", "Level"),
      ("Device", "OnMachineChange"), ("Device", "OnHardwareChange"), ("Apps", "Directories"), ("Access", "AdminGroup"),
    ]
    let values = [
      "-1", "+5", "0x10", "1e3", "99999999999999999999", "9223372036854775808", "1.5", "many", "no such thing", "1K1",
      "KK",
      "1T", "\u{201c}5\u{201d}", "５", "relative/path", "yes please", "0 ", "loud noise", "%n%s",
    ]
    if generator.once(in: 6) {
      return generator.one(of: ["nonsense", "[Limits", "]", "x y z", "\u{1b}[2J"])
    }
    let (section, name) = generator.one(of: settings)
    // `AdminGroup=` refuses a name with a space, and no group has any of these names.
    let value = generator.one(of: values)
    return
      "[\(section)]\n\(name)=\(name == "Directories" ? "relative/path" : value == "0 " && name == "AdminGroup" ? "no such" : value)"
  }

  private static func badConfiguration(_ generator: inout SeededGenerator) -> String {
    // The setting before the bad line is valid, and its effect would be visible if the daemon applied it.
    "[Limits]\nItemsPerApp=100\n" + badLine(&generator) + "\n[Log]\nLevel=debug\n"
  }

  @Test func `row 44: none of 200 bad configurations changes anything, and each error names its place`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nItemsPerApp=1\n")
    let client = try daemon.client()
    #expect(try client.ask("item put service=s account=a data=eA==") == ["OK created"])
    var generator = SeededGenerator(44)
    for round in 1...200 {
      let text = Self.badConfiguration(&generator)
      try daemon.configure(text)
      kill(daemon.process.processIdentifier, SIGHUP)
      do {
        try daemon.waitForLog("Configuration refused, the previous one stays in force: ", times: round)
      } catch {
        Issue.record("it was taken: \(text)")
        return
      }
      #expect(try client.ask("item put service=s account=b data=eA==")[0].hasPrefix("ERR limit "))
    }
    #expect(!daemon.log.contains("The configuration was loaded."))
    #expect(!daemon.log.contains("\u{1b}"))
    let told = daemon.log.split(separator: "\n").filter { $0.contains("Configuration refused") }
    #expect(told.count == 200 && told.allSatisfy { $0.contains("identityd.conf:") || $0.contains("AdminGroup=") })
  }

  @Test func `row 45: a bad configuration prevents the start before any file is created`() throws {
    let daemon = try DaemonUnderTest()
    var generator = SeededGenerator(45)
    for _ in 0..<30 {
      let text = Self.badConfiguration(&generator)
      try daemon.configure(text)
      try daemon.launch()
      #expect(daemon.exitStatus() == 78, "\(text)")
    }
    #expect(!FileManager.default.fileExists(atPath: daemon.state.path))
    #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    #expect(daemon.log.split(separator: "\n").count { $0.contains("configuration refused: ") } == 30)
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `row 40c: a peer sees either the old or the new policy, never a mixture`() throws {
    let daemon = try DaemonUnderTest()
    let apps = daemon.folder.appending(path: "apps")
    try FileManager.default.createDirectory(at: apps, withIntermediateDirectories: true)
    let policies = ["a b c", "d e f"].map { "[App]\nUser=daemon\nVendor=\($0.prefix(1)).example\nAccessGroups=\($0)\n" }
    let file = apps.appending(path: "org.example.one.app")
    try Data(policies[0].utf8).write(to: file, options: .atomic)
    let settings = "[Apps]\nDirectories=\(apps.path)\n"
    try daemon.start(configuration: settings)
    // Asks `whoami` every 2 ms and prints each answer on a line.
    let script = """
      use IO::Socket::UNIX; use POSIX;
      POSIX::setgid(1); POSIX::setuid(1); $| = 1;
      my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $ARGV[0]) or die $!;
      $socket->autoflush(1);
      while (print {$socket} "whoami\\n") { my $line = <$socket>; last unless defined $line; print $line; select undef, undef, undef, 0.002 }
      """
    let asking = Process()
    asking.executableURL = URL(filePath: "/usr/bin/perl")
    asking.arguments = ["-e", script, daemon.socket]
    let answers = daemon.folder.appending(path: "answers")
    try Data().write(to: answers)
    asking.standardOutput = try FileHandle(forWritingTo: answers)
    try asking.runUnmasked()
    for round in 1...6 {
      try Data(policies[round % 2].utf8).write(to: file, options: .atomic)
      kill(daemon.process.processIdentifier, SIGHUP)
      let group = round % 2 == 0 ? "groups=a,b,c" : "groups=d,e,f"
      let deadline = Date(timeIntervalSinceNow: patience)
      while try !OtherUser(1, of: daemon).ask("whoami").contains(group) {
        guard Date() < deadline else { throw Failure("\(group) does not come into force: \(daemon.log)") }
        usleep(20_000)
      }
    }
    daemon.end()
    asking.waitUntilExit()
    let lines = try String(contentsOf: answers, encoding: .utf8).split(separator: "\n")
    let seen = Set(lines.map { $0.split(separator: " ").filter { $0.hasPrefix("vendor=") || $0.hasPrefix("groups=") } })
    #expect(seen == [["vendor=a.example", "groups=a,b,c"], ["vendor=d.example", "groups=d,e,f"]], "\(seen)")
  }

  @Test func `row 53: a storm of signals loses no change and does not end the daemon`() throws {
    let daemon = try DaemonUnderTest().start()
    let process = daemon.process.processIdentifier
    let client = try daemon.client()
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("item")[0].hasPrefix("OK "))
    let storm = Process()
    storm.executableURL = URL(filePath: "/usr/bin/perl")
    storm.arguments = [
      "-e", "for (1 .. 2500) { kill $_, $ARGV[0] for qw(HUP PIPE XFSZ USR1 USR2 WINCH URG CHLD) }", "\(process)",
    ]
    try storm.runUnmasked()
    var stored = 0
    repeat {
      #expect(try client.ask("item put service=s account=a\(stored) data=eA==") == ["OK created"])
      stored += 1
    } while storm.isRunning || stored < 50
    #expect(storm.terminationStatus == 0)
    #expect(daemon.process.isRunning && daemon.process.processIdentifier == process)
    for number in 0..<stored { #expect(try subscriber.line()?.contains(" account=a\(number) ") == true) }
    #expect(daemon.end() == 0)
    try daemon.start()
    #expect(try daemon.client().ask("item find service=s").last == "OK \(stored)")
  }
}
