import Testing

/// The key that encrypts the items: how it comes to the daemon, and what is left where it does not.
extension SystemTests {
  private static let key = "/etc/credstore.encrypted/identityd.key"
  /// The key of systemd that decrypts it where there is no TPM2, and where tests put that out of the way.
  private static let hostKey = "/var/lib/systemd/credential.secret"
  private static let hiddenHostKey = "/root/credential.secret"
  /// The client in a scope, which is no service: so the app is always `user:0`, and the item the same one.
  private static let client = "systemd-run --quiet --scope identityctl"
  private static let putItem = "\(client) item put service=s account=a data=c2VjcmV0"
  private static let readItem = "\(client) item read service=s account=a"

  /// A new installation that keeps one item, under a key in a file.
  private func systemWithItem(_ suite: String) async throws -> (system: Container, item: String) {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      [ ! -e \(Self.hiddenHostKey) ] || mv \(Self.hiddenHostKey) \(Self.hostKey)
      \(Container.purge)
      \(Container.install)
      \(Self.putItem)
      """)
    let item = try await system.shell(Self.readItem)
    #expect(item != "")
    #expect(try await keyInUse(on: system) == "file")
    return (system, item)
  }

  /// What the daemon says its items are encrypted under.
  private func keyInUse(on system: Container) async throws -> String {
    try await system.shell("identityctl status | sed -n 's/^key=//p'")
  }

  /// What is in the folder of encrypted credentials.
  private func credentials(on system: Container) async throws -> String {
    try await system.shell("ls -A /etc/credstore.encrypted")
  }

  @Test(arguments: Container.suites)
  func `the key moves from a file to a credential and is replaced, and the item stays`(suite: String) async throws {
    let (system, item) = try await systemWithItem(suite)
    try await system.shell("[ -e /var/lib/identityd/master.key ]")

    try await system.shell("identityd-setup-key")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("stat --format='%U %a' \(Self.key)") == "root 600")
    try await system.shell("[ ! -e /var/lib/identityd/master.key ]")

    let first = try await system.shell("sha256sum \(Self.key)")
    #expect(try await system.attempt("identityd-setup-key").status == 73)
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
  func `row 42: a key that cannot be decrypted costs the items and nothing else, until it can`(suite: String)
    async throws
  {
    let (system, item) = try await systemWithItem(suite)
    try await system.shell("identityd-setup-key")
    let device = try await system.shell("identityctl get device")
    let key = try await system.shell("sha256sum \(Self.key)")

    // Gone, and then another one: as on another machine.
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
      #expect(try await system.attempt("identityctl key rotate").status == 24)
      #expect(try await system.attempt("identityd-setup-key").status == 1)
      #expect(try await system.attempt("identityd-setup-key --rotate").status == 1)
      #expect(try await system.shell("sha256sum \(Self.key)") == key)
      #expect(try await credentials(on: system) == "identityd.key")
      try await system.shell("[ ! -e /var/lib/identityd/master.key ]")
    }

    // The unit of the key is tried again with each start of the daemon.
    try await system.shell("mv \(Self.hiddenHostKey) \(Self.hostKey); systemctl restart identityd.service")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
    #expect(try await system.shell("systemctl is-system-running") == "running")
  }

  /// Stands for a program that a script calls, and kills the script in place of the call with the number `$AT`.
  ///
  /// Here and below nothing in braces is expanded: `systemd-run` would do it, before the shell.
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

  /// Whether the item is there as it was; what was done before, where it is not.
  private static let checkItem = """
    check() { [ "$(\(readItem) 2>&1)" = "$item" ] || { echo "$1: no item after: $(cat /root/killer/killed)"; return 1; }; }
    restart() { systemctl reset-failed; systemctl restart identityd-key.service identityd.service; }
    item=$(\(readItem))
    """

  @Test(arguments: Container.suites)
  func `row 42b: no key is lost before whatever step its setup and its replacement are killed`(suite: String)
    async throws
  {
    let (system, _) = try await systemWithItem(suite)
    try await system.write(Self.killer, to: "/root/killer/step")
    // After each kill at first as after a reboot, with the files as they are, and then as after another run.
    let output = try await system.shell(
      """
      \(Self.checkItem)
      cd /root/killer
      chmod +x step; for program in mv rm systemctl systemd-creds identityctl; do ln -sf step $program; done
      for options in '' --rotate; do
        at=0
        while :; do
          at=$((at + 1))
          rm -f killed; echo 0 >number
          cp \(Self.key) before 2>/dev/null || : >before
          AT=$at PATH=/root/killer:$PATH setsid --wait identityd-setup-key $options >/dev/null 2>&1 || true
          [ -e killed ] || break
          restart
          check kill
          identityd-setup-key $options 2>errors || [ $? = 73 ] || { cat killed errors; exit 1; }
          check again
          identityctl status | grep -qx key=credential
          ! cmp --silent before \(Self.key) || { echo "still the same key after: $(cat killed)"; exit 1; }
          [ -z "$options" ] || continue
          systemctl stop identityd.socket identityd.service
          rm -rf \(Self.key)* /var/lib/identityd/*
          systemctl start identityd.socket identityd.service
          \(Self.putItem)
          item=$(\(Self.readItem))
        done
        restart
        check end
        echo "$at steps"
      done
      """)
    let steps = output.split(separator: "\n").compactMap { $0.firstMatch(of: /^(\d+) steps$/).flatMap { Int($0.1) } }
    #expect(steps.count == 2 && steps.allSatisfy { $0 > 8 }, "\(output)")
    #expect(try await credentials(on: system) == "identityd.key")
    try await system.shell("[ ! -e /var/lib/identityd/master.key ]")
  }

  @Test(arguments: Container.suites)
  func `nor is one lost at any moment in between`(suite: String) async throws {
    let (system, _) = try await systemWithItem(suite)
    // What it started is killed with it.
    let output = try await system.shell(
      """
      mkdir -p /root/killer
      \(Self.checkItem)
      identityd-setup-key 2>&1
      for moment in 02 05 08 11 14 17 20 23 26 29 32 35 38 41 44 47 50; do
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
  func `the unit that holds the key comes and goes with the daemon`(suite: String) async throws {
    let (system, _) = try await systemWithItem(suite)
    let unit = "identityd-key.service"
    try await system.shell("identityd-setup-key")
    #expect(try await system.property("UnitFileState", of: unit) == "static")
    #expect(try await system.property("MemorySwapMax") == "0")
    // It looks at identityd.service too, where systemd before 253 does not know a line.
    let complaints = try await system.shell("systemd-analyze verify --man=no \(unit) 2>&1")
    #expect(complaints.split(separator: "\n").filter { !$0.hasSuffix("ignoring: notify-reload") } == [])
    let holder = try await system.property("MainPID", of: unit)

    // A restart of the daemon asks no TPM2 for the key again.
    try await system.shell("systemctl restart identityd.service; systemctl kill --signal=KILL identityd.service")
    try await eventually("the daemon is back") { try await system.property("ActiveState") == "active" }
    #expect(try await system.property("MainPID", of: unit) == holder)

    try await system.shell("systemctl stop identityd.service")
    try await eventually("the key is gone") { try await system.property("ActiveState", of: unit) == "inactive" }
    try await system.shell("[ ! -e /run/credentials/\(unit) ]")

    // The daemon is what needs it; it comes back with the next start even where it was killed.
    #expect(try await keyInUse(on: system) == "credential")
    try await system.shell("systemctl kill --signal=KILL \(unit)")
    // Before systemd has noticed, a start finds it running.
    try await eventually("its end is noticed") { try await system.property("ActiveState", of: unit) == "failed" }
    try await system.shell("systemctl restart identityd.service")
    #expect(try await keyInUse(on: system) == "credential")
  }

  @Test(arguments: Container.suites)
  func `only root sets up a key, and with the daemon stopped only the first`(suite: String) async throws {
    let (system, item) = try await systemWithItem(suite)
    #expect(try await system.attempt("setpriv --reuid=nobody --clear-groups identityd-setup-key").status == 77)
    #expect(try await system.attempt("identityd-setup-key --sideways").status == 64)
    #expect(try await system.attempt("identityd-setup-key --rotate").status == 69)

    // The items that are there need the file until the setup is run again.
    try await system.shell("systemctl stop identityd.socket identityd.service; identityd-setup-key")
    #expect(try await system.attempt("identityd-setup-key --rotate").status == 69)
    try await system.shell("systemctl start identityd.socket")
    #expect(try await keyInUse(on: system) == "file")
    #expect(try await system.shell(Self.readItem) == item)
    try await system.shell("identityd-setup-key")
    #expect(try await keyInUse(on: system) == "credential")
    #expect(try await system.shell(Self.readItem) == item)
  }
}
