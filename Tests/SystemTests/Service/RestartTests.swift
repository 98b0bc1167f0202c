import Foundation
import TestSupport
import Testing

/// Restarts that no client notices.
extension SystemTests {
  private static let client = checkout.appending(path: "Tests/SystemTests/restart-client.pl")

  /// The number of restarts under a client that sends requests without a pause.
  private static let restarts = Trial.isLong ? 100 : 40

  /// Copies the client into the system and starts it.
  private func startClient(on system: Container) async throws {
    try await system.write(try String(contentsOf: Self.client, encoding: .utf8), to: "/usr/local/bin/restart-client")
    try await system.shell(
      """
      rm -f /run/restart-client.stop /run/restart-client.output
      systemd-run --quiet --unit=restart-client --property=StandardOutput=file:/run/restart-client.output \
        --property=StandardError=file:/run/restart-client.errors perl /usr/local/bin/restart-client
      """)
    try await eventually("the client is connected") {
      try await system.shell("identityctl status | grep -c subscribers=1 || true") == "1"
    }
  }

  /// Stops the client.
  ///
  /// - Returns: the numbers of questions, changes and events that it saw.
  /// - Throws: the client's message, if it saw anything unexpected.
  private func endClient(on system: Container) async throws -> [Int] {
    let text = try await system.shell(
      """
      : >/run/restart-client.stop
      for turn in $(seq 300); do systemctl is-active --quiet restart-client.service || break; sleep 0.1; done
      cat /run/restart-client.errors /run/restart-client.output
      systemctl stop restart-client.service 2>/dev/null || true
      systemctl reset-failed restart-client.service 2>/dev/null || true
      """)
    guard text.hasPrefix("questions ") else { throw Failure("the client saw: \(text)") }
    return text.split(separator: " ").compactMap { Int($0) }
  }

  @Test(arguments: Container.newest)
  func `row 54: a client with constant requests notices none of many restarts`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await startClient(on: system)
    try await system.shell(
      """
      for turn in $(seq \(Self.restarts)); do
        systemctl reset-failed identityd.service
        systemctl restart identityd.service
      done
      """)
    let counts = try await endClient(on: system)
    #expect(counts.count == 3)
    #expect(counts.allSatisfy { $0 > Self.restarts })
  }

  @Test(arguments: Container.oldest)
  func `row 54: a client with constant requests notices no upgrade of the package`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await startClient(on: system)
    for _ in 0..<2 { try await system.shell(Container.install) }
    #expect(try await endClient(on: system).count == 3)
  }

  @Test(arguments: Container.suites)
  func `a kill keeps idle connections with their subscription, partial line and unread output`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    let script = """
      use strict; use warnings; use IO::Socket::UNIX; use Socket qw(SOCK_STREAM);
      $| = 1;
      my ($half, $slow, $told) = map {
        IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => '/run/identityd/identityd.sock') or die "connect: $!";
      } 1 .. 3;
      $_->autoflush(1) for $half, $slow, $told;
      print {$told} "subscribe devices\\n"; print scalar <$told>;
      print {$half} "check 557e5958-d390-"; print {$slow} "get uuid count=10000\\nping\\n";
      # After this pause, the service manager stores the connections.
      select undef, undef, undef, 0.5;
      system "systemctl kill --signal=KILL --kill-who=main identityd.service";
      system "identityctl devices put 557e5958-d390-4cbf-b928-2a2b19a1399a";
      print {$half} "4cbf-b928-2a2b19a1399a\\n"; print scalar <$half>;
      my ($rows, $rest) = (0, '');
      while (my $line = <$slow>) { if ($line =~ /^\\* /) { $rows++ } else { $rest .= $line } last if $rest =~ /OK\\n/ }
      print "$rows rows $rest"; print scalar <$told>;
      """
    try await system.write(script, to: "/usr/local/bin/kill-client")
    let output = try await system.shell(
      "systemd-run --quiet --wait --pipe --collect timeout 60 perl /usr/local/bin/kill-client")
    let lines = output.split(separator: "\n").map(String.init)
    try #require(lines.count == 5, "\(output)")
    #expect(lines[0].hasPrefix("OK "))
    #expect(lines[1] == "OK valid 557e5958-d390-4cbf-b928-2a2b19a1399a")
    #expect(lines[2] == "10000 rows OK 10000")
    #expect(lines[3] == "OK")
    #expect(lines[4].contains(" devices added value=557e5958-d390-4cbf-b928-2a2b19a1399a "))
  }

  @Test(arguments: Container.suites)
  func `a stop closes the connections`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let output = try await system.attempt(
      """
      systemctl stop identityd.socket 2>/dev/null || true
      systemctl start identityd.socket identityd.service
      perl -MIO::Socket::UNIX -e '
        my $socket = IO::Socket::UNIX->new(Peer => "/run/identityd/identityd.sock") or die "connect: $!";
        $socket->autoflush(1); print $socket "ping\\n"; print scalar <$socket>;
        select undef, undef, undef, 0.3;
        system "systemctl stop identityd.service identityd.socket";
        alarm 20; print defined <$socket> ? "more\\n" : "ended\\n"'
      """)
    #expect(output.output == "OK\nended\n", "\(output)")
  }
}
