import IdentityClient

/// Reports the version that runs, and runs what has to be run once for each new one.
func start(
  version: String, with client: IdentityClient, afterUpgrade: () async throws -> Void
) async throws {
  let report = try await client.ask(.reportVersion(version))
  guard report.state == .upgraded else { return }
  // Of all processes of the app, one is told to.
  if try await client.ask(.claim("after-upgrade")) { try await afterUpgrade() }
}
