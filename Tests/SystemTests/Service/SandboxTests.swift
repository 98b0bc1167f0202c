import TestSupport
import Testing

/// The sandboxes of the services, which must be as tight as the jobs of the services allow.
extension SystemTests {
  /// The services that run for as long as the system.
  private static let services = ["identityd.service", "identityd-key.service"]

  /// The highest exposure that `systemd-analyze security` may find, in tenths.
  private static let exposure = 5
  /// The exposure of a service that reads every file as root, and writes none.
  private static let exposureOfChecks = 12
  /// The exposure of a service that writes to one folder as root, with any owner.
  private static let exposureOfMetrics = 10
  /// The exposure of a service that writes to its own folder as root, without a capability.
  private static let exposureOfDiscovery = 7
  /// The exposure of a service that deletes files of another user as root.
  private static let exposureOfReset = 12
  /// The exposure of a service that reads the journal as root, without a capability.
  private static let exposureOfResumptions = 7

  @Test(arguments: Container.suites)
  func `row 52: the sandbox of each shipped service meets the exposure limit`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let shipped = try await system.shell("dpkg --listfiles identityd | sed -n 's|^.*/\\([^/]*\\.service\\)$|\\1|p'")
      .split(separator: "\n").map(String.init)
    #expect(Set(shipped).isSuperset(of: Self.services), "\(shipped)")
    for unit in shipped {
      let most =
        switch unit {
        case "identityd-check.service": Self.exposureOfChecks
        case "identityd-metrics.service": Self.exposureOfMetrics
        case "identityd-discovery.service": Self.exposureOfDiscovery
        case "identityd-factory-reset.service": Self.exposureOfReset
        case "identityd-resumed.service": Self.exposureOfResumptions
        default: Self.exposure
        }
      let found = try await system.attempt(
        "systemd-analyze security --offline=true --no-pager --threshold=\(most) \(unit)")
      #expect(found.status == 0, "\(unit): \(found.output.split(separator: "\n").last ?? "")")
    }
  }

  /// Starts a service and returns its main process ID.
  private func process(of unit: String, on system: Container) async throws -> String {
    try await system.shell("systemctl start \(unit)")
    let process = try await system.property("MainPID", of: unit)
    try #require(Int(process) ?? 0 > 1, "\(unit)")
    return process
  }

  @Test(arguments: Container.suites)
  func `row 52: only the service's own programs can be executed in its sandbox`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let allowed = [
      "identityd.service": ["/usr/sbin/identityd --version", "/bin/sh -c true"],
      "identityd-key.service": ["/bin/sleep 0"],
    ]
    for unit in Self.services {
      let process = try await process(of: unit, on: system)
      // In the mount namespace of the service.
      let inside = "nsenter --target=\(process) --mount"
      let programs = try #require(allowed[unit])
      for program in programs { try await system.shell("\(inside) \(program)") }
      let others = Set(allowed.values.joined()).subtracting(programs)
        .union(["/usr/bin/true", "/usr/bin/identityctl", "/usr/sbin/identityd-setup-key", "/usr/bin/perl -e 1"])
      for program in others { try await expectRefusal(of: program, inside, on: system) }
      // Folders that the service may write to, and folders that systemd mounts for it.
      for folder in [
        "/run", "/tmp", "/var/tmp", "/dev/shm", "/etc/identityd", "/var/lib/identityd", "/var/lib", "/opt",
      ] {
        let seen = "/proc/\(process)/root\(folder)/program"
        // A folder that the service sees read-only is written from outside.
        try await system.shell(
          """
          cp /usr/bin/true \(seen) 2>/dev/null || cp /usr/bin/true \(folder)/program
          chmod 755 \(seen) 2>/dev/null || chmod 755 \(folder)/program
          [ -s \(seen) ]
          """)
        try await expectRefusal(of: "\(folder)/program", inside, on: system)
        try await system.shell("rm -f \(seen) 2>/dev/null || true; rm -f \(folder)/program")
      }
    }
  }

  /// Checks that a program exists and cannot be executed.
  private func expectRefusal(of program: String, _ inside: String, on system: Container) async throws {
    let refused = try await system.attempt("\(inside) \(program)")
    #expect(refused.status == 126 && refused.errors.contains("Permission denied"), "\(inside) \(program): \(refused)")
  }

  @Test(arguments: Container.suites)
  func `row 52: io_uring cannot be reached from the sandboxes, and the bus from one only`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let bus = "/run/dbus/system_bus_socket"
    try await system.shell("[ -S \(bus) ]")
    for unit in Self.services {
      let process = try await process(of: unit, on: system)
      // The daemon asks the bus for the users of units, and is connected with it only then.
      let sees = unit == "identityd.service" ? "-S" : "! -e"
      try await system.shell("[ -d /proc/\(process)/root/run ] && [ \(sees) /proc/\(process)/root\(bus) ]")
      #expect(try await system.shell("busctl list | awk '$2 == \(process)'") == "")
      let calls = Set(try await system.property("SystemCallFilter", of: unit).split(separator: " "))
      #expect(calls.contains("read") && calls.isDisjoint(with: ["io_uring_setup", "io_uring_enter", "io_submit"]))
      #expect(calls.isDisjoint(with: ["io_uring_register", "mount", "chown"]), "\(unit)")
      #expect(try await system.shell("grep '^Seccomp:' /proc/\(process)/status").hasSuffix("2"))
    }
  }

  @Test(arguments: Container.suites)
  func `user names are resolved without the bus, even those that only systemd knows`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      "systemd-run --quiet --unit=lasting --property=DynamicUser=yes --property=User=passing sleep infinity")
    try await system.write("[App]\nUser=passing", to: "\(Container.manifests)/org.example.passing.app")
    try await system.write("[App]\nUser=daemon", to: "\(Container.manifests)/org.example.staying.app")
    // This reason shows that the name was found.
    try await eventually("both manifests are read") {
      let faults = try await system.shell("identityctl status | grep manifest-fault || true")
      let apps = try await system.shell("identityctl app list")
      return faults.contains("passing is a dynamic user") && apps.contains("org.example.staying")
    }
    #expect(try await system.whoami("--uid=daemon --unit=staying").app == "org.example.staying")
    try await system.shell("systemctl stop lasting.service; rm \(Container.manifests)/org.example.*.app")
  }

  @Test(arguments: Container.suites)
  func `the memory of the daemon is limited`(suite: String) async throws {
    let system = try await Container.ready(suite)
    #expect(try await system.property("MemoryMax") == "\(20 << 30)")
    #expect(try await system.property("MemorySwapMax") == "0")
  }
}
