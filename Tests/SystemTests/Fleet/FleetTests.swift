import Testing

/// The package of the fleet's service: its unit, its sandbox and its right at identityd, with a broker in the system.
extension SystemTests {
  private static let fleet = "identity-fleet.service"
  private static let password = "wrong-horse"
  /// The highest exposure that `systemd-analyze security` may find, in tenths: the service uses the network, and netlink
  /// to notice a network that appears, and sees the processes of others, to tell containers apart.
  private static let exposureOfFleet = 15

  @Test(arguments: Container.newest)
  func `the service of the fleet runs from its package, and a code lets another machine in`(suite: String) async throws
  {
    let system = try await Container.ready(suite)
    try await startBroker(on: system)
    try await system.shell("dpkg --install \(Container.others)/identity-fleet_*.deb")
    #expect(try await system.property("UnitFileState", of: Self.fleet) == "disabled")
    #expect(try await system.property("ActiveState", of: Self.fleet) == "inactive")
    do {
      try await liveInFleet(on: system)
    } catch {
      try await endFleet(on: system)
      throw error
    }
    try await endFleet(on: system)
    #expect(try await system.shell("getent passwd identity-fleet || getent group identity-fleet || true") == "")
    #expect(
      try await system.shell("find /etc /run /usr /var/lib -xdev -name 'identity-fleet*' 2>/dev/null; true") == "")
    #expect(try await system.attempt("identityctl app list | grep --quiet identity-fleet").status != 0)
  }

  /// Starts a broker that wants a password, and writes the configuration of the service.
  func startBroker(on system: Container) async throws {
    try await system.write(
      """
      listener 1883 127.0.0.1
      allow_anonymous false
      password_file /run/broker/passwords
      """, to: "/run/broker/mosquitto.conf")
    try await system.write(
      "[Fleet]\nBroker=mqtt://127.0.0.1:1883\nUsername=site\nSpread=0", to: "/run/broker/identity-fleet.conf")
    try await system.shell(
      """
      mosquitto_passwd -b -c /run/broker/passwords site \(Self.password)
      chown -R mosquitto: /run/broker
      systemd-run --quiet --unit=broker mosquitto -c /run/broker/mosquitto.conf
      mkdir --parents /etc/identityd/identity-fleet.conf.d /etc/credstore
      cp /run/broker/identity-fleet.conf /etc/identityd/identity-fleet.conf.d/test.conf
      printf %s \(Self.password) >/etc/credstore/fleet.password
      chmod 600 /etc/credstore/fleet.password
      """)
  }

  /// Removes the package with all that it left, the broker, and the other machine.
  func endFleet(on system: Container) async throws {
    try await system.shell(
      """
      identityctl account leave --yes || true
      # The service tells the others first.
      for try in $(seq 900); do [ "$(identityctl account)" ] || break; sleep 0.1; done
      systemctl stop broker.service second-fleet.service second-daemon.service || true
      rm -rf /etc/identityd/identity-fleet.conf.d/test.conf /etc/credstore/fleet.password /run/broker /run/second
      dpkg --purge identity-fleet
      """)
  }

  /// A command of the other machine.
  func second(_ words: String) -> String {
    "IDENTITYD_SOCKET=/run/second/daemon IDENTITY_FLEET_SOCKET=/run/second/fleet identityctl \(words)"
  }

  func eventuallyLive(_ system: Container) async throws {
    try await eventually("the service is live") {
      try await system.attempt("identityctl fleet status").output.contains("state=live")
    }
  }

  /// Returns the names of the listed devices.
  func devices(_ command: String, on system: Container) async throws -> Set<String> {
    Set(try await system.shell("\(command) --json").matches(of: /"name":"([^"]*)"/).map { String($0.1) })
  }

  private func liveInFleet(on system: Container) async throws {
    let start = try await system.now()
    // As if the service started before identityd has found its user, and with it the app of the manifest.
    let other = "\(Container.manifests)/identity-fleet.app"
    try await system.write("[App]\nUnit=another.service", to: other)
    try await system.shell("systemctl restart identityd.service; systemctl enable --now \(Self.fleet)")
    try await eventually("the service tells that it lacks the right") {
      try await system.attempt("identityctl fleet status").output.contains("lacks admin rights or Rights=fleet")
    }
    try await system.shell("rm \(other)")
    try await eventually("the service has the right") {
      try await !system.attempt("identityctl fleet status").output.contains("reason=")
    }
    try await examineSandbox(of: system)
    try await system.shell("identityctl devices name first; identityctl account create alice")
    try await eventuallyLive(system)
    // Root in a container without a user namespace.
    let contained = "unshare --pid --fork setpriv --bounding-set=-all identityctl"
    for words in ["fleet credentials", "account invite --file=/run/stolen --no-passphrase"] {
      let outcome = try await system.attempt("\(contained) \(words)")
      #expect(outcome.status != 0 && outcome.errors.contains("lacks admin rights"), "\(outcome)")
    }

    try await joinSecond(on: system)
    #expect(try await system.journal(since: start, "--unit=\(Self.fleet)").contains { $0.contains("second (") })

    try await reloadAndRestart(system)
    #expect(try await devices(second("devices"), on: system) == ["first", "second"])
    let warnings = try await system.journal(
      since: start, "--unit=\(Self.fleet) --identifier=identity-fleet --priority=warning")
    #expect(warnings.filter { !$0.contains("configuration refused") && !$0.contains("lacks admin rights") } == [])
  }

  /// Starts the other machine, a daemon and a service of root with a state of their own, and lets it into the account.
  func joinSecond(on system: Container) async throws {
    try await system.shell(
      """
      mkdir --parents /run/second
      systemd-run --quiet --unit=second-daemon identityd --state-directory /run/second/state --socket /run/second/daemon
      systemd-run --quiet --unit=second-fleet --property=LoadCredential=fleet.password \\
        identity-fleet --daemon /run/second/daemon --socket /run/second/fleet --config /run/broker/identity-fleet.conf
      """)
    try await eventually("the other service answers") {
      try await system.attempt(second("fleet status")).status == 0
    }
    try await system.shell("\(second("renew device --yes")); \(second("devices name second"))")
    try await system.shell("identityctl account invite | \(second("account join -"))")
    for command in ["identityctl devices", second("devices")] {
      try await eventually("both machines are listed") {
        try await devices(command, on: system) == ["first", "second"]
      }
    }
  }

  private func examineSandbox(of system: Container) async throws {
    let process = try await system.property("MainPID", of: Self.fleet)
    let user = try await system.shell("id --user identity-fleet")
    let status = try await system.shell("tr '\\t' ' ' </proc/\(process)/status")
    for line in ["Uid: \(user) \(user) ", "CapEff: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2"] {
      #expect(status.contains(line), "\(status)")
    }
    let apps = try await system.shell("identityctl app list --json")
    #expect(apps.contains(/"app":"identity-fleet"[^}]*"rights":\["fleet"\]/), "\(apps)")
    #expect(try await system.shell("stat --format='%U %a' /run/identity-fleet") == "identity-fleet 755")
    let inside = "nsenter --target=\(process) --mount"
    try await system.shell(
      "\(inside) /usr/sbin/identity-fleet --version; [ ! -e /proc/\(process)/root/run/dbus/socket ]")
    for program in ["/usr/bin/true", "/usr/bin/identityctl", "/usr/sbin/identityd --version"] {
      #expect(try await system.attempt("\(inside) \(program)").status == 126, "\(program)")
    }
    let exposure = try await system.attempt(
      "systemd-analyze security --offline=true --no-pager --threshold=\(Self.exposureOfFleet) \(Self.fleet)")
    #expect(exposure.status == 0, "\(exposure.output.split(separator: "\n").last ?? "")")
    let found = try await system.attempt("systemd-analyze verify --man=no \(Self.fleet)")
    #expect(found.status == 0 && found.errors == "", "\(found)")
  }

  private func reloadAndRestart(_ system: Container) async throws {
    let process = try await system.property("MainPID", of: Self.fleet)
    let drop = "/etc/identityd/identity-fleet.conf.d/wrong.conf"
    try await system.shell("systemctl reload \(Self.fleet)")
    try await eventuallyLive(system)
    try await system.write("[Fleet]\nBroker=nonsense", to: drop)
    #expect(try await system.attempt("systemctl reload \(Self.fleet)").status != 0)
    try await system.shell("rm \(drop); systemctl reload \(Self.fleet)")
    try await eventuallyLive(system)
    #expect(try await system.property("MainPID", of: Self.fleet) == process)

    try await system.shell("systemctl stop \(Self.fleet); [ ! -e /run/identity-fleet ]; systemctl start \(Self.fleet)")
    try await eventuallyLive(system)
    try await system.shell("systemctl kill --signal=KILL \(Self.fleet)")
    try await eventually("systemd starts the service again") {
      try await system.property("NRestarts", of: Self.fleet) == "1"
    }
    try await eventuallyLive(system)

    try await system.write("[Service]\nWatchdogSec=2s", to: "/run/systemd/system/\(Self.fleet).d/test.conf")
    try await system.shell("systemctl daemon-reload; systemctl restart \(Self.fleet)")
    try await eventuallyLive(system)
    let watched = try await system.property("MainPID", of: Self.fleet)
    try await system.shell("kill -STOP \(watched)")
    try await eventually("the watchdog ends the service that hangs") {
      let next = try await system.property("MainPID", of: Self.fleet)
      return next != watched && next != "0"
    }
    try await system.shell("rm -r /run/systemd/system/\(Self.fleet).d; systemctl daemon-reload")
    try await eventuallyLive(system)
    #expect(!(try await system.shell("identityctl fleet status").contains("twin")))
  }
}
