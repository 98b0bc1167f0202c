import IdentityClient

/// Reports the version that runs, and calls `afterUpgrade` once for each upgrade.
func start(
  version: String, with client: IdentityClient, afterUpgrade: () async throws -> Void
) async throws {
  let report = try await client.ask(.reportVersion(version))
  guard report.state == .upgraded else { return }
  // Only one of all processes of the app gets true.
  if try await client.ask(.claim("after-upgrade")) { try await afterUpgrade() }
}
