import Foundation
import TestSupport
import Testing

/// The RPMs in a real system. The system is Debian, whose packages RPM does not know, so dependencies are not checked.
extension SystemTests {
  private static let rpms = "identityd identityd-client cockpit-identityd"
  private static let page = "/usr/share/cockpit/identityd"

  /// Builds a later release of the RPMs on this machine, and copies it into the system.
  private func bringLaterRelease(to system: Container) async throws -> String {
    let programs = try #require(Requirement.programs)
    let home = FileManager.default.temporaryDirectory.appending(path: "identityd-rpm-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: home) }
    try Data("%dist .later\n".utf8).write(to: home.appending(path: ".rpmmacros"))
    let built = try await run(
      checkout.appending(path: "packaging/tools/build-rpm"), ["--output", home.path],
      environment: ["HOME": home.path, "IDENTITYD_BIN_DIR": programs.path])
    let files = built.output.split(separator: "\n").map { URL(filePath: String($0)) }
    guard built.status == 0, files.count == 8 else { throw Failure(built.errors) }
    try await system.shell("rm -rf /root/later; mkdir /root/later")
    for file in files where Container.isForSystem(file) {
      try await system.copy(file, to: "/root/later/\(file.lastPathComponent)")
    }
    return "/root/later/*.rpm"
  }

  @Test(.needs(Requirement.missingForRPMs), .needs(Requirement.missingForPrograms), arguments: Container.oldest)
  func `the RPMs install, upgrade and remove like the Debian packages, but start nothing`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(Container.purge)
    do {
      try await liveThroughRPMs(on: system)
    } catch {
      // Other tests install to the same paths.
      try await system.shell(
        "rpm --erase --nodeps \(Self.rpms) || true; rm -rf /etc/identityd /var/lib/identityd")
      throw error
    }
  }

  private func liveThroughRPMs(on system: Container) async throws {
    try await system.shell("! getent passwd identityd")
    try await system.shell("rpm --install --nodeps \(Container.packages)/*.rpm")
    try await system.shell("systemctl daemon-reload")
    for unit in ["identityd.service", "identityd.socket"] {
      #expect(try await system.property("UnitFileState", of: unit) == "enabled")
      #expect(try await system.property("ActiveState", of: unit) == "inactive")
    }
    #expect(try await system.shell("stat --format='%U %G %a' /run/identityd") == "root root 755")
    #expect(try await system.shell("rpm --verify --nodeps \(Self.rpms)") == "")
    // The bridge of each user reads the page.
    try await system.shell("runuser -u nobody -- cat \(Self.page)/* >/dev/null")

    try await system.shell("systemctl start identityd.service")
    #expect(try await system.shell("stat --format='%U %G %a' /var/lib/identityd") == "identityd identityd 700")
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    let socket = try await system.shell("stat --format=%i /run/identityd/identityd.sock")
    try await system.shell("echo '# changed' >>/etc/identityd/identityd.conf")

    // An upgrade: a new daemon on the same socket, with the administrator's configuration.
    let later = try await bringLaterRelease(to: system)
    try await system.shell("rpm --upgrade --nodeps \(later)")
    let releases = try await system.shell("rpm --query --queryformat '%{RELEASE}\\n' \(Self.rpms) | uniq")
    #expect(releases == "1.later")
    #expect(try await system.property("ActiveState") == "active")
    #expect(try await system.property("MainPID") != daemon)
    #expect(try await system.shell("stat --format=%i /run/identityd/identityd.sock") == socket)
    #expect(try await system.shell("tail -n 1 /etc/identityd/identityd.conf") == "# changed")
    #expect(try await system.identifiers() == identifiers)

    // Removal: no process is left, and the state with its owner stays.
    try await system.shell("rpm --erase --nodeps \(Self.rpms)")
    #expect(try await system.attempt("systemctl is-active identityd.service identityd.socket").status != 0)
    for path in ["/run/identityd/identityd.sock", "/usr/sbin/identityd", "/usr/bin/identityctl", Self.page] {
      try await system.shell("[ ! -e \(path) ]")
    }
    #expect(try await system.shell("stat --format=%U /var/lib/identityd/identityd.db") == "identityd")
    try await system.shell("rm -f /etc/identityd/identityd.conf.rpmsave")

    // The Debian packages find the same state.
    try await system.shell(Container.install)
    #expect(try await system.identifiers() == identifiers)
    try await system.shell(Container.purge)
  }
}
