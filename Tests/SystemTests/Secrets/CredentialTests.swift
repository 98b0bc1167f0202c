import Foundation
import TestSupport
import Testing

/// Secrets that systemd fetches from the socket for a service: `LoadCredential=NAME:/run/identityd/identityd.sock`.
extension SystemTests {
  /// Connects from a socket with an abstract name, sends nothing, and prints the length and the beginning of the answer.
  private static let impostor = """
    use Socket;
    my ($name, $path) = @ARGV;
    socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die $!;
    bind($socket, pack("S", AF_UNIX) . "\\0" . $name) or die $!;
    connect($socket, pack_sockaddr_un($path)) or die $!;
    shutdown($socket, 1);
    my $all = "";
    while (sysread($socket, my $part, 65536)) { $all .= $part }
    print length($all), " ", substr($all, 0, 10) =~ tr/\\0/0/r, "\\n";
    """
  private static let socket = "/run/identityd/identityd.sock"

  /// Makes a service that writes its credential `secret` to `/run/out/NAME`.
  private func prepare(
    _ system: Container, _ unit: String, _ settings: String, in folder: String = "/run/systemd/system"
  )
    async throws
  {
    try await system.shell("mkdir -p /run/out \(folder); rm -f '/run/out/\(unit)'")
    try await system.write(
      """
      [Service]
      Type=oneshot
      LoadCredential=secret:\(Self.socket)
      \(settings)
      StandardOutput=truncate:/run/out/%n
      ExecStart=/bin/sh -c 'id --user --name; cat "$CREDENTIALS_DIRECTORY/secret"'

      """, to: "/run/out/unit")
    try await system.shell("mv /run/out/unit '\(folder)/\(unit)'")
  }

  @Test(arguments: Container.suites)
  func `each kind of service gets the secret that is stored for it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let kinds = [
      "plain.service": "", "of-user.service": "User=daemon", "dynamic.service": "DynamicUser=yes",
      "private.service": "PrivateMounts=yes\nPrivateTmp=yes\nProtectSystem=strict", "below.service": "Delegate=yes",
      "odd\\x2dname.service": "", "several@.service": "",
    ]
    for (unit, settings) in kinds { try await prepare(system, unit, settings) }
    try await system.shell("systemctl daemon-reload")
    for unit in kinds.keys.map({ $0.replacing("@.", with: "@one.") }) {
      let setting = try await system.shell(
        "printf 'secret of \(unit.replacing("\\", with: "\\\\"))' | identityctl credential put '\(unit)' secret --data-file=- 2>&1"
      )
      #expect(setting == "LoadCredential=secret:\(Self.socket)")
      let text = try await system.shell("systemctl start '\(unit)'; cat '/run/out/\(unit)'")
      #expect(text.hasSuffix("\nsecret of \(unit)"), "\(unit): \(text)")
    }
    #expect(try await system.shell("head --lines=1 /run/out/of-user.service") == "daemon")
    // A unit has no secret of another one, and a template none of its instances.
    let refused = try await system.attempt("systemctl start several@two.service")
    #expect(refused.status != 0)
    // The bytes are unchanged, whichever they are.
    let same = try await system.shell(
      """
      head --bytes=32768 /dev/urandom >/run/out/bytes
      identityctl credential put bytes secret --data-file=/run/out/bytes >/dev/null
      systemctl daemon-reload
      systemd-run --quiet --wait --unit=bytes --property=LoadCredential=secret:\(Self.socket) \
        cmp /run/out/bytes /run/credentials/bytes.service/secret && echo same
      """)
    #expect(same == "same")
    // The list names them all, and a deleted one is gone.
    let list = try await system.shell("identityctl credential list; identityctl credential list plain")
    #expect(list.contains("of-user.service secret") && list.hasSuffix("plain.service secret"), "\(list)")
    try await system.shell("identityctl credential delete plain.service secret")
    #expect(try await system.attempt("systemctl start plain.service").status != 0)
    try await system.shell("systemctl reset-failed; rm /run/systemd/system/*.service; systemctl daemon-reload")
  }

  @Test(arguments: Container.suites)
  func `a service of a user gets the secret that is stored for it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      id --user owner >/dev/null 2>&1 || useradd --create-home owner
      loginctl enable-linger owner
      systemctl start "user@$(id --user owner).service"
      """)
    let folder = "/home/owner/.config/systemd/user"
    try await prepare(system, "mine.service", "", in: folder)
    func start() async throws -> Outcome {
      try await system.attempt(
        """
        chown -R owner: /home/owner/.config /run/out
        setpriv --reuid=owner --regid=owner --init-groups env XDG_RUNTIME_DIR=/run/user/$(id --user owner) \
          sh -euc 'systemctl --user daemon-reload; systemctl --user start mine.service'
        """)
    }
    let since = try await system.now()
    #expect(try await start().status != 0)
    // The journal has the command, which makes the next start succeed.
    let advice = try #require(
      try await system.journal(since: since).compactMap { line in
        line.split(separator: "again: ").last { $0.hasPrefix("identityctl credential put mine.service secret owner=") }
      }.first)
    // A secret for the system's service of the same name is not the user's.
    try await system.shell("echo other | identityctl credential put mine secret --data-file=- 2>/dev/null")
    #expect(try await start().status != 0)
    try await system.shell("printf %s word | \(advice)")
    let text = try await start().status == 0 ? try await system.shell("cat /run/out/mine.service") : "failed"
    #expect(text == "owner\nword")
    try await system.shell(
      "identityctl credential delete mine secret; identityctl credential delete mine.service secret owner=owner")
  }

  @Test(arguments: Container.suites)
  func `a service does not start with an empty secret, and the journal tells how to store it`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    try await prepare(system, "lacking.service", "")
    try await system.shell("systemctl daemon-reload")
    let since = try await system.now()
    #expect(try await system.attempt("systemctl start lacking.service").status != 0)
    #expect(try await system.property("ExecMainStatus", of: "lacking.service") == "243")
    let lines = try await system.journal(since: since, "IDENTITYD_UNIT=lacking.service")
    let advice = try #require(
      lines.first?.split(separator: "again: ").last { $0.hasPrefix("identityctl credential put") }, "\(lines)")
    try await system.shell("printf %s stored | \(advice); systemctl start lacking.service")
    #expect(try await system.shell("cat /run/out/lacking.service") == "root\nstored")
    // A replacement tells which unit has the former secret. A oneshot service that has ended has none.
    let note = try await system.shell(
      """
      systemd-run --quiet --unit=running --property=LoadCredential=secret:\(Self.socket) sleep infinity || true
      printf first | identityctl credential put running secret --data-file=- 2>&1
      systemctl reset-failed; systemd-run --quiet --unit=running --property=LoadCredential=secret:\(Self.socket) sleep infinity
      printf second | identityctl credential put running secret --data-file=- 2>&1
      systemctl stop running.service
      """)
    #expect(note.contains("'systemctl restart running.service' gives it the new one"), "\(note)")
    // Items that cannot be opened are no reason to start with an empty secret either.
    try await system.shell(
      """
      systemctl stop identityd.service; mv /var/lib/identityd/master.key /var/lib/identityd/away
      systemctl start identityd.service
      """)
    #expect(try await system.attempt("systemctl start lacking.service").status != 0)
    #expect(try await system.journal(since: since).contains { $0.contains("cannot be given") && $0.contains("key") })
    try await system.shell(
      """
      systemctl stop identityd.service; mv /var/lib/identityd/away /var/lib/identityd/master.key
      systemctl start identityd.service lacking.service
      """)
    // An admin can have it otherwise, for credentials that are missing alone.
    let outcome = try await system.shell(
      """
      identityctl credential delete lacking secret >/dev/null
      mkdir -p /etc/identityd/identityd.conf.d
      printf '[Credentials]\\nMissing=empty\\n' >/etc/identityd/identityd.conf.d/missing.conf
      systemctl reload identityd.service
      systemctl start lacking.service
      rm /etc/identityd/identityd.conf.d/missing.conf; systemctl reload identityd.service
      cat /run/out/lacking.service
      """)
    #expect(outcome == "root")
    try await system.shell("rm /run/systemd/system/lacking.service; systemctl daemon-reload; systemctl reset-failed")
  }

  @Test(arguments: Container.suites)
  func `only the service manager gets the secret of a service`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      id --user guest >/dev/null 2>&1 || useradd --create-home guest
      printf 'the secret' | identityctl credential put guarded secret --data-file=- 2>/dev/null
      """)
    try await system.write(Self.impostor, to: "/usr/local/bin/impostor")
    let call = "perl /usr/local/bin/impostor 0123/unit/guarded.service/secret \(Self.socket)"
    let service = "systemd-run --quiet --wait --pipe --collect"
    // Root gets the answer that makes a start fail. Others are refused.
    let failing = "1048576 0000000000"
    let cases = [
      ("root, outside of a service", call, failing),
      ("root, in another service", "\(service) --unit=other \(call)", failing),
      ("a user", "setpriv --reuid=guest --regid=guest --clear-groups \(call)", "ERR denied"),
      ("another user in the service", "\(service) --unit=guarded --uid=guest \(call)", "ERR denied"),
      ("root in a container", "\(service) --unit=guarded unshare --pid --fork \(call)", failing),
      ("root in a user namespace", "\(service) --unit=guarded unshare --user --map-root-user \(call)", failing),
      // The unit itself is the owner of its secret.
      ("root in the service", "\(service) --unit=guarded \(call)", "10 the secret"),
      ("a unit of identityd", "\(service) --unit=guarded \(call.replacing("guarded", with: "identityd"))", failing),
    ]
    for (peer, script, expected) in cases {
      let answer = try await system.shell(script)
      #expect(
        answer.contains(expected) && (expected.contains("secret") || !answer.contains("the se")), "\(peer): \(answer)")
    }
    try await system.shell("identityctl credential delete guarded secret")
  }

  @Test(arguments: Container.suites)
  func `two hundred services get their secrets at the same time, over restarts of the daemon`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    try await prepare(system, "many@.service", "")
    let outcome = try await system.shell(
      """
      for number in $(seq 200); do
        printf "secret $number" | identityctl --quiet credential put "many@$number" secret --data-file=-
      done
      systemctl daemon-reload
      systemctl start $(seq --format='many@%g.service' 200) &
      start=$!
      # Fewer than the start limit of the unit.
      for restart in 1 2 3; do sleep 0.3; systemctl restart identityd.service; done
      wait $start
      for number in $(seq 200); do
        [ "$(tail --lines=1 /run/out/many@$number.service)" = "secret $number" ] || echo "$number has another secret"
      done
      # Half of them lack their secret now, and fail. The others start.
      for number in $(seq 1 2 200); do identityctl --quiet credential delete "many@$number" secret; done
      systemctl start $(seq --format='many@%g.service' 200) 2>/dev/null || true
      systemctl list-units --failed --plain --no-legend 'many@*' | wc --lines
      systemctl reset-failed 'many@*'; rm /run/systemd/system/many@.service; systemctl daemon-reload
      """)
    #expect(outcome == "100", "\(outcome)")
  }

  /// A service that compares each identifier among its credentials with the answer that it gets itself. The file has no
  /// line feed.
  private static let comparison = """
    [Service]
    Type=oneshot
    \(identifiers.map { "LoadCredential=identityd.\($0):\(socket)" }.joined(separator: "\n"))
    StandardOutput=truncate:/run/out/%n
    ExecStart=/bin/sh -euc 'for name in \(identifiers.joined(separator: " ")); do \
      printf "%%s\\n" "$(identityctl get $name)" | cmp - "$CREDENTIALS_DIRECTORY/identityd.$name" 2>&1 || true; done; \
      identityctl --json whoami'
    """
  private static let identifiers = ["device", "installation", "vendor", "boot", "session"]

  @Test(arguments: Container.suites)
  func `a service gets the identifiers of the app that it is`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      id --user guest >/dev/null 2>&1 || useradd --create-home guest
      mkdir -p /run/out
      """)
    let guest = try await system.shell("id --user guest")
    try await system.write(
      "[App]\nUnit=claimed.service\nVendor=org.example\nDeviceIdentifier=app",
      to: "\(Container.manifests)/org.example.claimed.app")
    try await system.write(
      "[App]\nUnit=shared.service\nUser=guest", to: "\(Container.manifests)/org.example.shared.app")
    // The last one is the app of the manifest only as the user that it names.
    let kinds = [
      ("root.service", "", "unit:root.service"), ("dynamic.service", "DynamicUser=yes", "unit:dynamic.service"),
      ("named.service", "DynamicUser=yes\nUser=some-name", "unit:named.service"),
      ("system.service", "User=daemon", "unit:system.service:1"),
      ("regular.service", "User=guest", "unit:regular.service:\(guest)"),
      ("number.service", "User=\(guest)", "unit:number.service:\(guest)"),
      ("below.service", "User=guest\nDelegate=yes", "unit:below.service:\(guest)"),
      ("claimed.service", "User=daemon", "org.example.claimed"), ("shared.service", "User=guest", "org.example.shared"),
    ]
    for (unit, settings, _) in kinds {
      try await system.write("\(Self.comparison)\n\(settings)", to: "/run/systemd/system/\(unit)")
    }
    try await system.shell("systemctl daemon-reload")
    try await eventually("the manifests are read") {
      try await system.shell("identityctl app list").contains("org.example.shared")
    }
    for (unit, _, app) in kinds {
      let lines = try await system.shell("systemctl start \(unit); cat /run/out/\(unit)").split(separator: "\n")
      // Only the line feed is missing, five times.
      #expect(lines.count == 6 && lines.dropLast().allSatisfy { $0.contains("EOF on") }, "\(unit): \(lines)")
      #expect(lines.last?.contains("\"app\":\"\(app)\"") == true, "\(unit): \(lines)")
    }
    // Another user after a change of the unit is another app.
    try await system.write("\(Self.comparison)\nUser=guest", to: "/run/systemd/system/root.service")
    let changed = try await system.shell(
      "systemctl daemon-reload; systemctl start root.service; cat /run/out/root.service")
    #expect(changed.contains("unit:root.service:\(guest)") && changed.split(separator: "\n").count == 6, "\(changed)")
    // A service of a user's manager.
    try await system.shell(
      "mkdir -p /home/guest/.config/systemd/user; loginctl enable-linger guest; systemctl start user@\(guest).service")
    try await system.write(
      Self.comparison.replacing("/run/out/%n", with: "/home/guest/out"),
      to: "/home/guest/.config/systemd/user/own.service")
    let own = try await system.shell(
      """
      chown --recursive guest /home/guest/.config
      setpriv --reuid=guest --regid=guest --init-groups env XDG_RUNTIME_DIR=/run/user/\(guest) \
        sh -euc 'systemctl --user daemon-reload; systemctl --user start own.service'
      cat /home/guest/out; loginctl disable-linger guest
      """)
    #expect(own.contains("unit:own.service@\(guest)") && own.split(separator: "\n").count == 6, "\(own)")
    try await system.shell(
      "rm /run/systemd/system/*.service \(Container.manifests)/org.example.*.app; systemctl daemon-reload")
  }

  @Test(arguments: Container.suites)
  func `a service starts with no other identifier than its own`(suite: String) async throws {
    let system = try await Container.ready(suite)
    func start(_ name: String, _ unit: String) async throws -> (status: Int32, log: String) {
      let now = try await system.now()
      let outcome = try await system.attempt(
        "systemd-run --quiet --wait --collect --unit=\(unit) --property=LoadCredential=\(name):\(Self.socket) true")
      return (outcome.status, try await system.journal(since: now).joined(separator: "\n"))
    }
    #expect(try await start("identityd.device", "usual").status == 0)
    let reserved = try await start("identityd.key", "reserved")
    #expect(reserved.status != 0 && reserved.log.contains("this version knows identityd.device, "), "\(reserved)")
    // Without the bus, the app is not known.
    try await system.write("[Service]\nInaccessiblePaths=-/run/dbus", to: "\(Container.dropIns)/test.conf")
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service")
    let unknown = try await start("identityd.installation", "unknown")
    #expect(unknown.status != 0 && unknown.log.contains("the user of the unit is not known"), "\(unknown)")
    try await system.shell("rm -r \(Container.dropIns); systemctl daemon-reload; systemctl restart identityd.service")
    // A bus that does not answer delays nobody else.
    try await system.write(
      "\(Self.comparison)\nUser=daemon", to: "/run/systemd/system/late.service")
    let now = try await system.now()
    let result = try await system.shell(
      """
      mkdir -p /run/out
      systemctl daemon-reload
      # Also if the rest fails: systemd-run, which runs this script, needs the bus.
      trap 'systemctl kill --signal=CONT dbus.service' EXIT
      systemctl kill --signal=STOP dbus.service
      systemctl start --no-block late.service
      for try in $(seq 20); do timeout 2 identityctl get device >/dev/null; done
      tries=0
      until [ "$(systemctl show --property=Result --value late.service)" != success ]; do
        tries=$((tries + 1)); [ $tries -lt 600 ]; sleep 0.1
      done
      """)
    #expect(result == "")
    try await eventually("the journal has the reason") {
      try await system.journal(since: now).contains { $0.contains("the user of the unit is not known") }
    }
    #expect(try await system.attempt("systemctl start late.service").status == 0)
    // Many at once, over a restart of the daemon.
    try await system.write(
      "\(Self.comparison)\nUser=daemon", to: "/run/systemd/system/many@.service")
    let count = try await system.shell(
      """
      mkdir -p /run/out
      systemctl daemon-reload
      for round in 1 2 3 4 5; do
        systemctl start $(seq --format="many@$round-%g.service" 60) &
        start=$!
        sleep 0.$round; systemctl restart identityd.service
        wait $start
      done
      cat /run/out/many@*.service | grep --count 'EOF on'
      rm /run/systemd/system/many@.service /run/systemd/system/late.service; systemctl daemon-reload
      """)
    #expect(count == "1500")
  }
}
