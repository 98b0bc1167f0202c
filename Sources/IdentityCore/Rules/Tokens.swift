// Push tokens: an app has one token per provider on this device (identityd-protocol(7), section "PUSH TOKENS").

// MARK: - Rules

extension Registry {
  /// Applies the rule of `token …`.
  func rule(_ command: TokenCommand, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    switch command {
    case .put(let registration, let named):
      let app = try app(named: named, by: peer)
      guard let context else { return nil }
      return try put(registration, of: app, context)
    case .get(let provider, let named):
      var reply = Reply()
      reply.ok()
      Self.describe(try token(of: provider, try app(named: named, by: peer)), to: &reply)
      return Decision(reply: reply)
    case .list(let owners, let stale):
      let tokens = try tokens(of: owners, for: peer)
      guard let stale else { return .rows(tokens, Self.describe) }
      let now = surroundings.now()
      return .rows(tokens.filter { now.milliseconds - $0.confirmed.milliseconds >= stale * 1_000 }, Self.describe)
    case .invalidate(let provider, let value, let named):
      guard let token = tokens[try app(named: named, by: peer), provider], token.value == value else {
        return Decision(reply: .done(.string("unchanged")))
      }
      let reply = Reply.done(.string("invalidated"))
      guard token.isValid else { return Decision(reply: reply) }
      guard let context else { return nil }
      let invalid = token.with(isValid: false, changed: context.now)
      return Decision(changes: [.tokenStored(invalid, .invalidated)], reply: reply)
    case .delete(let provider, let named):
      let token = try token(of: provider, try app(named: named, by: peer))
      return context == nil ? nil : Decision(changes: [.tokenDeleted(token)], reply: .done)
    }
  }

  private func tokens(of owners: TokenOwners, for peer: Peer) throws(Refusal) -> [Token] {
    switch owners {
    case .app(let named): return tokens.tokens(of: try app(named: named, by: peer))
    case .all:
      guard peer.isAdmin else {
        throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to see the tokens of all apps")
      }
      return tokens.all
    }
  }

  private func token(of provider: Text, _ app: Text) throws(Refusal) -> Token {
    guard let token = tokens[app, provider] else { throw .notFound("\(app) has no token of this provider") }
    return token
  }

  @Sendable private static func describe(_ token: Token, to reply: inout Reply) {
    reply.word(.text(token.value))
    reply.attribute("provider", .text(token.provider))
    reply.attribute("app", .text(token.app))
    reply.attribute("device", .uuid(token.device))
    reply.attribute("environment", token.environment.map(Reply.Value.text))
    reply.attribute("topic", token.topic.map(Reply.Value.text))
    reply.attribute("state", .string(token.isValid ? "valid" : "invalid"))
    reply.attribute("created", .time(token.created))
    reply.attribute("changed", .time(token.changed))
    reply.attribute("confirmed", .time(token.confirmed))
  }
}

// MARK: - Changes

extension Registry {
  private func put(_ registration: TokenRegistration, of app: Text, _ context: Context) throws(Refusal) -> Decision {
    let (device, changes) = try device(forTokenOf: app, context)
    let before = tokens[app, registration.provider]
    if before == nil { try requireRoomForToken(of: app) }
    let outcome = before?.outcome(of: registration) ?? .created
    let same = before.flatMap { $0.value == registration.value ? $0 : nil }
    let token = Token(
      number: before?.number ?? tokens.lastNumber + 1, app: app, provider: registration.provider,
      value: registration.value, environment: registration.environment, topic: registration.topic, device: device,
      isValid: true, created: before?.created ?? context.now,
      changed: outcome == .confirmed ? before?.changed ?? context.now : context.now, confirmed: context.now,
      fingerprint: same?.fingerprint ?? context.fingerprint(registration.value))
    // A token that is only confirmed has no event.
    var reply = Reply.done(.text(outcome.eventName ?? .unchanged))
    reply.attribute("device", .uuid(device))
    if let before, same == nil { reply.attribute("previous", .text(before.value)) }
    let stored = Change.tokenStored(token, outcome)
    return Decision(changes: changes.isEmpty ? [stored] : changes + [stored], reply: reply)
  }

  /// Returns the device identifier for a token, so that senders know the device. Makes the identifier if there is none.
  private func device(forTokenOf app: Text, _ context: Context) throws(Refusal) -> (UUID, [Change]) {
    let installed = apps[app]
    let scope = deviceScope(of: app, installed)
    if case .some = installed, let device = self[scope]?.value { return (device, []) }
    var plan = Plan(self)
    if let change = try firstUse(of: app, context) { plan.add(change) }
    if self[scope] == nil { plan.put(try fresh(scope, cause: .firstUse, context)) }
    guard let device = plan.registry[scope]?.value else { throw .broken("the device has no identifier") }
    return (device, plan.changes)
  }

  private func requireRoomForToken(of app: Text) throws(Refusal) {
    guard tokens.count < Bound.tokens else {
      throw .limit("all apps together have reached the limit of tokens; delete tokens first")
    }
    guard sharers(of: app).reduce(0, { $0 + tokens.count(of: $1) }) < Bound.tokensPerApp else {
      throw .limit("\(app) has tokens of \(Bound.tokensPerApp) providers, which is the limit; delete a token first")
    }
  }
}

extension Token {
  /// Returns the change that a registration by the app makes to the token.
  fileprivate func outcome(of registration: TokenRegistration) -> TokenChange {
    let isSame =
      isValid && value == registration.value && environment == registration.environment && topic == registration.topic
    return isSame ? .confirmed : .replaced
  }
}

extension TokenChange {
  /// The name of the event; nil if no event is published.
  var eventName: Text? {
    switch self {
    case .created: .created
    case .replaced: .replaced
    case .invalidated: .invalidated
    case .rehomed: .rehomed
    case .confirmed: nil
    }
  }
}

// The event names, each created once.
extension Text {
  fileprivate static let created: Text = "created"
  fileprivate static let replaced: Text = "replaced"
  fileprivate static let invalidated: Text = "invalidated"
  fileprivate static let rehomed: Text = "rehomed"
  fileprivate static let unchanged: Text = "unchanged"
}

extension Plan {
  /// Assigns tokens to a new device identifier of a scope. Senders have to know the device by that identifier.
  mutating func rehomeTokens(of scope: Scope) {
    guard let device = registry[scope]?.value else { return }
    let tokens = scope.app.map { registry.tokens.tokens(of: $0) } ?? registry.tokens.all
    for token in tokens where token.device != device && registry.deviceScope(of: token.app) == scope {
      add(.tokenStored(token.with(device: device), .rehomed(from: token.device)))
    }
  }

  /// Deletes all tokens of an app.
  mutating func deleteTokens(of app: Text) {
    for token in registry.tokens.tokens(of: app) { add(.tokenDeleted(token)) }
  }
}
