import Foundation
import TestSupport
import Testing

/// The RPM of `packaging/examples/app`, in a real system.
extension SystemTests {
  private static let app = "org.example.greeter"

  /// Builds the RPM as the head of its specification shows, and copies it into the system.
  private func bringRPM(_ version: String, to system: Container) async throws -> String {
    let folder = FileManager.default.temporaryDirectory.appending(path: "identityd-greeter-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let specification = checkout.appending(path: "packaging/examples/app/greeter.spec")
    let built = try await run(
      URL(filePath: "/usr/bin/env"),
      [
        "--chdir=\(specification.deletingLastPathComponent().path)", "rpmbuild", "-bb", "--build-in-place", "--define",
        "_topdir \(folder.path)", "--define", "version \(version)", specification.lastPathComponent,
      ])
    guard built.status == 0 else { throw Failure(built.errors) }
    let name = "greeter-\(version)-1.noarch.rpm"
    try await system.copy(folder.appending(path: "RPMS/noarch/\(name)"), to: "/root/\(name)")
    return "/root/\(name)"
  }

  private func installation(on system: Container) async throws -> String {
    let identifier = try await system.shell("identityctl get installation app=\(Self.app)")
    try await eventually("the service has the identifier of its app") {
      try await system.attempt("grep -qx 'Hello from \(identifier)' /run/greeter/greeting").status == 0
    }
    return identifier
  }

  @Test(.needs(Requirement.missingForRPMs), arguments: Container.oldest)
  func `an app in an RPM keeps its identifiers over an upgrade, and loses them with its removal`(
    suite: String
  ) async throws {
    let system = try await Container.ready(suite)
    let first = try await bringRPM("1.0", to: system)
    let later = try await bringRPM("1.1", to: system)
    do {
      try await system.shell("rpm --install --nodeps \(first)")
      try await waitForApp(on: system)
      let identifier = try await installation(on: system)

      try await system.shell("rpm --upgrade --nodeps \(later)")
      #expect(try await installation(on: system) == identifier)
      try await eventually("the service reports its version") {
        let report = "identityctl version state app=\(Self.app) | grep -qx 'upgraded 1.1'"
        return try await system.attempt(report).status == 0
      }

      try await system.shell("rpm --erase --nodeps greeter")
      #expect(try await system.attempt("systemctl is-active greeter.service").status != 0)
      // The app is not even suspended.
      #expect(!(try await system.shell("identityctl --json app list")).contains(Self.app))

      try await system.shell("rpm --install --nodeps \(later)")
      try await waitForApp(on: system)
      #expect(try await installation(on: system) != identifier)
      try await system.shell("rpm --erase --nodeps greeter")
    } catch {
      // Other tests install to the same paths.
      try await system.shell("rpm --erase --nodeps greeter || true")
      throw error
    }
  }

  private func waitForApp(on system: Container) async throws {
    try await eventually("the app is installed") {
      try await system.shell("identityctl app list").contains(Self.app)
    }
  }
}
