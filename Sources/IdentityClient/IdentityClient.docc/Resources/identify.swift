import IdentityClient

/// The identity of a program, read when it starts.
struct Identity {
  let device: IdentityUUID
  let installation: IdentityUUID
  let app: String
}

/// Requests the identity of the calling program.
func identify(with client: IdentityClient) async throws(IdentityError) -> Identity {
  let device = try await client.ask(.identifier(.device))
  let installation = try await client.ask(.identifier(.installation))
  let peer = try await client.ask(.whoami)
  return Identity(device: device.uuid, installation: installation.uuid, app: peer.app)
}
