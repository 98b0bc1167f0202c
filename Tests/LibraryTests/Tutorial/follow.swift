import IdentityClient

/// Passes on the device identifier, now and after each change, until the task is cancelled.
func followDevice(with client: IdentityClient, _ hand: (IdentityUUID) async -> Void) async throws {
  for try await step in client.events(topics: .device) {
    switch step {
    case .following, .gap:
      // The answer reflects all earlier changes. Later changes arrive as events.
      await hand(try await client.ask(.identifier(.device)).uuid)
    case .event(let event):
      if let value = event["value"], let device = IdentityUUID(value) { await hand(device) }
    case .interrupted(let why):
      log("waiting for identityd: \(why)")
    }
  }
}
