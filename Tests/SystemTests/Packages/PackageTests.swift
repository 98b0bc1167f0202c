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

  @Test(arguments: Container.oldest)
  func `an upgrade from the single package of 0_1_0 moves the client's files`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // Rebuilds the form of that release: all files in one package, which conflicts with nothing.
    try await system.shell(
      """
      rm -rf /root/one
      dpkg-deb --raw-extract \(Container.packages)/identityd_*.deb /root/one
      dpkg-deb --extract \(Container.packages)/identityd-client_*.deb /root/one
      sed -i -e 's/^Version:.*/Version: 0.1.0/' -e 's/identityd-client ([^)]*), //' /root/one/DEBIAN/control
      dpkg-deb -Znone --build /root/one /root/one.deb
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

  @Test(arguments: Container.oldest)
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

  @Test(arguments: Container.oldest)
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

  @Test(arguments: Container.oldest)
  func `removing the package keeps the state, and a reinstallation finds it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.shell("dpkg --remove identityd")
    #expect(try await system.attempt("systemctl is-active identityd.service identityd.socket").status != 0)
    try await system.shell("[ ! -e /run/identityd/identityd.sock ] && [ -e /var/lib/identityd/identityd.db ]")
    try await system.shell(Container.install)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.oldest)
  func `a purge removes everything, and afterwards only the device identifier is the same`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // An earlier test may have renewed the device identifier.
    try await system.shell("\(Container.purge); \(Container.install)")
    let before = try await system.identifiers()
    try await system.shell(Container.purge)
    try await system.shell("! getent passwd identityd && ! getent group identityd && ! getent group identityd-monitor")
    #expect(
      try await system.shell(
        """
        find /etc /usr /var/lib /run -name '*identityd*' -not -name '*identityd-test*' \
          -not -path '/var/lib/identityd.purged-*'
        """) == "")
    try await system.shell(Container.install)
    let after = try await system.identifiers()
    #expect(after.device == before.device)
    #expect(after.installation != before.installation)
    #expect(try await system.shell("identityctl --json get device").contains(#""origin":"machine""#))
  }

  /// A shell command that prints the folders in which purges kept the state.
  private static let keptStates = "find /var/lib -maxdepth 1 -name 'identityd.purged-*' | sort"

  /// Returns the commands in the output of a purge that bring the state back.
  private func commandsOfReturn(_ output: String) throws -> String {
    let begin = try #require(output.firstRange(of: "identityd: to bring it back, run these commands"), "\(output)")
    let end = try #require(output.firstRange(of: "identityd: to delete it"), "\(output)")
    return output[begin.upperBound..<end.lowerBound].split(whereSeparator: \.isNewline)
      .filter { $0.hasPrefix("identityd:   ") }.map { $0.dropFirst("identityd:   ".count) }.joined(separator: "\n")
  }

  @Test(arguments: Container.newest, ["noninteractive", "a refusal", "no debconf"])
  func `a purge keeps the state and its key, and the printed commands bring them back`(suite: String, answer: String)
    async throws
  {
    let system = try await Container.ready(suite)
    // Without the key of an earlier test.
    try await system.shell("\(Container.purge); rm -rf /var/lib/identityd.purged-*; \(Container.install)")
    try await system.shell(
      "identityd-setup-key --no-recovery-key; systemd-run --quiet --scope identityctl item put service=s account=a data=c2VjcmV0"
    )
    let readItem = "systemd-run --quiet --scope identityctl item read service=s account=a"
    let item = try await system.shell(readItem)
    let identifiers = try await system.identifiers()
    let modes = "find . -name credstore.encrypted -prune -o -not -name . -printf '%P %m\\n' | sort"
    let before = try await system.shell("cd /var/lib/identityd; \(modes)")
    let purge =
      switch answer {
      case "a refusal":
        "echo no | script --quiet --return --command 'DEBIAN_FRONTEND=teletype \(Container.purge)' /dev/null"
      case "no debconf":
        """
        mv /usr/share/debconf /usr/share/debconf.hidden
        status=0
        \(Container.purge) || status=$?
        mv /usr/share/debconf.hidden /usr/share/debconf
        exit $status
        """
      default: "DEBIAN_FRONTEND=noninteractive \(Container.purge)"
      }
    let output = try await system.shell("exec 2>&1\n\(purge)")
    #expect(output.contains("Delete the identifiers and secrets of identityd?") == (answer == "a refusal"))
    let kept = try await system.shell(Self.keptStates)
    #expect(kept.wholeMatch(of: #//var/lib/identityd\.purged-\d{4}-\d\d-\d\d/#) != nil, "\(kept)")
    #expect(try await system.shell("stat --format='%U %G %a' \(kept)") == "root root 700")
    #expect(try await system.shell("cd \(kept); \(modes)") == before)
    #expect(
      try await system.shell("ls /etc/credstore.encrypted \(kept)/credstore.encrypted") == """
        /etc/credstore.encrypted:

        \(kept)/credstore.encrypted:
        identityd.key
        """)

    if answer == "noninteractive" {
      // Another purge on the same day takes another name, and needs no command for a key.
      try await system.shell(Container.install)
      #expect(try await system.identifiers().installation != identifiers.installation)
      let second = try commandsOfReturn(try await system.shell("exec 2>&1\n\(Container.purge)"))
      #expect(second == "mv -T \(kept).2 /var/lib/identityd")
      #expect(try await system.shell(Self.keptStates) == "\(kept)\n\(kept).2")
    }

    try await system.shell("\(try commandsOfReturn(output)); \(Container.install)")
    #expect(try await system.identifiers() == identifiers)
    #expect(try await system.shell("cd /var/lib/identityd; \(modes)") == before)
    #expect(try await system.shell("find /var/lib/identityd -not -user identityd") == "")
    #expect(try await system.shell(readItem) == item)
    #expect(try await system.shell("identityctl status").contains("\nmaster-key=credential\n"))
    try await system.shell("rm -rf /var/lib/identityd.purged-*")
  }

  @Test(arguments: Container.oldest)
  func `a purge keeps the key of a state that is on a file system that is not mounted`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("\(Container.purge); rm -rf /var/lib/identityd.purged-*; \(Container.install)")
    try await system.shell("identityd-setup-key --no-recovery-key")
    let identifiers = try await system.identifiers()
    let output = try await system.shell(
      """
      systemctl stop identityd.socket identityd.service
      mv /var/lib/identityd /var/lib/elsewhere
      mkdir /var/lib/identityd
      \(Container.purge) 2>&1
      mv -T /var/lib/elsewhere /var/lib/identityd
      \(Container.install)
      """)
    #expect(output.contains("identityd: kept the key in /etc/credstore.encrypted"), "\(output)")
    #expect(try await system.identifiers() == identifiers)
    #expect(try await system.shell("identityctl status").contains("\nmaster-key=credential\n"))
    try await system.shell("\(Container.purge); rm -rf /var/lib/identityd.purged-*")
  }

  @Test(arguments: Container.oldest)
  func `a purge leaves a state on a mount point there, and a new installation finds it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let output = try await system.shell(
      """
      systemctl stop identityd.socket identityd.service
      mount --bind /var/lib/identityd /var/lib/identityd
      \(Container.purge) 2>&1
      \(Container.install)
      """)
    #expect(output.contains("identityd: kept the state in /var/lib/identityd, which only root can read"), "\(output)")
    #expect(try await system.identifiers() == identifiers)
    try await system.shell("systemctl stop identityd.socket identityd.service; umount /var/lib/identityd")
  }

  @Test(arguments: Container.oldest, ["set before", "at the terminal"])
  func `a purge deletes the state and its key if debconf's answer says so`(suite: String, answer: String)
    async throws
  {
    let system = try await Container.ready(suite)
    try await system.shell("\(Container.purge); rm -rf /var/lib/identityd.purged-*; \(Container.install)")
    try await system.shell("identityd-setup-key --no-recovery-key")
    let purge =
      answer == "set before"
      ? "echo identityd identityd/delete-state boolean true | debconf-set-selections; \(Container.purge)"
      : "echo yes | script --quiet --return --command 'DEBIAN_FRONTEND=teletype \(Container.purge)' /dev/null"
    let output = try await system.shell("exec 2>&1\n\(purge)")
    #expect(output.contains("identityd: deleted the state in /var/lib/identityd, and its key"), "\(output)")
    try await system.shell("[ ! -e /var/lib/identityd ] && [ ! -e /etc/credstore.encrypted/identityd.key ]")
    #expect(try await system.shell(Self.keptStates) == "")
    // The answer holds for one purge.
    try await system.shell("\(Container.install); \(Container.purge)")
    #expect(try await system.shell(Self.keptStates) != "")
    try await system.shell("rm -rf /var/lib/identityd.purged-*")
  }

  @Test(arguments: Container.oldest)
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
