import TestSupport
import Testing

/// Manifests that a mount brings: a system extension, a configuration extension, and a /usr/local of its own.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `the apps of a system extension are installed when it is merged`(suite: String) async throws {
    try await watchExtension("sysext", manifests: "/usr/lib/identityd/apps.d", suite)
  }

  // systemd-confext is new in systemd 254.
  @Test(arguments: Container.newest)
  func `the apps of a configuration extension are installed when it is merged`(suite: String) async throws {
    try await watchExtension("confext", manifests: "/etc/identityd/apps.d", suite)
  }

  private func watchExtension(_ kind: String, manifests: String, _ suite: String) async throws {
    let system = try await Container.ready(suite)
    let image = kind == "sysext" ? "/run/extensions/apps" : "/run/confexts/apps"
    let release = "\(image)\(kind == "sysext" ? "/usr/lib" : "/etc")/extension-release.d"
    try await system.shell(
      """
      mkdir -p \(image)\(manifests) \(release)
      grep -E '^(ID|VERSION_ID)=' /etc/os-release >\(release)/extension-release.apps
      printf '[App]\\nUnit=brought.service\\n' >\(image)\(manifests)/org.example.brought.app
      """)
    for _ in 0..<2 {
      try await system.shell("systemd-\(kind) merge")
      try await apps(["org.example.brought"], areInstalled: true, on: system)
      try await system.shell("systemd-\(kind) unmerge")
      try await apps(["org.example.brought"], areInstalled: false, on: system)
    }
    let since = try await system.now()
    let written = "\(manifests)/org.example.written.app"
    try await system.shell("mkdir -p \(manifests); printf '[App]\\nUnit=written.service\\n' >\(written)")
    try await apps(["org.example.written"], areInstalled: true, on: system)
    try await system.shell("systemd-\(kind) merge")
    try await apps(["org.example.brought", "org.example.written"], areInstalled: true, on: system)
    let journal = try await system.journal(since: since)
    #expect(!journal.contains { $0.contains("org.example.written is suspended") }, "\(journal)")
    try await system.shell("systemd-\(kind) unmerge; rm -r \(image) \(written)")
    try await apps(["org.example.brought", "org.example.written"], areInstalled: false, on: system)
  }

  @Test(arguments: Container.suites)
  func `the apps of a file system that is mounted late are installed`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.write(
      """
      [Mount]
      What=tmpfs
      Where=/usr/local
      Type=tmpfs
      """, to: "/run/systemd/system/usr-local.mount")
    try await system.shell("systemctl daemon-reload; systemctl start usr-local.mount")
    // A folder of the new file system is watched, too.
    try await system.shell("mkdir -p /usr/local/lib/identityd/apps.d")
    try await system.write("[App]\nUnit=late.service", to: "/usr/local/lib/identityd/apps.d/org.example.late.app")
    try await apps(["org.example.late"], areInstalled: true, on: system)
    try await system.shell("systemctl stop usr-local.mount")
    try await apps(["org.example.late"], areInstalled: false, on: system)
    try await system.shell("rm /run/systemd/system/usr-local.mount; systemctl daemon-reload")
  }

  private func apps(_ apps: [String], areInstalled: Bool, on system: Container) async throws {
    try await eventually("\(apps) are \(areInstalled ? "installed" : "gone")") {
      // One object for each app.
      let list = try await system.shell("identityctl --json app list").split(separator: "}")
      let inForce = list.filter { !$0.contains("\"suspended\"") }
      return apps.allSatisfy { app in inForce.contains { $0.contains("\"\(app)\"") } == areInstalled }
    }
  }
}
