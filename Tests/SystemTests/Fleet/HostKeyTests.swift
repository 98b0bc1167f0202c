import TestSupport
import Testing

/// systemd's host key, which systemd deletes when it decrypts a credential under another machine-id.
extension SystemTests {
  private static let hostKey = "/var/lib/systemd/credential.secret"
  private static let gate = "identityd-host-key.service"
  private static let script = "/usr/lib/identityd/check-host-key"
  private static let restart = "systemctl restart identityd-key.service identityd.service"
  private static let foreign = "0123456789abcdef0123456789abcdef"
  private static let client = "systemd-run --quiet --scope identityctl"
  private static let readItem = "\(client) item read service=s account=a"
  /// The journal is stored under the machine-id: later tests need the one that the container booted with.
  private static let saved = "/root/machine-id"

  /// Returns a system with one item, whose key is a credential.
  private func systemWithCredential(_ suite: String) async throws -> (system: Container, item: String) {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      systemctl stop identityd.socket identityd.service identityd-key.service
      rm -rf /etc/credstore.encrypted/identityd.key* /var/lib/identityd/*
      systemctl reset-failed
      systemctl start identityd.socket
      \(Self.client) item put service=s account=a data=c2VjcmV0
      cp -a /etc/machine-id \(Self.saved)
      identityd-setup-key --no-recovery-key
      """)
    return (system, try await system.shell(Self.readItem))
  }

  private func keyInUse(on system: Container) async throws -> String {
    try await system.shell("identityctl status | sed -n 's/^master-key=//p'")
  }

  /// Runs the check of the host key, and returns its reason for failing.
  private func reason(on system: Container, _ boot: String = "") async throws -> String {
    let outcome = try await system.attempt("\(Self.script) \(boot)")
    #expect(outcome.status == 1 && outcome.errors.contains("identityd-setup-key(8)"), "\(outcome)")
    return outcome.errors
  }

  @Test(arguments: Container.suites)
  func `row 42e: boots with another machine-id delete no key, and the former machine-id brings each item back`(
    suite: String
  ) async throws {
    let (system, item) = try await systemWithCredential(suite)
    let key = try await system.shell("sha256sum \(Self.hostKey)")
    let device = try await system.shell("identityctl get device")
    let invitation = "/etc/credstore.encrypted/identity-fleet.invitation"
    try await system.shell(
      """
      dpkg --install \(Container.others)/identity-fleet_*.deb
      echo nonsense | systemd-creds encrypt --name=identity-fleet.invitation --with-key=host - \(invitation)
      systemctl enable --now identity-fleet.service
      """)
    #expect(try await system.property("ActiveState", of: "identity-fleet-invitation.service") == "active")
    for boot in 1...3 {
      try await system.shell("rm /etc/machine-id; echo \(Self.foreign) >/etc/machine-id")
      let since = try await system.now()
      try await system.reboot()
      #expect(try await system.property("ActiveState", of: Self.gate) == "failed", "boot \(boot)")
      #expect(try await system.shell("systemctl is-system-running || true") == "degraded")
      #expect(try await system.property("ActiveState", of: "identityd-key.service") == "inactive")
      #expect(try await system.property("ActiveState") == "active")
      #expect(try await system.shell("identityctl get device") != device)
      #expect(try await keyInUse(on: system) == "unavailable")
      #expect(try await system.attempt(Self.readItem).status == 24)
      #expect(try await system.property("ActiveState", of: "identity-fleet.service") == "active")
      #expect(try await system.property("ActiveState", of: "identity-fleet-invitation.service") == "inactive")
      let journal = try await system.journal(since: since, "--unit=\(Self.gate)")
      #expect(journal.contains { $0.contains("belongs to another machine-id") }, "\(journal)")
      // An admin may try these commands meanwhile.
      #expect(try await system.attempt(Self.restart).status != 0)
      #expect(try await system.attempt("systemctl restart identity-fleet.service").status == 0)
      for options in ["--no-recovery-key", "--rotate"] {
        #expect(try await system.attempt("identityd-setup-key \(options)").status == 1)
      }
      #expect(try await system.shell("sha256sum \(Self.hostKey)") == key, "boot \(boot)")
    }

    // A service manager that knows the former machine-id no more would delete the key even now.
    try await system.shell("rm /etc/machine-id; cp -a \(Self.saved) /etc/machine-id")
    #expect(try await system.attempt(Self.restart).status != 0)
    #expect(try await reason(on: system, Self.foreign).contains("daemon-reexec"))
    #expect(try await system.shell("sha256sum \(Self.hostKey)") == key)
    let found = try await check(system)["master-key"]
    let command = try #require(found.mend)
    #expect(command == "systemctl daemon-reexec && \(Self.restart)", "\(found)")
    // Separately, because the script itself does not outlast the first command, which ends its connection to systemd.
    _ = try await system.attempt("systemctl daemon-reexec")
    try await system.shell(Self.restart)
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("identityctl get device") == device)
    #expect(try await check(system)["master-key"].result != "failed")
    try await system.reboot()
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.property("ActiveState", of: "identity-fleet-invitation.service") == "active")
    try await system.shell("dpkg --purge identity-fleet; rm \(invitation)")
    #expect(try await system.shell("systemctl is-system-running") == "running")
  }

  @Test(arguments: Container.suites)
  func `a host key of another form loads no credential, and a TPM2 needs no host key`(suite: String) async throws {
    let (system, item) = try await systemWithCredential(suite)
    let credential = "/etc/credstore.encrypted/identityd.key"
    try await system.shell("cp -a \(Self.hostKey) /root/host.key; cp -a \(credential) /root/credential")
    #expect(
      try await system.shell("od -A n -t x1 -N 16 \(Self.hostKey) | tr -d ' \\n'")
        == system.shell("systemd-id128 machine-id -a d3acecba0dad4cdfb8c9381528936c58"))
    for change in [
      "truncate --size=4111 \(Self.hostKey)", "truncate --size=4113 \(Self.hostKey)", ": >\(Self.hostKey)",
      "mv \(Self.hostKey) /root/moved; ln -s /root/moved \(Self.hostKey)",
      "mv \(Self.hostKey) /root/moved; ln -s /nowhere \(Self.hostKey)", "rm \(Self.hostKey); mkdir \(Self.hostKey)",
    ] {
      try await system.shell(change)
      #expect(try await reason(on: system).contains("unknown form"), "\(change)")
      #expect(try await system.attempt(Self.restart).status != 0, "\(change)")
      #expect(try await system.property("Result", of: Self.gate) == "exit-code")
      try await system.shell("rm -rf \(Self.hostKey); cp -a /root/host.key \(Self.hostKey)")
    }
    // The first 16 bytes are those of another machine-id.
    let overwrite = "printf 0123456789abcdef | dd of=\(Self.hostKey) conv=notrunc status=none"
    try await system.shell(overwrite)
    #expect(try await reason(on: system).contains("another machine-id"))
    #expect(try await system.attempt("systemctl start \(Self.gate)").status != 0)
    // The headers of credentials that a TPM2 alone encrypts, with a key of systemd's image or without, and none at all.
    for header in ["DHzAexF2RZGcSwvqCLwg/iAAAAABAAAA", "+vfrk0HjQSyhpDb5Wik2LyAAAAABAAAA"] {
      try await system.shell("echo \(header) >\(credential); systemctl start \(Self.gate)")
    }
    try await system.shell("rm \(credential); systemctl start \(Self.gate)")
    // Encrypting would delete the host key, too. The advice for a machine-id that is to stay makes way for a new one.
    _ = try await reason(on: system)
    let refused = try await system.attempt("identityd-setup-key --no-recovery-key")
    let advice = "mv \(Self.hostKey) \(Self.hostKey).former"
    #expect(refused.status == 1 && refused.errors.contains("first run '\(advice)'"), "\(refused)")
    try await system.shell("\(advice); \(Self.script); rm \(Self.hostKey).former")
    try await system.shell(
      "cp -a /root/host.key \(Self.hostKey); cp -a /root/credential \(credential); \(Self.restart)")
    #expect(try await system.shell(Self.readItem) == item)
  }
}
