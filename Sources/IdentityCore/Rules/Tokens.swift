// Push tokens: an app has one token per provider on this device (identityd-protocol(7), section "PUSH TOKENS").

extension RegistryCommand {
  package static func putToken(_ registration: consuming TokenRegistration, app: consuming Text?) -> Self {
    Self(PutTokenRule(registration: registration, namedApp: app))
  }
  package static func getToken(provider: Text, app: Text?) -> Self {
    Self(GetTokenRule(provider: provider, namedApp: app))
  }
  package static func listTokens(_ owners: TokenOwners, stale: Int64?) -> Self {
    Self(ListTokensRule(owners: owners, stale: stale))
  }
  package static func invalidateToken(provider: Text, value: Text, app: Text?) -> Self {
    Self(InvalidateTokenRule(provider: provider, value: value, namedApp: app))
  }
  package static func deleteToken(provider: Text, app: Text?, dryRun: Bool = false) -> Self {
    Self(DeleteTokenRule(provider: provider, namedApp: app, dryRun: dryRun))
  }
}

// MARK: - Rules

/// `token put`: registers a token for the app.
struct PutTokenRule: ChangeRule {
  let registration: TokenRegistration
  let namedApp: Text?
  var basis: Basis { Basis(found: .tokens) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let app = try registry.app(named: namedApp, by: peer)
    guard let context else { return nil }
    let (device, changes) = try registry.device(forTokenOf: app, context)
    let before = registry.tokens[app, registration.provider]
    let isLeft = before.map { $0.device != device && registry.isLeft($0) } ?? false
    if isLeft, let before, before.value == registration.value, !registration.isRenewed {
      return Decision(reply: before.refusalOfCopy)
    }
    if before == nil { try registry.requireRoomForToken(of: app) }
    let outcome = before?.outcome(of: registration, isLeft: isLeft) ?? .created
    let same = before.flatMap { $0.value == registration.value ? $0 : nil }
    let token = Token(
      number: before?.number ?? registry.tokens.lastNumber + 1, app: app, provider: registration.provider,
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
}

/// `token get`: returns the app's token of a provider.
struct GetTokenRule: QueryRule {
  let provider: Text
  let namedApp: Text?
  var basis: Basis { Basis(found: .tokens) }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    var reply = Reply()
    reply.ok()
    let token = try registry.token(of: provider, try registry.app(named: namedApp, by: peer))
    token.describe(to: &reply, isLeft: registry.isLeft(token))
    return reply
  }
}

/// `token list`: returns tokens. `stale` is the minimum number of seconds since a token was last confirmed, if given.
struct ListTokensRule: QueryRule {
  let owners: TokenOwners
  let stale: Int64?
  var basis: Basis { Basis(whole: .tokens) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let search: Search<TokenBlocks>
    let latest = stale.map { surroundings.now().milliseconds - $0 * 1_000 } ?? .max
    search = Search(try registry.tokens(of: owners, for: peer)) { $0.confirmed.milliseconds <= latest }
    let copy = registry.leftDevices.isEmpty ? nil : registry
    return .rows(of: search) { $0.describe(to: &$1, isLeft: copy?.isLeft($0) ?? false) }
  }
}

/// `token invalidate`: marks a token that the provider refuses.
struct InvalidateTokenRule: ChangeRule {
  let provider: Text
  let value: Text
  let namedApp: Text?
  var basis: Basis { Basis(found: .tokens) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let app = try registry.app(named: namedApp, by: peer, orBy: .fleet)
    guard let token = registry.tokens[app, provider], token.value == value else {
      return Decision(reply: .done(.string("unchanged")))
    }
    let reply = Reply.done(.string("invalidated"))
    guard token.isValid, !registry.isLeft(token) else { return Decision(reply: reply) }
    guard let context else { return nil }
    let invalid = token.with(isValid: false, changed: context.now)
    return Decision(changes: [.tokenStored(invalid, .invalidated)], reply: reply)
  }
}

/// `token delete`: deletes the app's token of a provider, or shows it.
struct DeleteTokenRule: ChangeRule {
  let provider: Text
  let namedApp: Text?
  let dryRun: Bool
  var basis: Basis { Basis(found: .tokens) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let token = try registry.token(of: provider, try registry.app(named: namedApp, by: peer))
    guard !dryRun else {
      let (isOwn, isLeft) = (token.app == peer.app, registry.isLeft(token))
      return Decision(
        reply: .rows([token]) { token, reply in
          token.describe(to: &reply, isLeft: isLeft)
          reply.attribute("own", isOwn ? nil : .yesOrNo(false))
        })
    }
    return context == nil ? nil : Decision(changes: [.tokenDeleted(token)], reply: .done)
  }
}

// MARK: - Tokens

extension Registry {
  fileprivate func tokens(of owners: TokenOwners, for peer: Peer) throws(Refusal) -> TokenBlocks {
    switch owners {
    case .app(let named): return tokens.blocks(of: try app(named: named, by: peer))
    case .all:
      try require(.fleet, of: peer)
      return tokens.blocks
    case .page(let app, let limit):
      try require(.fleet, of: peer)
      return tokens.page(after: app, limit: limit)
    }
  }

  fileprivate func token(of provider: Text, _ app: Text) throws(Refusal) -> Token {
    guard let token = tokens[app, provider] else { throw .notFound("\(app) has no token of this provider") }
    return token
  }

  /// Returns the device identifier for a token, so that senders know the device. Makes the identifier if there is none.
  fileprivate func device(forTokenOf app: Text, _ context: Context) throws(Refusal) -> (UUID, [Change]) {
    let installed = apps[app]
    let scope = deviceScope(of: app, installed)
    if case .some = installed, let device = self[scope]?.value { return (device, []) }
    var plan = Plan(self)
    if let change = try firstUse(of: app, context) { plan.add(change) }
    if self[scope] == nil { plan.put(try fresh(scope, cause: .firstUse, context)) }
    guard let device = plan.registry[scope]?.value else { throw .broken("the device has no identifier") }
    return (device, plan.changes)
  }

  fileprivate func requireRoomForToken(of app: Text) throws(Refusal) {
    guard tokens.count < Bound.tokens else {
      throw .limit("all apps together have reached the limit of tokens; delete tokens first")
    }
    guard sharers(of: app).reduce(0, { $0 + tokens.count(of: $1) }) < Bound.tokensPerApp else {
      throw .limit("\(holder(of: app)) has \(Bound.tokensPerApp) tokens, which is the limit; delete a token first")
    }
  }
}

extension Token {
  /// Returns the change that a registration by the app makes to the token.
  ///
  /// - Parameter isLeft: whether a renewal left the token to another machine.
  fileprivate func outcome(of registration: TokenRegistration, isLeft: Bool) -> TokenChange {
    let isSame =
      isValid && !isLeft && value == registration.value && environment == registration.environment
      && topic == registration.topic
    return isSame ? .confirmed : .replaced
  }

  /// The answer to an app that puts a token which was left to another machine, as apps do at each launch.
  fileprivate var refusalOfCopy: Reply {
    var reply = Reply.done(.text(.unchanged))
    reply.attribute("device", .uuid(device))
    reply.attribute("state", .string("invalid"))
    reply.attribute("reason", .string("copied"))
    return reply
  }

  /// - Parameter isLeft: whether a renewal left the token to another machine.
  fileprivate func describe(to reply: inout Reply, isLeft: Bool) {
    reply.word(.text(value))
    reply.attribute("provider", .text(provider))
    reply.attribute("app", .text(app))
    reply.attribute("device", .uuid(device))
    reply.attribute("environment", environment.map(Reply.Value.text))
    reply.attribute("topic", topic.map(Reply.Value.text))
    reply.attribute("state", .string(isValid && !isLeft ? "valid" : "invalid"))
    reply.attribute("reason", isLeft ? .string("copied") : nil)
    reply.attribute("created", .time(created))
    reply.attribute("changed", .time(changed))
    reply.attribute("confirmed", .time(confirmed))
  }
}

extension TokenChange {
  /// The name of the event; nil if no event is published.
  var eventName: Text? {
    switch self {
    case .created: .created
    case .replaced: .replaced
    case .invalidated, .copied: .invalidated
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
  ///
  /// A token that an earlier renewal left to another machine stays with that one, or is valid again under the identifier
  /// of then.
  ///
  /// - Parameters:
  ///   - previous: the identifier of before; nil if there was none.
  ///   - course: whether another machine may have the tokens under the identifier of before.
  mutating func moveTokens(of scope: Scope, from previous: UUID?, as course: Course) {
    guard let device = registry[scope]?.value, device != previous else { return }
    let tokens = scope.app.map { registry.tokens.tokens(of: $0) } ?? Array(registry.tokens.all)
    for token in tokens where registry.deviceScope(of: token.app) == scope {
      if token.device == device {
        if let previous { add(.tokenStored(token, .rehomed(from: previous))) }
      } else if registry.mayMove(token, from: previous) {
        if course == .copy { add(.tokenStored(token, .copied)) } else { rehome(token, to: device) }
      }
    }
  }

  /// Assigns the tokens of an app to the device identifier that the app sees after a change of its manifest. If there is
  /// none yet, making it moves the tokens.
  ///
  /// - Parameter previous: the identifier that the app saw before.
  mutating func moveTokens(of app: Text, from previous: UUID?) {
    guard let device = registry[registry.deviceScope(of: app)]?.value, device != previous else { return }
    for token in registry.tokens.tokens(of: app)
    where token.device != device && registry.mayMove(token, from: previous) { rehome(token, to: device) }
  }

  /// Assigns a token to another device identifier.
  mutating func rehome(_ token: Token, to device: UUID) {
    add(.tokenStored(token.with(device: device), .rehomed(from: token.device)))
  }

  /// Deletes all tokens of an app.
  mutating func deleteTokens(of app: Text) {
    for token in registry.tokens.tokens(of: app) { add(.tokenDeleted(token)) }
  }
}
