import Testing

/// Installation, upgrade, removal.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `installing the package starts the daemon, now and at each boot`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("dpkg --purge identityd")
    try await system.shell("dpkg --install /identityd.deb")
    for unit in ["identityd.service", "identityd.socket"] {
      #expect(try await system.property("UnitFileState", of: unit) == "enabled")
      #expect(try await system.property("ActiveState", of: unit) == "active")
    }
    #expect(try await system.shell("stat --format='%U %G %a' /var/lib/identityd") == "identityd identityd 700")
    #expect(try await system.shell("stat --format='%U %G %a' /run/identityd") == "root root 755")
    #expect(try await system.shell("stat --format=%a /run/identityd/identityd.sock") == "666")
    #expect(try await system.shell("dpkg --verify identityd") == "")
  }

  @Test(arguments: Container.suites)
  func `row 54: an upgrade starts the new daemon and keeps the socket and every identifier`(suite: String) async throws
  {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    let socket = try await system.shell("stat --format=%i /run/identityd/identityd.sock")
    try await system.shell("dpkg --install /identityd.deb")
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.property("MainPID") != daemon)
    #expect(try await system.shell("stat --format=%i /run/identityd/identityd.sock") == socket)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `an upgrade leaves a daemon alone that the administrator disabled`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("systemctl disable --now identityd.service identityd.socket")
    try await system.shell("dpkg --install /identityd.deb")
    for unit in ["identityd.service", "identityd.socket"] {
      #expect(try await system.property("UnitFileState", of: unit) == "disabled")
      #expect(try await system.property("ActiveState", of: unit) == "inactive")
    }
    try await system.shell("systemctl enable identityd.service")
    #expect(try await system.property("UnitFileState", of: "identityd.socket") == "enabled")
  }

  @Test(arguments: Container.suites)
  func `removing the package keeps the state, and a reinstallation finds it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.shell("dpkg --remove identityd")
    #expect(try await system.attempt("systemctl is-active identityd.service identityd.socket").status != 0)
    try await system.shell("[ ! -e /run/identityd/identityd.sock ] && [ -e /var/lib/identityd/identityd.db ]")
    try await system.shell("dpkg --install /identityd.deb")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `after a purge nothing is left, the device comes back and the installation does not`(suite: String) async throws
  {
    let system = try await Container.ready(suite)
    let before = try await system.identifiers()
    try await system.shell("dpkg --purge identityd")
    try await system.shell("! getent passwd identityd && ! getent group identityd")
    #expect(
      try await system.shell(
        "find /etc /usr /var/lib /run -name '*identityd*' -not -name 'identityd-test*'") == "")
    try await system.shell("dpkg --install /identityd.deb")
    let after = try await system.identifiers()
    #expect(after.device == before.device)
    #expect(after.installation != before.installation)
    let device = try system.answer(await system.shell("identityctl --json get device"))
    #expect(device.attributes["origin"] == "machine")
  }

  @Test(arguments: Container.suites)
  func `without a running systemd the package installs and purges all the same`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("dpkg --purge identityd")
    // What tells the maintainer scripts that systemd runs is /run/systemd/system (sd_booted(3)).
    let withoutSystemd = "unshare --mount sh -euc 'mount -t tmpfs tmpfs /run; "
    try await system.shell(withoutSystemd + "dpkg --install /identityd.deb'")
    try await system.shell("systemctl daemon-reload")
    #expect(try await system.property("UnitFileState") == "enabled")
    #expect(try await system.property("ActiveState") == "inactive")
    try await system.shell(withoutSystemd + "dpkg --purge identityd'")
    try await system.shell("! getent passwd identityd && [ ! -e /usr/sbin/identityd ] && systemctl daemon-reload")
  }
}
