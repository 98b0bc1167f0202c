import Testing

/// Failures that must not change an identifier: crashes, hangs, reboots, and a second daemon.
extension SystemTests {
  /// Waits until systemd has replaced a daemon by another.
  private func replacement(of daemon: String, on system: Container) async throws {
    try await eventually("another daemon is up") {
      let state = try await system.shell("systemctl show --property=ActiveState,MainPID --value identityd.service")
      let values = state.split(separator: "\n").map(String.init)
      return values.contains("active") && !values.contains(daemon) && !values.contains("0")
    }
  }

  @Test(arguments: Container.suites)
  func `row 50: a killed daemon is restarted and keeps its state`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    try await system.shell("kill -KILL \(daemon)")
    try await replacement(of: daemon, on: system)
    #expect(try await system.property("NRestarts") == "1")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `row 50: a client that connects while no daemon runs is answered by the next one`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    let device = try await system.shell("kill -KILL \(daemon); identityctl get device")
    #expect(device == identifiers.device)
  }

  @Test(arguments: Container.oldest)
  func `row 50: however often starts fail, the socket stays, and clients are served after the repair`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    // More failures than any limit of systemd allows by default, in little time.
    try await system.write("[Service]\nRestartSec=10ms", to: "\(Container.dropIns)/restart.conf")
    let bad = "\(Container.configurations)/bad.conf"
    try await system.write("[Log]\nLevel=loud", to: bad)
    #expect(try await system.attempt("systemctl daemon-reload; systemctl restart identityd.service").status != 0)
    // A client that waits makes systemd start the service each time.
    try await system.shell(
      "systemd-run --quiet --unit=waiting-client sh -euc 'identityctl --timeout=300 get device >/tmp/waiting-client'")
    try await eventually("forty starts have failed") {
      try await Int(system.property("NRestarts")) ?? 0 >= 40
    }
    #expect(try await system.property("ActiveState", of: "identityd.socket") == "active")
    try await system.shell("test -S /run/identityd/identityd.sock")
    try await system.shell("rm \(bad)")
    try await eventually("the client that waited is answered") {
      try await system.shell("cat /tmp/waiting-client") == identifiers.device
    }
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.newest)
  func `row 20: a state directory that is mounted read-write again is written without a command`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let state = "/var/lib/identityd"
    for isEmpty in [false, true] {
      // A separate file system, with the store or without.
      try await system.shell(
        """
        systemctl stop identityd.service
        mkdir -p /tmp/kept; cp -a \(state)/. /tmp/kept/
        mount -t tmpfs -o mode=0700 tmpfs \(state); chown identityd: \(state)
        \(isEmpty ? "" : "cp -a /tmp/kept/. \(state)/")
        mount -o remount,ro \(state)
        systemctl start identityd.service
        """)
      let daemon = try await system.property("MainPID")
      // This client stays connected. Without a store there are no events to follow.
      if !isEmpty { try await system.shell("systemd-run --quiet --collect --unit=following identityctl monitor") }
      let device = try await system.attempt("identityctl get device")
      if isEmpty {
        #expect(device.status != 0 && device.errors.contains("mount it read-write"), "\(device)")
      } else {
        #expect(device.output == identifiers.device + "\n")
      }
      #expect(try await system.attempt("identityctl account set somebody").status != 0)
      let before = try await system.now()
      try await system.shell("mount -o remount,rw \(state)")
      try await eventually("the store is in order") {
        try await system.attempt("identityctl status").output.contains("\nstore=ok\n")
      }
      #expect(try await system.property("MainPID") != daemon, "the copy of the mount stays read-only")
      #expect(try await system.journal(since: before).contains { $0.contains("can be used again") })
      #expect(try await system.property("Result") == "success")
      try await system.shell("identityctl account set somebody")
      if !isEmpty {
        #expect(try await system.property("ActiveState", of: "following.service") == "active")
        #expect(try await system.identifiers() == identifiers)
        try await system.shell("systemctl stop following.service")
      }
      try await system.shell(
        "systemctl stop identityd.service; umount \(state); systemctl start identityd.service")
    }
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.newest)
  func `row 5: a store that can be read again is served without a command`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let key = "/var/lib/identityd/store.key"
    try await system.shell("systemctl stop identityd.service; chmod 000 \(key); systemctl start identityd.service")
    #expect(try await system.attempt("identityctl status").output.contains("\nstore=read-error\n"))
    let daemon = try await system.property("MainPID")
    #expect(try await system.attempt("identityctl get device").status != 0)
    try await system.shell("chmod 600 \(key)")
    try await eventually("the store is in order") {
      try await system.attempt("identityctl status").output.contains("\nstore=ok\n")
    }
    #expect(try await system.property("MainPID") != daemon)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `row 48: the watchdog ends a daemon that hangs`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.write("[Service]\nWatchdogSec=2s", to: "\(Container.dropIns)/watchdog.conf")
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service")
    let daemon = try await system.property("MainPID")
    let before = try await system.now()
    try await system.shell("kill -STOP \(daemon)")
    try await replacement(of: daemon, on: system)
    try await eventually("the journal has it") {
      try await system.journal(since: before).contains { $0.contains("Watchdog timeout") }
    }
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `an idle daemon feeds the watchdog`(suite: String) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.property("WatchdogUSec") == "30s")
    try await system.write("[Service]\nWatchdogSec=1s", to: "\(Container.dropIns)/watchdog.conf")
    try await system.shell("systemctl daemon-reload; systemctl restart identityd.service")
    var heard: Set<String> = []
    try await eventually("the watchdog heard of it five times") {
      heard.insert(try await system.property("WatchdogTimestampMonotonic"))
      return heard.count > 5
    }
    #expect(try await system.property("NRestarts") == "0")
  }

  @Test(arguments: Container.suites)
  func `a reboot changes no stored identifier`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.identifiers()
    let boot = try await system.shell("cat /proc/sys/kernel/random/boot_id")
    try await system.reboot()
    #expect(try await system.shell("cat /proc/sys/kernel/random/boot_id") != boot)
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.identifiers() == before)
  }

  @Test(arguments: Container.oldest)
  func `row 10: identifiers that were given out survive a crash of the system`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // Installed anew, so that the store is young when the system dies.
    try await system.shell("\(Container.purge); \(Container.install)")
    let before = try await system.identifiers()
    try await system.crash()
    #expect(try await system.identifiers() == before)
  }

  @Test(arguments: Container.suites)
  func `row 20b: a second daemon on the same state is refused, naming the holder`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let daemon = try await system.property("MainPID")
    let second = try await system.attempt(
      """
      systemd-run --quiet --wait --pipe --collect --uid=identityd \
        /usr/sbin/identityd --state-directory /var/lib/identityd --socket /tmp/second.sock
      """)
    #expect(second.status == 75)
    #expect(second.errors.contains(daemon))
    #expect(try await system.property("MainPID") == daemon)
  }

  @Test(arguments: Container.suites)
  func `row 20b: a second daemon on the same socket is refused, and the first goes on`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.identifiers()
    let second = try await system.attempt(
      "mkdir -p -m 700 /tmp/second; identityd --state-directory /tmp/second --socket /run/identityd/identityd.sock")
    #expect(second.status == 69)
    #expect(second.errors.contains("/run/identityd/identityd.sock"))
    #expect(try await system.identifiers() == before)
  }
}
