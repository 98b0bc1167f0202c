import TestSupport
import Testing

/// The key that encrypts the items: its way to the daemon, and the consequences if it is missing.
extension SystemTests {
  private static let key = "/etc/credstore.encrypted/identityd.key"
  /// systemd's key that decrypts the credential on a machine without a TPM2, and its place while a test hides it.
  private static let hostKey = "/var/lib/systemd/credential.secret"
  private static let hiddenHostKey = "/root/credential.secret"
  /// The client in a scope, which is not a service: its app is always `user:0`, so the item is always the same.
  private static let client = "systemd-run --quiet --scope identityctl"
  private static let putItem = "\(client) item put service=s account=a data=c2VjcmV0"
  private static let readItem = "\(client) item read service=s account=a"

  /// Returns a system with an empty store and one item, under a master key in a file.
  private func systemWithItem(_ suite: String) async throws -> (system: Container, item: String) {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      [ ! -e \(Self.hiddenHostKey) ] || mv \(Self.hiddenHostKey) \(Self.hostKey)
      systemctl stop identityd.socket identityd.service identityd-key.service
      rm -rf \(Self.key)* /var/lib/identityd/*
      systemctl reset-failed
      systemctl start identityd.socket
      \(Self.putItem)
      """)
    let item = try await system.shell(Self.readItem)
    #expect(item != "")
    #expect(try await keyInUse(on: system) == "file")
    return (system, item)
  }

  /// Returns the source of the master key, as the daemon reports it.
  private func keyInUse(on system: Container) async throws -> String {
    try await system.shell("identityctl status | sed -n 's/^master-key=//p'")
  }

  /// Returns the names in the folder of encrypted credentials.
  private func credentials(on system: Container) async throws -> String {
    try await system.shell("ls -A /etc/credstore.encrypted")
  }

  @Test(arguments: Container.suites)
  func `the key moves from a file to a credential and is rotated, and the item stays`(suite: String) async throws {
    let (system, item) = try await systemWithItem(suite)
    try await system.shell("[ -e /var/lib/identityd/master.key ]")

    try await system.shell("identityd-setup-key --no-recovery-key")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("stat --format='%U %a' \(Self.key)") == "root 600")
    try await system.shell("[ ! -e /var/lib/identityd/master.key ]")

    let first = try await system.shell("sha256sum \(Self.key)")
    #expect(try await system.attempt("identityd-setup-key --no-recovery-key").status == 73)
    #expect(try await system.shell("sha256sum \(Self.key)") == first)
    try await system.shell("identityd-setup-key --rotate")
    #expect(try await system.shell("sha256sum \(Self.key)") != first)
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await credentials(on: system) == "identityd.key")

    try await system.reboot()
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("systemctl is-system-running") == "running")

    try await system.shell(Container.purge)
    #expect(try await credentials(on: system) == "")
  }

  @Test(arguments: Container.suites)
  func `row 42: a key that cannot be decrypted makes only the items unavailable`(suite: String) async throws {
    let (system, item) = try await systemWithItem(suite)
    try await system.shell("identityd-setup-key --no-recovery-key")
    let device = try await system.shell("identityctl get device")
    let key = try await system.shell("sha256sum \(Self.key)")

    // First without the host key, then with another one, as on another machine.
    for loss in ["mv \(Self.hostKey) \(Self.hiddenHostKey)", "systemd-creds setup"] {
      try await system.shell(loss)
      #expect(try await system.attempt("systemctl restart identityd-key.service").status != 0)
      try await system.shell("systemctl restart identityd.service")
      #expect(try await system.property("ActiveState", of: "identityd-key.service") == "failed")
      #expect(try await system.property("ActiveState") == "active")
      #expect(try await system.shell("identityctl get device") == device)
      #expect(try await keyInUse(on: system) == "unavailable")
      #expect(try await system.attempt(Self.readItem).status == 24)
      #expect(try await system.attempt("\(Self.client) item put service=s account=a data=b3RoZXI=").status == 24)
      #expect(try await system.attempt("identityctl key rotate --yes").status == 24)
      #expect(try await system.attempt("identityd-setup-key --no-recovery-key").status == 1)
      #expect(try await system.attempt("identityd-setup-key --rotate").status == 1)
      #expect(try await system.shell("sha256sum \(Self.key)") == key)
      #expect(try await credentials(on: system) == "identityd.key")
      try await system.shell("[ ! -e /var/lib/identityd/master.key ]")
    }

    // Each start of the daemon tries the unit of the key again.
    try await system.shell("mv \(Self.hiddenHostKey) \(Self.hostKey); systemctl restart identityd.service")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("systemctl is-system-running") == "running")
  }

  /// Stands in for the programs that a script calls, and kills the script instead of running call number `$AT`.
  ///
  /// Variables have no braces here and below: `systemd-run` would expand them before the shell does.
  private static let killer = """
    #!/bin/sh
    exec 7>>/root/killer/lock
    flock 7
    number=$(($(cat /root/killer/number) + 1))
    echo $number >/root/killer/number
    exec 7>&-
    program=$(basename "$0")
    [ $number != "$AT" ] || { echo "$program $*" >/root/killer/killed; kill -KILL 0; }
    exec "/usr/bin/$program" "$@"
    """

  /// Defines `check`, which fails if the item has changed and prints the last killed call, and `restart`.
  private static let checkItem = """
    check() { [ "$(\(readItem) 2>&1)" = "$item" ] || { echo "$1: no item after: $(cat /root/killer/killed)"; return 1; }; }
    restart() { systemctl reset-failed; systemctl restart identityd-key.service identityd.service; }
    item=$(\(readItem))
    """

  /// The usual run kills before every second step: the odd ones of a setup, and the even ones of a rotation.
  private static let stride = Trial.isLong ? 1 : 2

  @Test(arguments: Container.newest)
  func `row 42b: a kill before any step of the key's setup or rotation loses no key`(suite: String) async throws {
    let (system, _) = try await systemWithItem(suite)
    try await system.write(Self.killer, to: "/root/killer/step")
    // After each kill, checks the state first as after a reboot, with the files as they are, then after another run.
    let output = try await system.shell(
      """
      \(Self.checkItem)
      cd /root/killer
      chmod +x step; for program in mv rm systemctl systemd-creds identityctl; do ln -sf step $program; done
      at=\(1 - Self.stride)
      for options in --no-recovery-key --rotate; do
        while :; do
          at=$((at + \(Self.stride)))
          rm -f killed; echo 0 >number
          cp \(Self.key) before 2>/dev/null || : >before
          AT=$at PATH=/root/killer:$PATH setsid --wait identityd-setup-key $options >/dev/null 2>&1 || true
          [ -e killed ] || break
          restart
          check kill
          identityd-setup-key $options 2>errors || [ $? = 73 ] || { cat killed errors; exit 1; }
          check again
          identityctl status | grep -qx master-key=credential
          ! cmp --silent before \(Self.key) || { echo "still the same key after: $(cat killed)"; exit 1; }
          [ $options = --no-recovery-key ] || continue
          systemctl stop identityd.socket identityd.service
          rm -rf \(Self.key)* /var/lib/identityd/*
          systemctl start identityd.socket identityd.service
          \(Self.putItem)
          item=$(\(Self.readItem))
        done
        restart
        check end
        echo "$at steps"
        at=0
      done
      """)
    let steps = output.split(separator: "\n").compactMap { $0.firstMatch(of: /^(\d+) steps$/).flatMap { Int($0.1) } }
    #expect(steps.count == 2 && steps.allSatisfy { $0 > 8 }, "\(output)")
    #expect(try await credentials(on: system) == "identityd.key")
    try await system.shell("[ ! -e /var/lib/identityd/master.key ]")
  }

  /// Hundredths of a second. The test above kills at each step, so the usual run has few of them.
  private static let moments =
    Trial.isLong ? "02 05 08 11 14 17 20 23 26 29 32 35 38 41 44 47 50" : "05 14 23 32 41"

  @Test(arguments: Container.oldest)
  func `a kill at any time within the key's setup or rotation loses no key`(suite: String) async throws {
    let (system, _) = try await systemWithItem(suite)
    // `timeout` kills the children of the script too.
    let output = try await system.shell(
      """
      mkdir -p /root/killer
      \(Self.checkItem)
      identityd-setup-key --no-recovery-key 2>&1
      for moment in \(Self.moments); do
        echo "$moment hundredths" >/root/killer/killed
        setsid --wait timeout --signal=KILL 0.$moment identityd-setup-key --rotate >/dev/null 2>&1 || true
        restart
        check kill
      done
      identityd-setup-key --rotate 2>&1
      check end
      """)
    #expect(output.split(separator: "\n").allSatisfy { $0.hasPrefix("identityd-setup-key: ") }, "\(output)")
    #expect(try await keyInUse(on: system) == "credential")
    try await system.shell("! ls /etc/credstore.encrypted | grep -E 'previous$|retired'")
  }

  @Test(arguments: Container.suites)
  func `the unit that holds the key starts and stops with the daemon`(suite: String) async throws {
    let (system, _) = try await systemWithItem(suite)
    let unit = "identityd-key.service"
    try await system.shell("identityd-setup-key --no-recovery-key")
    #expect(try await system.property("UnitFileState", of: unit) == "static")
    #expect(try await system.property("MemorySwapMax") == "0")
    #expect(try await system.shell("systemd-analyze verify --man=no \(unit) 2>&1") == "")
    let holder = try await system.property("MainPID", of: unit)

    // A restart of the daemon must not ask the TPM2 for the key again.
    try await system.shell("systemctl restart identityd.service; systemctl kill --signal=KILL identityd.service")
    try await eventually("the daemon is back") { try await system.property("ActiveState") == "active" }
    #expect(try await system.property("MainPID", of: unit) == holder)

    try await system.shell("systemctl stop identityd.service")
    try await eventually("the key is gone") { try await system.property("ActiveState", of: unit) == "inactive" }
    try await system.shell("[ ! -e /run/credentials/\(unit) ]")

    // The daemon requires the unit, so the daemon's next start brings it back, even after a kill.
    #expect(try await keyInUse(on: system) == "credential")
    try await system.shell("systemctl kill --signal=KILL \(unit)")
    // Until systemd has noticed the end, a start takes the unit for running.
    try await eventually("its end is noticed") { try await system.property("ActiveState", of: unit) == "failed" }
    try await system.shell("systemctl restart identityd.service")
    #expect(try await keyInUse(on: system) == "credential")
  }

  @Test(arguments: Container.newest)
  func `only root can set up a key, and a stopped daemon allows only the first setup`(suite: String) async throws {
    let (system, item) = try await systemWithItem(suite)
    #expect(
      try await system.attempt("setpriv --reuid=nobody --clear-groups identityd-setup-key --no-recovery-key").status
        == 77)
    #expect(try await system.attempt("identityd-setup-key --sideways").status == 64)
    #expect(try await system.attempt("identityd-setup-key --rotate").status == 69)

    // The existing items need the file until the setup is run again.
    try await system.shell("systemctl stop identityd.socket identityd.service; identityd-setup-key --no-recovery-key")
    #expect(try await system.attempt("identityd-setup-key --rotate").status == 69)
    try await system.shell("systemctl start identityd.socket")
    #expect(try await keyInUse(on: system) == "file")
    #expect(try await system.shell(Self.readItem) == item)
    try await system.shell("identityd-setup-key --no-recovery-key")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
  }
}
