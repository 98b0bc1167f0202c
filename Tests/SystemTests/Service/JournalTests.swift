import Testing

/// The real journal, hung or absent: it must delay neither the daemon nor its clients.
extension SystemTests {
  private static let missing = "Entries are missing here"

  /// Causes as many log entries as its operand says, and fails if a request is not answered.
  private static let client = """
    use IO::Socket::UNIX;
    my ($count, $inFlight) = ($ARGV[0], 100);
    my $socket = IO::Socket::UNIX->new(Peer => '/run/identityd/identityd.sock') or die "no connection: $!";
    $SIG{ALRM} = sub { die "no answer\\n" };
    while ($count > 0) {
      my $turn = $count < $inFlight ? $count : $inFlight;
      print $socket "renew device\\n" x $turn; $socket->flush;
      for (1 .. $turn) { alarm 20; my $line = <$socket>; alarm 0; $line =~ /^OK / or die "answered: $line"; }
      $count -= $turn;
    }
    """

  /// Starts the daemon with a watchdog that would notice if the daemon blocked.
  private func watched(_ suite: String) async throws -> (system: Container, daemon: String) {
    let system = try await Container.ready(suite)
    try await system.write(Self.client, to: "/root/renew.pl")
    try await system.write("[Service]\nWatchdogSec=3s", to: "\(Container.dropIns)/watchdog.conf")
    // Lifts the journal's rate limit, so that only the daemon drops entries.
    try await system.write("[Journal]\nRateLimitBurst=0", to: "/run/systemd/journald.conf.d/all.conf")
    try await system.shell(
      "systemctl daemon-reload; systemctl restart systemd-journald.service; systemctl restart identityd.service")
    return (system, try await system.property("MainPID"))
  }

  private func expectUndisturbed(_ system: Container, _ daemon: String) async throws {
    #expect(try await system.property("MainPID") == daemon)
    #expect(try await system.property("NRestarts") == "0")
    #expect(try await system.property("ActiveState") == "active")
  }

  /// Returns the number of renewals in the journal since a time, and the number of entries reported as missing.
  private func logged(_ system: Container, since time: String) async throws -> (told: Int, missing: Int) {
    let entries = try await system.journal(since: time, "_SYSTEMD_UNIT=identityd.service")
    let missing = entries.filter { $0.contains(Self.missing) }
      .compactMap { $0.split(separator: " ").last.flatMap { Int($0.dropLast()) } }
    return (entries.count { $0.hasSuffix("from now on (renewed).") }, missing.reduce(0, +))
  }

  @Test(arguments: Container.newest)
  func `row 46: a journal that hangs delays nobody, and the missing entries are counted later`(
    suite: String
  ) async throws {
    let (system, daemon) = try await watched(suite)
    let before = try await system.now()
    // Longer than the limit of the watchdog.
    let outcome = try await system.attempt(
      """
      journal=$(systemctl show --property=MainPID --value systemd-journald.service)
      kill -STOP $journal
      trap 'kill -CONT $journal' EXIT
      perl /root/renew.pl 12000
      sleep 7
      perl /root/renew.pl 10
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    try await expectUndisturbed(system, daemon)
    try await eventually("the journal has it") { try await logged(system, since: before).missing > 0 }
    let (told, missing) = try await logged(system, since: before)
    #expect(told + missing == 12_010)
    try await system.shell("perl /root/renew.pl 1")
    try await eventually("the log goes on") { try await logged(system, since: before).told == told + 1 }
    try await system.shell("rm /run/systemd/journald.conf.d/all.conf")
  }

  /// Returns a shell script that runs `script` while the journal is stopped and cannot be started.
  private func withoutJournal(_ script: String) -> String {
    let sockets = "systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket"
    return """
      back() {
        systemctl unmask --runtime systemd-journald.service
        systemctl start \(sockets) systemd-journald.service
      }
      trap back EXIT
      systemctl mask --runtime systemd-journald.service
      systemctl stop \(sockets) systemd-journald.service
      \(script)
      """
  }

  @Test(arguments: Container.suites)
  func `row 46: without a journal the daemon goes on, and logs again once there is one`(suite: String) async throws {
    let (system, daemon) = try await watched(suite)
    let before = try await system.now()
    let outcome = try await system.attempt(
      withoutJournal("perl /root/renew.pl 12000; sleep 7; perl /root/renew.pl 10"))
    #expect(outcome.status == 0, "\(outcome.errors)")
    try await expectUndisturbed(system, daemon)
    try await system.shell("perl /root/renew.pl 3")
    try await eventually("what was dropped is said") { try await logged(system, since: before).missing > 0 }
    let after = try await system.now()
    try await system.shell("perl /root/renew.pl 3")
    try await eventually("it is heard") { try await logged(system, since: after).told == 3 }
    try await system.shell("rm /run/systemd/journald.conf.d/all.conf")
  }

  @Test(arguments: Container.oldest)
  func `row 46: without a journal the daemon stops and starts`(suite: String) async throws {
    let (system, _) = try await watched(suite)
    let outcome = try await system.attempt(
      withoutJournal(
        """
        perl /root/renew.pl 2000
        systemctl restart identityd.service
        perl /root/renew.pl 10
        [ "$(systemctl show --property=Result --value identityd.service)" = success ]
        """))
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try await system.property("NRestarts") == "0")
    #expect(try await system.property("ActiveState") == "active")
    try await system.shell("rm /run/systemd/journald.conf.d/all.conf")
  }

  @Test(arguments: Container.newest)
  func `row 46: the daemon stops at once while the journal hangs`(suite: String) async throws {
    let (system, _) = try await watched(suite)
    let outcome = try await system.attempt(
      """
      journal=$(systemctl show --property=MainPID --value systemd-journald.service)
      kill -STOP $journal
      trap 'kill -CONT $journal' EXIT
      perl /root/renew.pl 2000
      daemon=$(systemctl show --property=MainPID --value identityd.service)
      systemctl stop --no-block identityd.socket identityd.service
      for turn in $(seq 100); do
        [ -e /proc/$daemon ] || exit 0
        sleep 0.1
      done
      exit 1
      """)
    #expect(outcome.status == 0, "\(outcome.errors)")
    try await eventually("it is stopped") { try await system.property("ActiveState") == "inactive" }
    #expect(try await system.property("Result") == "success")
    #expect(try await system.property("ExecMainStatus") == "0")
    try await system.shell("rm /run/systemd/journald.conf.d/all.conf")
  }
}
