import TestSupport
import Testing

/// The recovery key of `identityd-setup-key`, from its first display to the items on a machine without the host key.
extension SystemTests {
  private static let key = "/etc/credstore.encrypted/identityd.key"
  private static let hostKey = "/var/lib/systemd/credential.secret"
  private static let file = "/root/recovery-key"
  private static let client = "systemd-run --quiet --scope identityctl"
  private static let putItem = "\(client) item put service=s account=a data=c2VjcmV0"
  private static let readItem = "\(client) item read service=s account=a"
  private static let restart = "systemctl restart identityd-key.service identityd.service"

  /// Returns a system with one item, under a master key in a file.
  private func systemWithFileKey(_ suite: String) async throws -> (system: Container, item: String) {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      systemctl stop identityd.socket identityd.service identityd-key.service
      rm -rf \(Self.key)* /var/lib/identityd/* \(Self.file)*
      systemctl reset-failed
      systemctl start identityd.socket
      \(Self.putItem)
      """)
    return (system, try await system.shell(Self.readItem))
  }

  private func status(_ row: String, of system: Container) async throws -> String {
    try await system.shell("identityctl status | sed -n 's/^\(row)=//p'")
  }

  /// Runs the setup at a terminal.
  private func atTerminal(_ options: String, on system: Container) async throws -> Outcome {
    try await system.attempt("script --quiet --return --command 'identityd-setup-key \(options)' /dev/null </dev/null")
  }

  /// Types a recovery key at the prompt of `--recover`, as a person does: after the prompt has appeared. A terminal
  /// shows input that comes before, since the program has not turned off the echo yet.
  private func typeRecoveryKey(_ text: String, on system: Container) async throws -> Outcome {
    try await system.attempt(
      """
      : >/root/terminal
      { timeout 60 sh -c 'until grep --quiet "Recovery key:" /root/terminal; do sleep 0.05; done'; echo '\(text)'; } |
        script --quiet --return --flush --command 'identityd-setup-key --recover' /root/terminal
      """)
  }

  /// Loses the host key, as with a new disk or mainboard.
  private func loseHostKey(of system: Container) async throws {
    try await system.shell("rm -f \(Self.hostKey); \(Self.restart) || systemctl restart identityd.service")
    #expect(try await status("master-key", of: system) == "unavailable")
    #expect(try await system.attempt(Self.readItem).status == 24)
  }

  @Test(arguments: Container.suites)
  func `the recovery key in a file opens the items without the host key`(suite: String) async throws {
    let (system, item) = try await systemWithFileKey(suite)
    try await system.shell("identityd-setup-key --recovery-key-file=\(Self.file)")
    #expect(try await system.shell("stat --format='%U %a' \(Self.file)") == "root 600")
    #expect(try await system.shell("cat \(Self.file)").contains(/^([0-9A-F]{8}-){7}[0-9A-F]{8}$/))
    #expect(try await status("recovery-key", of: system) != "")
    let since = try await system.now()
    try await system.shell("identityd-setup-key --rotate")
    #expect(try await status("recovery-key", of: system) != "")

    try await loseHostKey(of: system)
    let advice = try #require(try await check(system)["master-key"].cause)
    #expect(advice.contains("identityd-setup-key --recover"), "\(advice)")
    // A wrong key changes nothing.
    try await system.shell("tr 0123456789ABCDEF 123456789ABCDEF0 <\(Self.file) >\(Self.file).wrong")
    let before = try await system.shell("sha256sum \(Self.key)")
    for wrong in ["\(Self.file).wrong", "/dev/null", "/nowhere", "/etc/passwd"] {
      #expect(try await system.attempt("identityd-setup-key --recover --recovery-key-file=\(wrong)").status == 1)
      #expect(try await system.shell("sha256sum \(Self.key)") == before, "\(wrong)")
    }
    try await system.shell("identityd-setup-key --recover --recovery-key-file=\(Self.file)")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await status("master-key", of: system) == "credential")
    #expect(try await status("recovery-key", of: system) != "")
    #expect(try await system.shell("ls -A /etc/credstore.encrypted") == "identityd.key")
    #expect(try await system.attempt("identityd-setup-key --recover --recovery-key-file=\(Self.file)").status == 73)
    let text = try await system.shell("cat \(Self.file)")
    let journal = try await system.journal(since: since)
    #expect(!journal.contains { $0.contains(text) || $0.contains(text.replacing("-", with: "")) })
    try await system.reboot()
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("systemctl is-system-running") == "running")
  }

  @Test(arguments: Container.suites)
  func `the terminal shows the recovery key, and takes it under another machine-id`(suite: String) async throws {
    let (system, item) = try await systemWithFileKey(suite)
    let shown = try await atTerminal("", on: system)
    let text = String(try #require(shown.output.firstMatch(of: /([0-9A-F]{8}-){7}[0-9A-F]{8}/)).0)
    #expect(shown.status == 0 && shown.output.contains("shown only this time"), "\(shown)")
    #expect(try await atTerminal("", on: system).status == 73)
    // The machine-id is lost for good, and the host key belongs to it.
    try await system.shell(
      "cp -a /etc/machine-id /root/machine-id; rm /etc/machine-id; echo 0123456789abcdef0123456789abcdef >/etc/machine-id"
    )
    try await system.reboot()
    #expect(try await status("master-key", of: system) == "unavailable")
    let wrong = try await typeRecoveryKey(String(text.reversed()), on: system)
    #expect(wrong.status == 1 && wrong.output.contains("nothing was changed"), "\(wrong)")
    let typed = text.lowercased().replacing("-", with: " ")
    let taken = try await typeRecoveryKey(typed, on: system)
    #expect(taken.status == 0, "\(taken)")
    #expect(!taken.output.contains(typed.prefix(8)), "\(taken)")
    #expect(try await system.shell(Self.readItem) == item)
    try await system.shell("ls \(Self.hostKey).*")
    #expect(try await system.shell("systemctl is-system-running") == "running")
    try await system.shell("rm /etc/machine-id; cp -a /root/machine-id /etc/machine-id; rm \(Self.hostKey)*")
    try await system.reboot()
  }

  @Test(arguments: Container.newest)
  func `a program gets the recovery key only on request, and check asks for one`(suite: String) async throws {
    let (system, item) = try await systemWithFileKey(suite)
    func setup(_ options: String) async throws -> Int32 {
      try await system.attempt("identityd-setup-key \(options)").status
    }
    for options in [
      "", "--recover", "--new-recovery-key", "--recover --no-recovery-key", "--new-recovery-key --no-recovery-key",
      "--no-recovery-key --recovery-key-file=\(Self.file)", "--rotate --recover", "--recovery-key-file=",
      "--rotate --recovery-key-file=\(Self.file)",
    ] {
      #expect(try await setup(options) == 64, "\(options)")
    }
    #expect(try await setup("--recover --recovery-key-file=\(Self.file)") == 73)
    try await system.shell("identityd-setup-key --no-recovery-key")
    #expect(try await status("recovery-key", of: system) == "")
    let found = try await check(system)["master-key"]
    #expect(found.result == "warning" && found.mend == "identityd-setup-key --new-recovery-key", "\(found)")

    // Neither beside the items nor over another file.
    try await system.shell(
      "touch \(Self.file); ln -s /nowhere \(Self.file).link; ln -s /var/lib/identityd \(Self.file).state")
    for (place, status) in [
      ("/var/lib/identityd/k", 64), ("\(Self.file).state/k", 64), (Self.file, 1), ("\(Self.file).link", 1),
      ("/nowhere/k", 1),
    ] as [(String, Int32)] {
      #expect(try await setup("--new-recovery-key --recovery-key-file=\(place)") == status, "\(place)")
    }
    #expect(try await status("recovery-key", of: system) == "")
    try await system.shell("[ ! -s \(Self.file) ] && [ ! -e /var/lib/identityd/k ] && rm \(Self.file)*")
    // The advice of the check, at a terminal.
    #expect(try await atTerminal("--new-recovery-key", on: system).status == 0)
    #expect(try await check(system)["master-key"].result == "ok")
    for number in 1...2 {
      #expect(try await setup("--new-recovery-key --recovery-key-file=\(Self.file).\(number)") == 0)
    }
    try await loseHostKey(of: system)
    #expect(try await setup("--recover --recovery-key-file=\(Self.file).1") == 1)
    #expect(try await setup("--recover --recovery-key-file=\(Self.file).2") == 0)
    #expect(try await system.shell(Self.readItem) == item)
    try await system.shell("rm -f \(Self.file)*")
  }

  @Test(arguments: Container.oldest)
  func `a kill at any time within a recovery loses no key`(suite: String) async throws {
    let (system, item) = try await systemWithFileKey(suite)
    try await system.shell("identityd-setup-key --recovery-key-file=\(Self.file)")
    for moment in ["05", "15", "25", "40", "60", "90"] {
      try await loseHostKey(of: system)
      try await system.shell(
        """
        setsid --wait timeout --signal=KILL 0.\(moment) \\
          identityd-setup-key --recover --recovery-key-file=\(Self.file) >/dev/null 2>&1 || true
        systemctl reset-failed
        identityd-setup-key --recover --recovery-key-file=\(Self.file) || [ $? = 73 ]
        """)
      #expect(try await system.shell(Self.readItem) == item, "\(moment)")
      #expect(try await system.shell("ls -A /etc/credstore.encrypted | grep -v next") == "identityd.key", "\(moment)")
    }
    try await system.shell("rm -f \(Self.file)*")
  }
}
