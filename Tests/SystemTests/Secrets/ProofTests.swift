import Foundation
import TestSupport
import Testing

// Proofs of the packaged daemon, in the sandbox of its unit.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `a proof names unit, user and kind of service, and its key outlives a restart`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write("[App]\nUnit=proof.service", to: "\(Container.manifests)/org.example.proof.app")
    try await system.shell("systemctl reload identityd.service && useradd --create-home prover")
    try await system.shell("loginctl enable-linger prover && identityctl prove vault >/run/first")
    func claims(_ run: String) async throws -> String {
      try await system.shell(
        """
        identityctl proof keys >/run/keys
        \(run) identityctl prove vault >/run/proof
        identityctl proof verify /run/proof --keys=/run/keys --audience=vault
        """)
    }
    let user = try await system.shell("id --user prover")
    for (run, facts, absent) in [
      ("", ["user=0"], ["user_unit", "contained"]),
      (
        "systemd-run --quiet --wait --pipe --unit=proof -p DynamicUser=yes",
        ["app=org.example.proof", "unit=proof.service"], ["user_unit", "contained"]
      ),
      (
        "systemd-run --user --machine=prover@ --quiet --wait --pipe --unit=proof",
        ["app=unit:proof.service@\(user)", "user_unit=proof.service", "user=\(user)"], ["unit", "contained"]
      ),
      ("setpriv --reuid=prover --regid=prover --clear-groups", ["user=\(user)"], ["user_unit", "contained"]),
      (
        "systemd-run --quiet --wait --pipe --unit=proof -p PrivateUsers=yes",
        ["unit=proof.service", "contained=true"], ["user_unit"]
      ),
    ] {
      let lines = try await claims(run).split(separator: "\n").map(String.init)
      for fact in facts { #expect(lines.contains("identityd.\(fact)"), "\(run): \(lines)") }
      for name in absent { #expect(!lines.contains { $0.hasPrefix("identityd.\(name)=") }, "\(run): \(lines)") }
    }
    try await system.shell(
      """
      systemctl restart identityd.service
      identityctl proof verify /run/first --keys=/run/keys --audience=vault --quiet
      identityctl prove vault | identityctl proof verify --keys=/run/keys --audience=vault --quiet
      """)
  }

  /// Returns the facts in a proof for the audience `vault`, by name.
  func facts(ofProof proof: String, _ system: Container) async throws -> [String: String] {
    let lines = try await system.shell(
      """
      identityctl proof keys >/run/keys
      echo '\(proof)' | identityctl proof verify --keys=/run/keys --audience=vault
      """
    ).split(separator: "\n")
    let facts = lines.compactMap { line -> (String, String)? in
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2, parts[0].hasPrefix("identityd.") else { return nil }
      return (String(parts[0].dropFirst("identityd.".count)), parts[1])
    }
    return Dictionary(facts) { $1 }
  }

  /// Checks what a proof says about its peer: each of these facts, and no other one about unit and container.
  func expect(_ expected: [String: String], inProof proof: String, of peer: String, _ system: Container) async throws {
    let facts = try await facts(ofProof: proof, system)
    let names = ["app", "user", "unit", "user_unit", "container", "contained"]
    #expect(facts.filter { names.contains($0.key) } == expected, "\(peer)")
  }

  private static let proofCredential = "LoadCredential=identityd.proof.vault:/run/identityd/identityd.sock"

  @Test(arguments: Container.suites)
  func `a service gets a proof of the app that it is as a credential`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      id --user prover >/dev/null 2>&1 || useradd --create-home prover
      loginctl enable-linger prover; mkdir -p /run/out
      """)
    let user = try await system.shell("id --user prover")
    try await system.write("[App]\nUnit=named.service", to: "\(Container.manifests)/org.example.named.app")
    try await system.write(
      "[Proof]\nAudience=store https://store.example.org 600\n", to: "\(Container.configurations)/proof.conf")
    try await system.shell("systemctl reload identityd.service")
    // Its own facts and those of the credential, apart from times and number.
    let compare = """
      folder=$(mktemp --directory)
      identityctl proof keys >"$folder/keys"
      identityctl prove vault >"$folder/own"
      for file in "$folder/own" "$CREDENTIALS_DIRECTORY/identityd.proof.vault"; do
        identityctl proof verify "$file" --keys="$folder/keys" --audience=vault | grep -vE "^(iat|nbf|exp|jti)="
        echo --
      done
      rm -r "$folder"
      """
    try await system.write(compare, to: "/usr/local/bin/compare-proofs")
    for (options, facts) in [
      ("", ["app=unit:plain.service", "user=0", "unit=plain.service"]),
      ("--property=User=daemon", ["app=unit:plain.service:1", "user=1", "unit=plain.service"]),
      ("--unit=named --property=DynamicUser=yes", ["app=org.example.named", "unit=named.service"]),
      ("--user --machine=prover@", ["app=unit:plain.service@\(user)", "user=\(user)", "user_unit=plain.service"]),
    ] {
      let text = try await system.shell(
        """
        systemd-run --quiet --wait --pipe --collect --unit=plain \(options) \
          --property=\(Self.proofCredential) sh /usr/local/bin/compare-proofs
        """)
      let parts = text.components(separatedBy: "--\n").map { $0.split(separator: "\n").map(String.init) }
      try #require(parts.count >= 2, "\(options): \(text)")
      #expect(parts[0] == parts[1].filter { $0 != "--" } && !parts[0].isEmpty, "\(options): \(text)")
      for fact in facts { #expect(parts[0].contains("identityd.\(fact)"), "\(options): \(text)") }
    }
    // The audience that the configuration gives the name, and its lifetime.
    let claims = try await system.shell(
      """
      identityctl proof keys >/run/keys
      systemd-run --quiet --wait --pipe --collect --unit=plain \
        --property=LoadCredential=identityd.proof.store:/run/identityd/identityd.sock \
        cat /run/credentials/plain.service/identityd.proof.store >/run/proof
      identityctl proof verify /run/proof --keys=/run/keys --audience=https://store.example.org >/run/claims
      echo $(($(sed -n 's/^exp=//p' /run/claims) - $(sed -n 's/^iat=//p' /run/claims)))
      """)
    #expect(claims == "600")
    try await system.shell("rm \(Container.configurations)/proof.conf /usr/local/bin/compare-proofs")
  }

  @Test(arguments: Container.suites)
  func `no service starts without its proof, and many get theirs at once`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let start = "systemd-run --quiet --wait --collect --property=\(Self.proofCredential)"
    // An app with a device identifier of its own.
    try await system.write(
      "[App]\nUnit=private.service\nDeviceIdentifier=app", to: "\(Container.manifests)/org.example.private.app")
    try await system.shell("systemctl reload identityd.service; mkdir -p /run/out")
    #expect(try await system.attempt("\(start) --unit=private true").status != 0)
    #expect(try await system.attempt("\(start) --unit=public true").status == 0)
    // Many at once, over restarts of the daemon.
    try await system.write(
      """
      [Service]
      Type=oneshot
      \(Self.proofCredential)
      ExecStart=cp %d/identityd.proof.vault /run/out/%i.proof
      """, to: "/run/systemd/system/proofs@.service")
    let count = try await system.shell(
      """
      systemctl daemon-reload
      # All of them wait for the daemon, which then asks for all of their users at once.
      systemctl kill --signal=STOP identityd.service
      systemctl start $(seq --format='proofs@%g.service' 200) &
      start=$!
      for try in $(seq 300); do
        [ "$(grep --count --fixed-strings /unit/proofs@ /proc/net/unix)" -lt 200 ] || break
        sleep 0.1
      done
      systemctl kill --signal=CONT identityd.service
      for restart in 1 2; do sleep 0.5; systemctl restart identityd.service; done
      wait $start || { journalctl --sync; journalctl --quiet --unit=identityd --output=cat --grep='^The start of'; exit 1; }
      identityctl proof keys >/run/keys
      for file in /run/out/*.proof; do
        identityctl --quiet proof verify "$file" --keys=/run/keys --audience=vault && cat "$file" && echo
      done | sort --unique | wc --lines
      rm /run/systemd/system/proofs@.service /run/out/*.proof; systemctl daemon-reload
      """)
    #expect(count == "200")
    // A user who has spent the rate: a request waits for its turn.
    let spend = """
      use IO::Socket::UNIX;
      my $socket = IO::Socket::UNIX->new(Peer => "/run/identityd/identityd.sock") or die $!;
      my $refused = 0;
      for (1 .. 400) { print $socket "prove vault\n"; $refused += (<$socket> =~ /^ERR unavailable/) }
      print "$refused\n";
      """
    try await system.write(spend, to: "/run/spend.pl")
    let outcome = try await system.shell(
      """
      id --user prover >/dev/null 2>&1 || useradd --create-home prover
      loginctl enable-linger prover; systemctl start user@$(id --user prover).service
      setpriv --reuid=prover --regid=prover --clear-groups perl /run/spend.pl >/run/refused
      all=
      for number in $(seq 20); do
        systemd-run --user --machine=prover@ --quiet --wait --collect --property=\(Self.proofCredential) \
          sh -c 'test -s "$CREDENTIALS_DIRECTORY/identityd.proof.vault"' &
        all="$all $!"
      done
      for one in $all; do wait $one || echo failed; done
      test "$(cat /run/refused)" -gt 0 && echo spent
      """)
    #expect(outcome == "spent")
    // Without libcrypto there are no proofs.
    let libraries = ["x86_64", "aarch64"].map { "-/usr/lib/\($0)-linux-gnu/libcrypto.so.3" }.joined(separator: " ")
    try await system.write("[Service]\nInaccessiblePaths=\(libraries)", to: "\(Container.dropIns)/test.conf")
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service")
    let now = try await system.now()
    #expect(try await system.attempt("\(start) --unit=without true").status != 0)
    let log = try await system.journal(since: now)
    let reason = "The start of without.service fails"
    #expect(log.contains { $0.contains(reason) && $0.contains("libcrypto.so.3") }, "\(log)")
    try await system.shell("rm -r \(Container.dropIns); systemctl daemon-reload; systemctl restart identityd.service")
  }

  @Test(arguments: Container.suites)
  func `the timer writes the files for relying parties, and a web server may read them`(suite: String) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.attempt("systemctl is-enabled identityd-discovery.timer").output == "disabled\n")
    let verified = try await system.attempt(
      "systemd-analyze verify --man=no identityd-discovery.service identityd-discovery.timer")
    #expect(verified.status == 0, "\(verified.errors)")
    let folder = "/var/lib/identityd-discovery"
    try await system.write("[Proof]\nIssuer=https://id.example.org/%d\n", to: "\(Container.configurations)/proof.conf")
    try await system.shell(
      """
      systemctl reload identityd.service
      identityctl prove vault >/run/proof
      systemctl enable --now identityd-discovery.timer
      """)
    let configuration = "\(folder)/.well-known/openid-configuration"
    try await eventually("the files are there") { try await system.attempt("test -s \(configuration)").status == 0 }
    let device = try await system.shell("identityctl get device")
    let shown = try await system.shell("setpriv --reuid=daemon --regid=daemon --clear-groups cat \(configuration)")
    #expect(shown.contains("\"jwks_uri\":\"https://id.example.org/\(device)/keys\""), "\(shown)")
    try await system.shell(
      """
      setpriv --reuid=daemon --regid=daemon --clear-groups identityctl proof verify /run/proof --keys=\(folder)/keys \
        --audience=vault --quiet
      """)
    #expect(try await system.property("Result", of: "identityd-discovery.service") == "success")
    try await system.shell(
      """
      systemctl disable --now identityd-discovery.timer
      rm -r \(folder) \(Container.configurations)/proof.conf; systemctl reload identityd.service
      """)
  }
}
