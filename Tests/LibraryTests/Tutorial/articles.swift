import IdentityClient

// The code blocks of the articles.

private func requests(_ client: IdentityClient, key: ItemPrimaryKey) async throws {
  let device = try await client.ask(.identifier(.device))
  log("\(device.uuid)")

  let request = IdentityRequest.readItem(key)
  let item = try await client.ask(request)
  log("\(item.entry.key)")
}

private func blocking() throws {
  var client = BlockingIdentityClient()
  let device = try client.ask(.identifier(.device)).uuid
  log("\(device)")
}

private func errors(_ client: IdentityClient, key: ItemPrimaryKey) async -> Secret? {
  do {
    return try await client.ask(.readItem(key)).secret
  } catch .refused(.notFound, _) {
    return nil
  } catch {
    log(error.isWorthRetrying ? "not now: \(error)" : "no password: \(error)")
  }
  return nil
}

private func position(_ client: IdentityClient, store: Store) async throws {
  for try await step in client.events(topics: .token, since: store.lastSequence, epoch: store.epoch) {
    switch step {
    case .event(let event):
      try await store.apply(event)
      store.lastSequence = event.sequence
    case .gap:
      try await store.replace(with: client.ask(.tokens()))
    case .following(let last, let epoch):
      store.lastSequence = last
      store.epoch = epoch
    case .interrupted:
      continue
    }
  }
}

private final class Store {
  var lastSequence: Int64? = nil
  var epoch: String? = nil
  func apply(_ event: IdentityEvent) async throws { log("\(event.sequence)") }
  func replace(with tokens: [PushToken]) async throws { log("\(tokens.count)") }
}
