import TestSupport
import Testing

/// Factory resets, images that do not run, and snapshots of a running machine.
extension SystemTests {
  private static let state = "/var/lib/identityd"
  private static let credentials = "/etc/credstore.encrypted"

  /// A damaged store cannot be sealed by its daemon, and has to be deleted all the same.
  private static let conditions = ["an intact store": "true", "a damaged store": "echo x >\(state)/identityd.db"]

  @Test(arguments: Container.suites, conditions.keys.sorted())
  func `a factory reset leaves no secret, and the next boot has other identifiers`(
    suite: String, condition: String
  ) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("\(Container.purge)\n\(Container.install)")
    try await system.shell("identityd-setup-key --no-recovery-key || [ $? = 73 ]")
    let identifiers = try await system.identifiers()
    try await system.shell("identityctl item put service=s account=a data=c2VjcmV0")
    // By mistake, nobody starts it.
    #expect(try await system.attempt("systemctl start identityd-factory-reset.service").status != 0)
    #expect(try await system.identifiers() == identifiers)
    if condition != "an intact store" { try await system.shell("systemctl stop identityd.service identityd.socket") }
    try await system.shell(try #require(Self.conditions[condition]))

    try await system.shell("systemctl start factory-reset.target")
    #expect(try await system.property("Result", of: "identityd-factory-reset.service") == "success")
    #expect(try await system.shell("ls -A \(Self.state)") == "sealed-here")
    #expect(try await system.shell("stat --format='%U %a' \(Self.state)/sealed-here") == "identityd 600")
    #expect(try await system.shell("ls -A \(Self.credentials)") == "")
    // No client starts the daemon before the reboot.
    #expect(try await system.attempt("identityctl get device").status == 3)

    try await system.reboot()
    let others = try await system.identifiers()
    #expect(others.device != identifiers.device && others.installation != identifiers.installation)
    #expect(try await system.attempt("identityctl item read service=s account=a").status != 0)
    #expect(try await system.shell("systemctl is-system-running") == "running")
    #expect(try await system.shell("identityctl check --quiet; echo $?") == "0")
  }

  @Test(arguments: Container.suites)
  func `a machine is given its device identifier for its first boot`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (device, other) = ("557e5958-d390-4cbf-b928-2a2b19a1399a", "0f8fad5b-d9cb-469f-a165-70867728950e")
    let ask = "identityctl get device"
    try await system.shell(
      "\(Container.purge)\nmkdir -p /etc/credstore; echo \(device) >/etc/credstore/identityd.device\n\(Container.install)"
    )
    #expect(try await system.shell(ask) == device)
    #expect(
      try await system.shell("systemctl start factory-reset.target; ls -A \(Self.state)") == "provisioned\nsealed-here")
    try await system.reboot()
    #expect(try await system.shell(ask) != device)
    // In a drop-in, which a credential of the system outweighs.
    try await system.write(
      "[Service]\nSetCredential=identityd.device:\(other)", to: "/run/systemd/system/identityd.service.d/test.conf")
    try await system.shell("rm /etc/credstore/identityd.device; systemctl daemon-reload")
    try await system.shell("identityctl --yes seal; systemctl restart identityd.service")
    #expect(try await system.shell(ask) == other)
    try await system.shell("rm -r /run/systemd/system/identityd.service.d; systemctl daemon-reload")
  }

  @Test(arguments: Container.suites)
  func `machines that boot from a sealed image are different ones, and a credential names one of them`(
    suite: String
  ) async throws {
    let image = try await Container.ready(suite)
    let given = "557e5958-d390-4cbf-b928-2a2b19a1399a"
    let sealed = try await image.identifiers()
    try await image.shell(
      """
      identityctl item put service=s account=a data=c2VjcmV0
      identityctl --yes seal
      systemctl stop identityd.socket identityd.service
      sync
      """)
    var devices: Set = [sealed.device]
    for credential in [nil, "identityd.device:\(given)"] {
      // The empty file of an image, for which systemd makes an identifier (machine-id(5)).
      try await image.withCopy(machineID: "", credential: credential) { machine in
        let identifiers = try await machine.identifiers()
        #expect(devices.insert(identifiers.device).inserted && identifiers.installation != sealed.installation)
        #expect((identifiers.device == given) == (credential != nil))
        #expect(try await machine.attempt("identityctl item read service=s account=a").status != 0)
        #expect(try await machine.shell("identityctl check --quiet; echo $?") == "0")
        // The next boot of the machine is no first one.
        try await machine.reboot()
        #expect(try await machine.identifiers() == identifiers)
      }
    }
    try await image.shell("systemctl start identityd.socket")
    #expect(devices.insert(try await image.identifiers().device).inserted)
  }

  @Test(arguments: Container.newest)
  func `the documented commands seal an image that is mounted`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("\(Container.purge)\n\(Container.install)")
    let identifiers = try await system.identifiers()
    // The image is a copy of the files that matter, as on another disk.
    try await system.shell(
      """
      systemctl stop identityd.socket identityd.service
      mount -t tmpfs image /mnt
      mkdir -p /mnt/var/lib /mnt/etc
      cp -a \(Self.state) /mnt/var/lib/
      cp /etc/machine-id /mnt/etc/
      systemctl start identityd.socket
      """)
    try await system.shell(Document(.manual).commands(of: "mounted image").joined(separator: "\n"))
    #expect(try await system.shell("ls -A /mnt\(Self.state); cat /mnt/etc/machine-id") == "sealed-here")
    // The system that seals the image is another one.
    #expect(try await system.identifiers() == identifiers)
    // In a container of the image, as tools that build images call it.
    try await system.shell(
      """
      rm -r /mnt/var/lib/identityd
      cp -a \(Self.state) /mnt/var/lib/
      rm /mnt/var/lib/identityd/lock
      for folder in usr bin lib lib64; do
        [ ! -e /$folder ] || { mkdir -p /mnt/$folder; mount --bind /$folder /mnt/$folder; }
      done
      mkdir -p /mnt/proc /mnt/dev /mnt/sys /mnt/run /mnt/tmp
      systemd-nspawn --quiet --register=no --keep-unit --pipe --directory=/mnt identityctl --root=/ --yes seal
      """)
    #expect(try await system.shell("ls -A /mnt\(Self.state)") == "")
    try await system.shell("umount --recursive /mnt")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `a report of a snapshot gives services other sessions`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // The unit is skipped in a container, without a fault.
    #expect(try await system.property("ActiveState", of: "identityd-resumed.service") == "inactive")
    #expect(try await system.property("ConditionResult", of: "identityd-resumed.service") == "no")
    #expect(try await system.property("Result", of: "identityd-resumed.service") == "success")
    #expect(try await system.shell("systemctl is-enabled identityd-resumed.service") == "enabled")

    // The sandbox lets journalctl wait for the kernel.
    let dropIn = "/run/systemd/system/identityd-resumed.service.d/test.conf"
    try await system.write("[Unit]\nConditionVirtualization=", to: dropIn)
    try await system.shell("systemctl daemon-reload; systemctl start identityd-resumed.service; sleep 3")
    #expect(try await system.property("SubState", of: "identityd-resumed.service") == "running")
    #expect(try await system.property("NRestarts", of: "identityd-resumed.service") == "0")
    try await system.shell("systemctl stop identityd-resumed.service")

    // A container has no kernel log, so this program tells the lines of one to the shipped unit.
    let folder = "/usr/local/lib/log"
    try await system.write(
      """
      #!/bin/sh
      echo "random: crng init done"
      echo "random: crng reseeded due to virtual machine fork"
      echo "x: random: crng reseeded due to virtual machine fork"
      exec sleep infinity
      """, to: "\(folder)/journalctl")
    try await system.write(
      "[Unit]\nConditionVirtualization=\n[Service]\nEnvironment=PATH=\(folder):/usr/bin:/bin",
      to: dropIn)
    let session =
      """
      asked=$(wc -l </run/asking)
      # The signal also reaches a child that the shell has just forked, and a loaded machine may lose the shell's own.
      for try in $(seq 300); do
        [ $((try % 50)) -ne 1 ] || systemctl kill --signal=USR1 asking.service
        sleep 0.1
        [ "$(wc -l </run/asking)" = "$asked" ] || break
      done
      tail -n 1 /run/asking
      """
    try await system.shell(
      """
      chmod 755 \(folder)/journalctl
      systemctl daemon-reload
      systemd-run --quiet --unit=asking sh -c 'trap "identityctl get session >>/run/asking" USR1
        >/run/asking; while :; do sleep 0.1; done'
      for try in $(seq 300); do [ -e /run/asking ] && break; sleep 0.1; done
      """)
    let before = try await system.shell(session)
    let told = "journalctl --unit=identityd --grep='The machine goes on from a snapshot' --output=cat | wc -l"
    try await system.shell("systemctl start identityd-resumed.service")
    try await eventually("the report of the snapshot") { try await system.shell(told) == "1" }
    #expect(try await system.shell(session) != before)
    #expect(try await system.property("NRestarts", of: "identityd-resumed.service") == "0")
    #expect(try await system.shell(told) == "1")
    try await system.shell(
      """
      systemctl stop identityd-resumed.service asking.service
      rm -r \(folder) /run/asking /run/systemd/system/identityd-resumed.service.d
      systemctl daemon-reload
      """)
  }
}
