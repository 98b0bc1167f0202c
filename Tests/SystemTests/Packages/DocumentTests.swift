import TestSupport
import Testing

/// The documented commands for administrators, on a real system.
extension SystemTests {
  /// A substitute for `sudo`: in the container, everything runs as root.
  private static let asRoot = "sudo() { \"$@\"; }"
  /// Reads the passphrase from a file. PassphrasePromptTests covers the prompt at a terminal.
  private static let withPassphrase = "--passphrase-fd=3 3</root/passphrase"

  @Test(arguments: Container.oldest)
  func `the documented installation gives an answer`(suite: String) async throws {
    let system = try await Container.ready(suite)
    // At a terminal, because the command shows the recovery key.
    let commands = try Document(.readme).commands(of: "installation").map { command in
      command.hasPrefix("sudo identityd-setup-key")
        ? "script --quiet --return --command identityd-setup-key /dev/null" : command
    }
    // This command has built the package under test.
    #expect(commands.first == "packaging/tools/build-deb")
    #expect(commands.count > 3)
    let output = try await system.shell(
      """
      \(Container.purge)
      mkdir -p /root/checkout/.build/deb
      cd /root/checkout
      field() { dpkg-deb --field $package $1; }
      for package in \(Container.packages)/*.deb; do
        ln -sf $package .build/deb/$(field Package)_$(field Version)_$(field Architecture).deb
      done
      \(Self.asRoot)
      \(commands.dropFirst().joined(separator: "\n"))
      """)
    let device = try await system.shell("identityctl get device")
    #expect(output.contains(device), "\(output)")
    #expect(try await system.shell("identityctl status").contains("\nmaster-key=credential\n"))
  }

  @Test(arguments: Container.oldest)
  func `the documented copy of the state directory brings everything back`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let copy = try Document(.manual).commands(of: "copy")
    #expect(copy.count == 3)
    try await system.shell("rm -rf /root/identityd.copy\n" + copy.joined(separator: "\n"))
    #expect(try await system.identifiers() == identifiers)
    try await system.shell("systemd-run --quiet --scope identityctl renew installation --yes")
    #expect(try await system.identifiers() != identifiers)

    let bringBack = try Document(.manual).commands(of: "return of a copy").joined(separator: "\n")
    // With a wrong path, they change nothing, even if the shell goes on after a failure.
    let present = try await system.identifiers()
    let wrong = try await system.attempt(bringBack.replacing("/root/identityd.copy", with: "/root/no.copy"))
    #expect(wrong.status != 0)
    #expect(try await system.identifiers() == present)
    let damaged = "/var/lib/identityd.damaged"
    try await system.shell("rm -rf \(damaged)\n\(bringBack)")
    #expect(try await system.identifiers() == identifiers)
    try await system.shell("rm -rf \(damaged)\n" + Document(.manual).commands(of: "start over").joined(separator: "\n"))
    #expect(try await system.identifiers() != identifiers)
    try await system.shell("rm -rf \(damaged)\n\(bringBack)\nrm -rf \(damaged)")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.newest)
  func `the documented golden image is another machine when it starts`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let commands = try Document(.manual).commands(of: "image")
    // A container that is powered off loses its disk.
    #expect(commands.last == "poweroff")
    try await system.shell(commands.dropLast().joined(separator: "\n"))
    try await system.reboot()
    let others = try await system.identifiers()
    #expect(others.device != identifiers.device)
    #expect(others.installation != identifiers.installation)
  }

  @Test(arguments: Container.oldest)
  func `the documented timer collects figures`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("install --directory \(Self.metricsFolder)")
    try await system.shell(try Document(.manual).commands(of: "metrics").joined(separator: "\n"))
    #expect(try await system.property("ActiveState", of: "identityd-metrics.timer") == "active")
    try await system.shell("systemctl start identityd-metrics.service; systemctl disable --now identityd-metrics.timer")
    #expect(try await system.property("Result", of: "identityd-metrics.service") == "success")
    try await system.shell("[ -s \(Self.metricsFolder)/identityd.prom ]; rm -r /var/lib/prometheus")
  }

  @Test(arguments: Container.oldest)
  func `each command in the OPERATIONS section of the manual answers`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let device = try await system.shell(
      """
      echo "battery staple" >/root/passphrase
      identityd-setup-key --no-recovery-key || [ $? = 73 ]
      systemd-run --quiet --scope identityctl version report 1.0 app=user:0
      printf secret | systemd-run --quiet --scope identityctl item put service=s account=a --data-file=/dev/stdin
      rm -f /root/identityd.backup
      identityctl backup /root/identityd.backup \(Self.withPassphrase)
      identityctl get device
      """
    ).split(separator: "\n").last
    let commands = try Document(.manual).commands(below: "OPERATIONS")
    #expect(commands.count > 20)
    for command in commands {
      var line = command.replacing("UUID", with: device ?? "").replacing("app=ID", with: "app=user:0")
      if line.contains("FILE") {
        line = line.replacing("FILE", with: "/root/identityd.backup") + " \(Self.withPassphrase)"
      }
      // There is no terminal to ask at.
      if line.hasPrefix("identityctl ") { line = "identityctl --yes" + line.dropFirst("identityctl".count) }
      // `monitor` does not end by itself.
      if line.contains("monitor") { line = "timeout 2 \(line) || [ $? = 124 ]" }
      let outcome = try await system.attempt(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
      if command == "identityctl status" { #expect(outcome.output.contains("\nstore=ok\n"), "\(outcome.output)") }
    }
  }
}
