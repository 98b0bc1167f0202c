import Foundation
import TestSupport
import Testing

// Proofs about unusual peers and machines: passed connections, copies, a store without writes, an ordinary user's daemon.
extension ProofTests {
  @Test func `a connection that is passed on proves its opener, and nothing once the opener has ended`() throws {
    try daemon.start()
    let passed = """
      use IO::Socket::UNIX;
      my $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $!;
      pipe(my $end, my $other);
      if (my $child = fork) {
        # The opener lives until the child has its first answer.
        close $other;
        sysread($end, my $byte, 1);
        exit;
      }
      close $end;
      ($(, $)) = (65534, "65534 65534");
      ($<, $>) = (65534, 65534);
      print $socket "prove vault\\n";
      print scalar <$socket>;
      print $other "x";
      close $other;
      sleep 1;
      print $socket "prove vault\\n";
      print scalar <$socket>;
      """
    let result = try TestSupport.run(["perl", "-e", passed, daemon.socket])
    let lines = result.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    try #require(lines.count == 2 && lines[0].count == 3, "\(result)")
    let facts = try facts(of: lines[0][1])
    #expect(facts["user"] as? Int == 0 && facts["app"] as? String == "user:0")
    #expect(lines[1].starts(with: ["ERR", "denied"]), "\(result)")
  }

  @Test func `a store that cannot be written gives proofs while key and identifiers are there`() throws {
    try daemon.start()
    _ = try proof()
    let keys = try published()
    daemon.end()
    let mount = #"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, daemon.state.path])
    #expect(try daemon.client().statusValue("store") == "read-only")
    #expect(try verify(proof(), keySet()).status == 0 && published() == keys)
    // An app whose identifiers are missing gets none.
    let refused = try identityctl(daemon, "prove", "vault", asUser: 65_534)
    #expect(refused.status == 23, "\(refused)")
    #expect(try daemon.ask("proof rotate").hasPrefix("ERR read-only "))
  }

  @Test func `the daemon of an ordinary user says so in its proofs, whatever it is configured to say`() throws {
    try FileManager.default.setAttributes([.ownerAccountID: 2_001], ofItemAtPath: daemon.folder.path)
    try daemon.start(
      through: ["setpriv", "--reuid=2001", "--regid=2001", "--clear-groups"],
      configuration: "[Proof]\nIssuer=https://id.example.org/%d\nTrustDomain=example.org\n")
    let claims = try part(1, of: proof())
    let device = try daemon.uuid("get device")
    #expect(claims["iss"] as? String == "urn:uuid:\(device):user:2001")
    #expect((claims["sub"] as? String)?.hasPrefix("urn:uuid:") == true)
    #expect((claims["identityd"] as? [String: Any])?["daemon"] as? String == "user")
    let keys = daemon.folder.appending(path: "keys")
    try Data(try identityctl(daemon, "--json", "proof", "keys", asUser: 2_001).output.utf8).write(to: keys)
    let result = try verify(proof(), keys.path)
    #expect(result.status == 0, "\(result)")
  }

  @Test func `proofs of a machine that may be a copy say so, until it has another identifier`() throws {
    try daemon.start()
    #expect(try facts(of: proof())["suspect"] == nil)
    let former = try #require(try facts(of: proof())["device"] as? String)
    #expect(try daemon.ask("fleet twin copy=yes") == "OK")
    #expect(try facts(of: proof())["suspect"] as? String == "cloned")
    daemon.end()
    try daemon.start()
    #expect(try facts(of: proof())["suspect"] as? String == "cloned")
    #expect(try daemon.ask("renew device").hasPrefix("OK "))
    let renewed = try proof()
    #expect(try facts(of: renewed)["suspect"] == nil)
    #expect(try !String(describing: part(1, of: renewed)).contains(former))
  }
}
