import Testing

/// The backend of the Secret portal, with Debian's xdg-desktop-portal and with libsecret, which asks it in a sandbox.
extension SystemTests {
  /// Runs a program in a sandbox with the facts that the portal expects of Flatpak: `sandbox APP PROGRAM [ARG]...`
  private static let sandbox = """
    #!/bin/sh -eu
    app=$1 run=$XDG_RUNTIME_DIR/.flatpak/$$; shift
    mkdir -p "$run" "$HOME/$app"
    printf '[Application]\\nname=%s\\n[Instance]\\ninstance-id=%s\\n' "$app" $$ >"$run/info"
    exec timeout 5 bwrap --info-fd 5 --unshare-pid --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \\
      --symlink usr/lib64 /lib64 --ro-bind /etc /etc --bind /run/user /run/user --dev /dev --proc /proc \\
      --bind "$HOME/$app" "$HOME" --ro-bind-data 6 /.flatpak-info -- "$@" 5>"$run/bwrapinfo.json" 6<"$run/info"
    """
  /// Calls the backend, as the portal does: `retrieve APP`, with a descriptor 5 for the secret.
  private static let retrieve = """
    #!/bin/sh -eu
    busctl --user --timeout=20 call org.freedesktop.impl.portal.desktop.identity /org/freedesktop/portal/desktop \\
      org.freedesktop.impl.portal.Secret RetrieveSecret 'osha{sv}' /request "$1" 5 0
    """
  private static let delivered = "ua{sv} 0 0"
  private static let refused = "ua{sv} 2 0"

  /// Installs the portal and the backend, and makes a user without a desktop whose portal uses the backend.
  ///
  /// - Returns: a function that runs a script as this user.
  private func preparePortal(_ system: Container) async throws -> (String) async throws -> String {
    try await system.write(Self.sandbox, to: "/usr/local/bin/sandbox")
    try await system.write(Self.retrieve, to: "/usr/local/bin/retrieve")
    try await system.shell(
      """
      apt-get --quiet --quiet update
      apt-get --quiet --quiet --yes --no-install-recommends install xdg-desktop-portal libsecret-tools bubblewrap 2>&1
      dpkg --install \(Container.others)/identity-portal_*.deb
      chmod 755 /usr/local/bin/sandbox /usr/local/bin/retrieve
      id --user sandboxed >/dev/null 2>&1 || useradd --create-home sandboxed
      loginctl enable-linger sandboxed
      systemctl start "user@$(id --user sandboxed).service"
      """)
    let user: (String) async throws -> String = { script in
      try await system.shell(
        """
        user=$(id --user sandboxed)
        cd /home/sandboxed
        setpriv --reuid=sandboxed --regid=sandboxed --init-groups env HOME=/home/sandboxed \
          XDG_RUNTIME_DIR=/run/user/$user DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$user/bus sh -eu <<'SCRIPT'
        \(script)
        SCRIPT
        """)
    }
    _ = try await user(
      """
      mkdir -p .config/xdg-desktop-portal
      printf '[preferred]\\norg.freedesktop.impl.portal.Secret=identity\\n' >.config/xdg-desktop-portal/portals.conf
      systemctl --user daemon-reload
      systemctl --user restart xdg-desktop-portal.service 2>&1
      """)
    return user
  }

  private func removePortal(_ system: Container) async throws {
    try await system.shell(
      """
      loginctl disable-linger sandboxed
      systemctl stop "user@$(id --user sandboxed).service"
      dpkg --purge identity-portal
      userdel --remove sandboxed 2>&1
      [ -z "$(find / -xdev -not -path '/packages/*' -name '*identity-portal*' -o -xdev -name identity.portal)" ]
      """)
  }

  @Test(arguments: Container.suites)
  func `an app in a sandbox keeps its keyring over restarts, apart from the one of another app`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    let user = try await preparePortal(system)
    _ = try await user("printf hello | sandbox org.example.One secret-tool store --label=x name value")
    _ = try await user("printf other | sandbox org.example.Two secret-tool store --label=x name value")
    #expect(try await user("sandbox org.example.One secret-tool lookup name value") == "hello")
    #expect(try await user("sandbox org.example.Two secret-tool lookup name value") == "other")
    let keyring = ".local/share/keyrings/default.keyring"
    #expect(try await user("ls org.example.*/\(keyring) | wc --lines") == "2")
    // The keyring of one app is of no use to the other.
    _ = try await user("mkdir -p copy && cp org.example.One/\(keyring) org.example.Two/\(keyring)")
    #expect(try await user("sandbox org.example.Two secret-tool lookup name value || true") == "")
    // Neither the end of the processes nor a reboot changes the secret.
    _ = try await user("systemctl --user restart identity-portal.service xdg-desktop-portal.service 2>&1")
    #expect(try await user("sandbox org.example.One secret-tool lookup name value") == "hello")
    try await system.shell("systemctl restart identityd.service")
    try await system.reboot()
    #expect(try await user("sandbox org.example.One secret-tool lookup name value") == "hello")
    // Without identityd, the app gets an error, and its secret stays.
    try await system.shell("systemctl stop identityd.socket identityd.service")
    #expect(try await user("sandbox org.example.One secret-tool lookup name value 2>/dev/null || echo none") == "none")
    try await system.shell("systemctl start identityd.socket")
    #expect(try await user("sandbox org.example.One secret-tool lookup name value") == "hello")
    #expect(
      try await system.shell("journalctl --quiet --output=cat _SYSTEMD_USER_UNIT=identity-portal.service")
        .contains("no secret for an app: 'org.example.One': no identityd at /run/identityd/identityd.sock"))
    // libsecret of Debian 12 misses an answer that comes too early, and waits forever.
    #expect(
      try await user(
        """
        lost=0
        for try in $(seq 60); do sandbox org.example.One secret-tool lookup name value >/dev/null || lost=$((lost + 1)); done
        echo $lost
        """) == "0")
    try await removePortal(system)
  }

  /// busctl(1) passes descriptors since systemd 255.
  @Test(arguments: Container.suites.filter { $0 == "trixie" })
  func `the backend gives each app its own bytes, and no app holds up another one`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let user = try await preparePortal(system)
    _ = try await user("mkfifo pipe")
    func bytes(of app: String) async throws -> String {
      let lines = try await user("exec 5<>pipe; retrieve \(app); head --bytes=64 <&5 | base64 --wrap=0")
        .split(separator: "\n").map(String.init)
      #expect(lines.count == 2 && lines[0] == Self.delivered, "\(lines)")
      return lines.last ?? ""
    }
    let first = try await bytes(of: "org.example.One")
    // 64 bytes are 88 characters.
    #expect(first.count == 88)
    #expect(try await bytes(of: "org.example.One") == first)
    #expect(try await bytes(of: "org.example.Two") != first)
    // The secrets belong to this user's service.
    let number = try await user("id --user")
    #expect(try await system.shell("identityctl app list").contains("unit:identity-portal.service@\(number)"))
    // An app outside of a sandbox has no ID.
    for app in ["''", "../One", "org.example.One/x", "$(head -c 256 /dev/zero | tr '\\0' x)"] {
      #expect(try await user("exec 5<>pipe; retrieve \(app)") == Self.refused, "\(app)")
    }
    // A pipe without room, a file, and a pipe that nobody reads.
    #expect(
      try await user("exec 5<>pipe; head --bytes=65536 /dev/zero >&5; retrieve org.example.One") == Self.refused)
    #expect(try await user("exec 5>file; retrieve org.example.One; wc --bytes <file") == "\(Self.refused)\n0")
    #expect(try await user("exec 6<>pipe 5>pipe 6>&-; retrieve org.example.One") == Self.refused)
    // More calls at once than answers may wait.
    #expect(
      try await user(
        """
        exec 5<>pipe
        for try in $(seq 150); do retrieve org.example.One >>answers & done
        wait
        sort answers | uniq --count | sed 's/^ *//'
        """) == "150 \(Self.delivered)")
    #expect(
      try await user("systemctl --user show --property=ExecMainStatus --value identity-portal.service") == "0")
    let log = try await system.shell("journalctl --quiet --output=cat _SYSTEMD_USER_UNIT=identity-portal.service")
    #expect(log.contains("only an app in a sandbox has an ID") && !log.contains(first), "\(log)")
    // The service ends by itself, and the next call starts it.
    _ = try await user(
      "tries=0; while systemctl --user --quiet is-active identity-portal.service; do tries=$((tries + 1)); "
        + "[ $tries -lt 90 ]; sleep 1; done")
    #expect(try await bytes(of: "org.example.One") == first)
    try await removePortal(system)
  }
}
