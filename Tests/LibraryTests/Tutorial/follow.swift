import IdentityClient

/// Hands on which device this is, now and whenever that changes, until the task is cancelled.
func followDevice(with client: IdentityClient, _ hand: (IdentityUUID) async -> Void) async throws {
  for try await step in client.events(topics: .device) {
    switch step {
    case .following, .gap:
      // Whatever happened before is in the answer; whatever happens later comes as an event.
      await hand(try await client.ask(.identifier(.device)).uuid)
    case .event(let event):
      if let value = event["value"], let device = IdentityUUID(value) { await hand(device) }
    case .interrupted(let why):
      log("waiting for identityd: \(why)")
    }
  }
}
