import Testing

/// Installation, upgrade and removal of the packages.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `installing the package starts the daemon, now and at each boot`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(Container.purge)
    try await system.shell(Container.install)
    for unit in ["identityd.service", "identityd.socket"] {
      #expect(try await system.property("UnitFileState", of: unit) == "enabled")
      #expect(try await system.property("ActiveState", of: unit) == "active")
    }
    #expect(try await system.shell("stat --format='%U %G %a' /var/lib/identityd") == "identityd identityd 700")
    #expect(try await system.shell("stat --format='%U %G %a' /run/identityd") == "root root 755")
    #expect(try await system.shell("stat --format=%a /run/identityd/identityd.sock") == "666")
    #expect(try await system.shell("dpkg --verify identityd identityd-client") == "")
  }

  @Test(arguments: Container.suites)
  func `row 54: an upgrade starts the new daemon and keeps the socket and all identifiers`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    let socket = try await system.shell("stat --format=%i /run/identityd/identityd.sock")
    try await system.shell(Container.install)
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.property("MainPID") != daemon)
    #expect(try await system.shell("stat --format=%i /run/identityd/identityd.sock") == socket)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `an upgrade from the single package of 0_1_0 moves the client's files`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // Rebuilds the form of that release: all files in one package, which conflicts with nothing.
    try await system.shell(
      """
      rm -rf /root/one
      dpkg-deb --raw-extract \(Container.packages)/identityd_*.deb /root/one
      dpkg-deb --extract \(Container.packages)/identityd-client_*.deb /root/one
      sed -i -e 's/^Version:.*/Version: 0.1.0/' -e 's/identityd-client ([^)]*), //' /root/one/DEBIAN/control
      dpkg-deb --build /root/one /root/one.deb
      \(Container.purge)
      dpkg --install /root/one.deb
      """)
    #expect(try await system.shell("dpkg --search /usr/bin/identityctl") == "identityd: /usr/bin/identityctl")
    let identifiers = try await system.identifiers()
    // The new client without the new daemon would break the old daemon.
    let alone = try await system.attempt("dpkg --install \(Container.packages)/identityd-client_*.deb")
    #expect(alone.status != 0 && alone.errors.contains("would break"), "\(alone.errors)")
    try await system.shell("apt-get install --yes \(Container.packages)/*.deb")
    for file in ["/usr/bin/identityctl", "/usr/share/man/man1/identityctl.1.gz"] {
      #expect(try await system.shell("dpkg --search \(file)") == "identityd-client: \(file)")
    }
    #expect(try await system.shell("dpkg --verify identityd identityd-client") == "")
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `an upgrade leaves a disabled daemon alone`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("systemctl disable --now identityd.service identityd.socket")
    try await system.shell(Container.install)
    for unit in ["identityd.service", "identityd.socket"] {
      #expect(try await system.property("UnitFileState", of: unit) == "disabled")
      #expect(try await system.property("ActiveState", of: unit) == "inactive")
    }
    try await system.shell("systemctl enable identityd.service")
    #expect(try await system.property("UnitFileState", of: "identityd.socket") == "enabled")
  }

  @Test(arguments: Container.suites)
  func `the administrator can enable the metrics timer, which ends with the package`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(Container.purge)
    try await system.shell(Container.install)
    let timer = "identityd-metrics.timer"
    func state() async throws -> [String] {
      [try await system.property("UnitFileState", of: timer), try await system.property("ActiveState", of: timer)]
    }
    #expect(try await state() == ["disabled", "inactive"])
    try await system.shell("systemctl enable --now \(timer)")
    try await system.shell(Container.install)
    #expect(try await state() == ["enabled", "active"])
    try await system.shell("dpkg --remove identityd")
    #expect(try await system.property("ActiveState", of: timer) == "inactive")
    try await system.shell(Container.purge)
    #expect(try await system.shell("find /etc/systemd -name 'identityd*'") == "")
  }

  @Test(arguments: Container.suites)
  func `removing the package keeps the state, and a reinstallation finds it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.shell("dpkg --remove identityd")
    #expect(try await system.attempt("systemctl is-active identityd.service identityd.socket").status != 0)
    try await system.shell("[ ! -e /run/identityd/identityd.sock ] && [ -e /var/lib/identityd/identityd.db ]")
    try await system.shell(Container.install)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `a purge removes everything, and afterwards only the device identifier is the same`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let before = try await system.identifiers()
    try await system.shell(Container.purge)
    try await system.shell("! getent passwd identityd && ! getent group identityd && ! getent group identityd-monitor")
    #expect(
      try await system.shell(
        "find /etc /usr /var/lib /run -name '*identityd*' -not -name 'identityd-test*'") == "")
    try await system.shell(Container.install)
    let after = try await system.identifiers()
    #expect(after.device == before.device)
    #expect(after.installation != before.installation)
    let device = try system.answer(await system.shell("identityctl --json=wire get device"))
    #expect(device.attributes["origin"] == "machine")
  }

  @Test(arguments: Container.suites)
  func `the package can be installed and purged without a running systemd`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(Container.purge)
    // Maintainer scripts recognise a running systemd by /run/systemd/system (sd_booted(3)).
    let withoutSystemd = "unshare --mount sh -euc 'mount -t tmpfs tmpfs /run;"
    try await system.shell("\(withoutSystemd) \(Container.install)'")
    try await system.shell("systemctl daemon-reload")
    #expect(try await system.property("UnitFileState") == "enabled")
    #expect(try await system.property("ActiveState") == "inactive")
    try await system.shell("\(withoutSystemd) \(Container.purge)'")
    try await system.shell("! getent passwd identityd && [ ! -e /usr/sbin/identityd ] && systemctl daemon-reload")
  }
}
