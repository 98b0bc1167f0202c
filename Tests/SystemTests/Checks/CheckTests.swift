import Foundation
import TestSupport
import Testing

/// `identityctl check` on the system's daemon: it must name each fault, and its commands must repair the fault.
extension SystemTests {
  /// Reads the document of the checks.
  func diagnosis(of document: String) throws -> Diagnosis {
    try JSONDecoder().decode(Diagnosis.self, from: Data(document.utf8))
  }

  /// Runs the checks. The exit status must agree with the report.
  func check(_ system: Container, asUser user: Int? = nil) async throws -> Diagnosis {
    let identity = user.map { "setpriv --reuid=\($0) --regid=\($0) --clear-groups " } ?? ""
    let outcome = try await system.attempt("\(identity)identityctl check --json")
    let found = try diagnosis(of: outcome.output)
    #expect(outcome.status == (found.ok ? 0 : 8), "\(outcome)")
    return found
  }

  /// Runs the repair command of a check as root, with the path of a copy of the state if the command needs one.
  private func mend(_ system: Container, _ entry: Diagnosis.Entry, copy: String = "") async throws {
    let command = try #require(entry.command(copy: copy), "\(entry)")
    try await system.shell("cd / && \(command)")
  }

  /// Breaks the system. The check must report the fault with this command, and the command must repair it.
  private func expect(
    _ system: Container, after script: String, _ name: String, _ result: String = "failed", mend command: String,
    asUser user: Int? = nil, copy: String = ""
  ) async throws {
    // So many restarts in so short a time would exceed systemd's start limit.
    try await system.shell("systemctl reset-failed identityd.socket identityd.service || true; \(script)")
    let found = try await check(system, asUser: user)
    let entry = try found[name]
    #expect(entry.result == result, "\(script): \(entry)")
    #expect(found.ok == (result != "failed"), "\(script)")
    #expect(entry.mend == command, "\(script): \(entry)")
    try await mend(system, entry, copy: copy)
    let after = try await check(system, asUser: user)
    #expect(after.ok, "\(script): \(after)")
    #expect(try after[name].result == "ok", "\(script): \(after)")
  }

  func reinstalled(_ suite: String) async throws -> Container {
    let system = try await Container.ready(suite)
    try await system.shell("\(Container.purge) && \(Container.install)")
    return system
  }

  @Test(arguments: Container.suites)
  func `check finds no fault in a new installation, as root and as another user`(suite: String) async throws {
    let system = try await reinstalled(suite)
    let found = try await check(system)
    #expect(found.ok, "\(found)")
    for name in [
      "socket", "unit", "configuration", "peer", "machine-id", "manifests", "store", "space", "permissions", "versions",
    ] {
      #expect(try found[name].result == "ok", "\(found)")
    }
    #expect(try found["unit"].facts["socket-enabled"] == "enabled")
    let other = try await check(system, asUser: 1)
    #expect(other.ok, "\(other)")
    #expect(try other["permissions"].result == "skipped")
    for name in ["space", "configuration"] { #expect(try other[name].result == "ok") }
  }

  @Test(arguments: Container.oldest)
  func `check's commands repair a socket that is stopped, stale, closed or disabled`(suite: String) async throws {
    let system = try await reinstalled(suite)
    let stop = "systemctl stop identityd.socket identityd.service"
    try await expect(system, after: stop, "unit", mend: "systemctl start identityd.socket")
    #expect(
      try await system.attempt(stop + "; identityctl check").output.contains("    systemctl start identityd.socket\n"))
    let leave =
      "mkdir -p /run/identityd; perl -MIO::Socket::UNIX -e "
      + "'IO::Socket::UNIX->new(Local => \"/run/identityd/identityd.sock\", Listen => 1) or die'"
    try await expect(system, after: "\(stop); \(leave)", "unit", mend: "systemctl start identityd.socket")
    try await expect(
      system, after: "chmod 0000 /run/identityd/identityd.sock", "socket",
      mend: "sudo chmod 0666 /run/identityd/identityd.sock", asUser: 1)
    try await expect(
      system, after: "systemctl disable identityd.socket identityd.service", "unit", "warning",
      mend: "systemctl enable identityd.socket && systemctl enable identityd.service")
    for option in ["", " --runtime"] {
      try await expect(
        system, after: "\(stop); systemctl mask\(option) identityd.socket", "unit",
        mend: "systemctl unmask\(option) identityd.socket identityd.service && systemctl start identityd.socket")
    }
  }

  @Test(arguments: Container.newest)
  func `check's commands restore the machine-id from a copy, or make a new one and say what that ends`(
    suite: String
  ) async throws {
    let system = try await reinstalled(suite)
    // The journal is stored under the machine-id: later tests need the one that the container booted with.
    try await system.shell(
      "cp -a /etc/machine-id /root/machine-id; [ ! -d /var/log/journal ] || mv /var/log/journal /root/")
    let device = try await system.shell("identityctl get device")
    let renew = "systemctl restart identityd.service && identityctl machine acknowledge"
    let setUp = "systemd-machine-id-setup && \(renew)"
    let restore = "cp -a /root/machine-id /etc/machine-id; [ ! -d /root/journal ] || mv /root/journal /var/log/"
    let copies = "rm -f /var/lib/dbus/machine-id"
    do {
      let copy = "\(copies); install -D -m 0444 /root/machine-id /var/lib/dbus/machine-id"
      try await expect(
        system, after: "\(copy); echo >/etc/machine-id", "machine-id",
        mend: "install -m 0444 /var/lib/dbus/machine-id /etc/machine-id")
      try await system.shell("cmp /etc/machine-id /root/machine-id && systemctl restart identityd.service")
      #expect(try await system.shell("identityctl get device") == device)
      try await expect(system, after: "\(copies); echo >/etc/machine-id", "machine-id", mend: setUp)
      try await expect(
        system, after: "echo uninitialized >/etc/machine-id", "machine-id", mend: "rm /etc/machine-id && \(setUp)")
      try await expect(
        system, after: "echo b76cc7b1bbdc489e93909d2043031de8 >/etc/machine-id", "machine-id",
        mend: "rm -f /etc/machine-id /var/lib/dbus/machine-id && \(setUp)")
      try await expect(
        system, after: "echo 0123456789abcdef0123456789abcdef >/etc/machine-id", "machine-id", "warning", mend: renew)
      try await expect(
        system,
        after: "cp -a /root/machine-id /etc/machine-id; systemctl restart identityd.service; "
          + "echo 123456789abcdef0123456789abcdef0 >/etc/machine-id; systemctl restart identityd.service",
        "machine-id", "warning", mend: "identityctl machine acknowledge")
      try await system.shell("cp -a /root/machine-id /etc/machine-id && systemctl restart identityd.service")
      #expect(try await system.shell("identityctl get device") == device)
      #expect(try await system.shell("identityctl --json history device").contains("machine-returned"))
    } catch {
      try await system.shell(restore)
      throw error
    }
    try await system.shell("\(restore); systemctl restart identityd.service")
  }

  @Test(arguments: Container.oldest)
  func `check's commands repair the modes, the key and the store`(suite: String) async throws {
    let system = try await reinstalled(suite)
    let (state, etc) = ("/var/lib/identityd", "/etc/identityd")
    try await expect(system, after: "chmod 0777 \(etc)/apps.d", "manifests", mend: "chmod go-w \(etc)/apps.d")
    try await expect(system, after: "chmod 0777 \(etc)", "permissions", mend: "chmod go-w \(etc)")
    try await expect(system, after: "chmod 0755 \(state)", "permissions", mend: "chmod 0700 \(state)")
    try await expect(
      system, after: "chown root: \(state)/witness", "permissions",
      mend: "chown identityd:identityd \(state)/witness")
    // At a terminal, because the command shows the recovery key.
    let setup = try await check(system)["master-key"]
    #expect(setup.result == "info" && setup.mend == "identityd-setup-key", "\(setup)")
    try await system.shell("script --quiet --return --command identityd-setup-key /dev/null")
    #expect(try await check(system)["master-key"].result == "ok")
    let key = "/etc/credstore.encrypted/identityd.key"
    let restart = "systemctl restart identityd-key.service identityd.service"
    try await system.shell("identityctl item put service=s account=a data=eA==")
    try await system.shell(
      "mv \(key) /root/hidden.key; systemctl restart identityd-key.service identityd.service || true")
    let found = try await check(system)
    #expect(try found["master-key"].result == "failed")
    #expect(try found["master-key"].mend == restart)
    try await system.shell("mv /root/hidden.key \(key)")
    try await mend(system, found["master-key"])
    #expect(try await check(system)["master-key"].result == "ok")
    let both = "identityd.socket identityd.service"
    try await expect(
      system,
      after: """
        systemctl stop \(both); rm -rf /root/copy; cp -a \(state) /root/copy
        rm \(state)/identityd.db; systemctl start \(both)
        """, "store",
      mend: """
        rm -rf \(state).next && cp -aT COPY \(state).next && systemctl stop \(both) \
        && mv --backup=numbered -T \(state) \(state).damaged \
        && mv -T \(state).next \(state) && systemctl start \(both)
        """,
      copy: "/root/copy")
    try await system.shell("rm -rf \(state).damaged /root/copy")
  }
}
