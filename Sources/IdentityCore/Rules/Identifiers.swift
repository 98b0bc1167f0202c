// The rules of stored identifiers: get, renew, history, resolve (identityd-protocol(7), section "IDENTIFIERS").
extension RegistryCommand {
  package static func get(_ level: Level, app: Text?) -> Self { Self(GetRule(level: level, namedApp: app)) }
  package static func renew(_ level: Level, app: Text?, dryRun: Bool, replaces: Bool = false) -> Self {
    Self(RenewRule(level: level, namedApp: app, dryRun: dryRun, replaces: replaces))
  }
  package static func history(_ level: Level, app: Text?) -> Self { Self(HistoryRule(level: level, namedApp: app)) }
  package static func resolve(_ value: UUID) -> Self { Self(ResolveRule(value: value)) }
}

// MARK: - Rules

/// `get LEVEL`: returns the identifier in force. Without one, installs the app if this is its first use, and makes the
/// identifier.
struct GetRule: ChangeRule {
  let level: Level
  let namedApp: Text?
  var basis: Basis { Basis(found: [.apps, .identifiers]) }
  var answerKind: AnswerKind { .standing }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let id = try registry.app(named: namedApp, by: peer)
    let scope = registry.scope(level, app: id)
    if let identifier = registry[scope] { return Decision(reply: registry.describe(identifier)) }
    guard let context else { return nil }
    var plan = Plan(registry)
    if level != .device, let change = try registry.firstUse(of: id, context) { plan.add(change) }
    let identifier = try registry.fresh(scope, cause: .firstUse, context)
    plan.put(identifier)
    return Decision(changes: plan.changes, reply: plan.registry.describe(identifier))
  }
}

/// `renew LEVEL`: replaces the identifier, if any, with a random one. A dry run lists the identifiers to replace.
///
/// While this machine may be a copy, its former device identifier stays that of the original, which keeps its place in
/// the account; see ``Plan/put(_:as:)``.
package struct RenewRule: ChangeRule {
  let level: Level
  package let namedApp: Text?
  package let dryRun: Bool
  /// Whether the former device identifier ends although this machine may be a copy: it is the original.
  let replaces: Bool
  package var right: Right? { .fleet }
  package var basis: Basis { Basis(whole: [.apps, .identifiers]) }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    // A dry run names the other apps whose identifiers would change.
    guard peer.isAdmin || level == .device && !dryRun && !replaces else {
      throw .denied(
        app: peer.app, userID: peer.userID,
        grant: "admin rights for another level than device, and for dry-run=yes and replaces=yes")
    }
    let id = try registry.app(named: namedApp, by: peer)
    guard level == .device || registry.apps[id] != nil else { throw .notFound("\(id) is not installed") }
    let scope = registry.scope(level, app: id)
    if dryRun { return Decision(reply: registry.renewal(of: scope)) }
    guard let context else { return nil }
    var plan = Plan(registry)
    let previous = registry[scope]?.value
    let suspicion = scope == .device ? registry.machine?.suspicion : nil
    let course: Course = suspicion != nil && !replaces ? .copy : .same
    if course == .copy { try plan.identifyOriginal(at: context.now, context.random) }
    for renewed in registry.renewed(with: scope) {
      plan.put(
        Identifier(
          scope: renewed, value: try context.random(), created: context.now, origin: .random,
          cause: suspicion?.cause == .cloned ? .cloned : .renewed,
          author: context.peer?.author), as: course)
    }
    if scope == .device { plan.endSuspicion() }
    if replaces, scope == .device { plan.regain(nil) }
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(plan.registry[scope]?.value ?? .zero))
    reply.attribute("previous", previous.map(Reply.Value.uuid) ?? .string(""))
    return Decision(changes: plan.changes, reply: reply)
  }
}

/// `history LEVEL`: lists the identifiers with their periods and the causes of their changes.
struct HistoryRule: QueryRule {
  let level: Level
  let namedApp: Text?
  var basis: Basis { Basis(whole: [.apps, .identifiers]) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    // If an app is gone, only its installation scope is still known. The manifest determined its other scopes.
    let app = try registry.app(named: namedApp, by: peer, remembered: level == .installation)
    // The order of the changes, which is independent of the clock.
    let history = registry.history
    return .rows(history.numbers(of: registry.scope(level, app: app))) { number, reply in
      guard let identifier = history[number: number] else { return }
      reply.word(.uuid(identifier.value))
      reply.attribute("from", .time(identifier.created))
      reply.attribute("until", (identifier.end?.time).map(Reply.Value.time))
      reply.attribute("cause", .string(identifier.cause.rawValue))
      reply.attribute("ended", (identifier.end?.cause.rawValue).map(Reply.Value.string))
      reply.attribute("origin", .string(identifier.origin.rawValue))
      reply.attribute("by", identifier.author.map(Reply.Value.text))
    }
  }
}

/// `resolve UUID`: describes a present or past identifier.
///
/// An identifier that the peer may not read gives the same answer as an unknown one.
struct ResolveRule: QueryRule {
  let value: UUID
  var basis: Basis { Basis(whole: [.apps, .identifiers]) }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    // Newest first, and usually the first one is in force.
    let readable = registry.identifiers(valued: value).lazy.filter { registry.may(peer, see: $0.scope.audience) }
    guard let identifier = readable.first(where: { $0.end == nil }) ?? readable.first(where: { _ in true }) else {
      throw .notFound("this daemon issued no such identifier that \(peer.app) may see")
    }
    var reply = Reply()
    reply.ok()
    reply.word(.string(identifier.scope.level.rawValue))
    reply.attribute("current", .yesOrNo(identifier.end == nil))
    if identifier.end != nil { reply.attribute("now", (registry[identifier.scope]?.value).map(Reply.Value.uuid)) }
    registry.attribute(identifier.scope, to: &reply)
    return reply
  }
}

// MARK: - Identifiers

extension Registry {
  /// Returns the search for the identifiers in force that are meant, in the order in which they came into force.
  func identifiersInForce(where isMeant: @escaping @Sendable (Scope) -> Bool)
    -> Search<OrderedBlocks<NumberedIdentifier>>
  {
    Search(OrderedBlocks(history.table)) { $0.identifier.end == nil && isMeant($0.identifier.scope) }
  }

  /// Returns the scopes renewed together. With the shared device identifier, those of apps and vendors are renewed too.
  fileprivate func renewed(with scope: Scope) -> [Scope] {
    guard scope == .device else { return [scope] }
    return [.device] + scopes.filter { $0 != .device && $0.level == .device }
  }

  /// Returns a row for each identifier that `renew` would change: first that of the scope, then the others.
  fileprivate func renewal(of scope: Scope) -> Reply {
    let own = history.inForce[scope].flatMap { history.table[$0] }
    let others = identifiersInForce { scope == .device && $0 != .device && $0.level == .device }
    return .countedRows(of: [
      Self.rows(of: Search(ArrayBlocks(own.map { [$0] } ?? [])) { _ in true }), Self.rows(of: others),
    ])
  }

  /// Returns a row for each identifier in force.
  var identifierRows: Reply { .countedRows(of: [Self.rows(of: identifiersInForce { _ in true })]) }

  private static func rows<Source: BlockSource<NumberedIdentifier>>(of search: Search<Source>) -> any RowSource {
    FoundRows(search) { entry, reply in
      let identifier = entry.identifier
      reply.row()
      reply.word(.string(identifier.scope.level.rawValue))
      reply.word(.uuid(identifier.value))
      reply.attribute("app", identifier.scope.app.map(Reply.Value.text))
      reply.attribute("vendor", identifier.scope.vendor.map(Reply.Value.text))
    }
  }

  /// Creates an identifier for a scope: derived from the machine-id for a device if possible, else random.
  ///
  /// A value that was in force once is not derived again, because the history keeps the record of its end; see
  /// ``History/surplus(of:)``.
  func fresh(_ scope: Scope, cause: Cause, _ context: Context) throws(Refusal) -> Identifier {
    let derived = scope.level == .device && !isMachineSpent ? try context.machine(scope) : nil
    // Only the history of this scope counts, because any app may migrate any value into another scope.
    guard let derived, !identifiers(valued: derived).contains(where: { $0.scope == scope }) else {
      return Identifier(
        scope: scope, value: try context.random(), created: context.now, origin: .random, cause: cause,
        author: context.peer?.author)
    }
    return Identifier(
      scope: scope, value: derived, created: context.now, origin: .machine, cause: cause,
      author: context.peer?.author)
  }

  /// Returns the answer to `get LEVEL`.
  fileprivate func describe(_ identifier: Identifier) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(identifier.value))
    reply.attribute("level", .string(identifier.scope.level.rawValue))
    attribute(identifier.scope, to: &reply)
    reply.attribute("created", .time(identifier.created))
    let tellsOrigin = identifier.scope.level == .device || identifier.origin != .random
    reply.attribute("origin", tellsOrigin ? .string(identifier.origin.rawValue) : nil)
    return reply
  }

  /// Adds `app=` and `vendor=` of a scope.
  fileprivate func attribute(_ scope: Scope, to reply: inout Reply) {
    reply.attribute("app", scope.app.map(Reply.Value.text))
    reply.attribute("vendor", vendor(of: scope).map(Reply.Value.text))
  }
}

extension Registry {
  /// Returns the changes that drop ended identifiers of one scope that has more than are kept, or else some of the things
  /// that were left to another machine long ago; empty if there are none.
  ///
  /// Each call drops one batch: a store of an earlier release may have kept any number.
  package var surplusRemoval: [Change] {
    guard !isSealed else { return [] }
    guard let scope = history.crowdedScope else { return deletionOfOldThings }
    var plan = Plan(self)
    plan.dropSurplus(of: scope)
    return plan.changes
  }
}

extension Plan {
  /// Clears the suspicion, if any, after the device identifier was replaced.
  mutating func endSuspicion() {
    guard var record = registry.machine, record.suspicion != nil else { return }
    record.suspicion = nil
    add(.machineRecorded(record))
  }

  /// Brings an identifier into force. The shared device identifier also replaces the previous one in the device list, but
  /// in the list of an account, a possible original keeps its place, and this device is a further one.
  mutating func put(_ identifier: Identifier, as course: Course = .same) {
    let previous = registry[identifier.scope]?.value
    add(.identifierMade(identifier))
    if identifier.scope.level == .device { moveTokens(of: identifier.scope, from: previous, as: course) }
    guard identifier.scope == .device else { return }
    regain(identifier.value)
    if let previous, course == .copy { leave(previous) }
    if let previous, previous != identifier.value, !identifier.cause.mayReturn {
      endProofKeys(.lost) { $0.device == previous }
    }
    let listed = previous.flatMap { registry.devices[$0] }
    if course != .same, registry.account != nil, let listed {
      return listBeside(original: listed, identifier)
    }
    if registry.devices[identifier.value] != nil {
      // A program that connects the account's devices may have listed this device by the identifier, as after a purge.
      if let listed { add(.deviceUnlisted(listed.value)) }
    } else if var device = listed {
      device.value = identifier.value
      add(.deviceReplaced(previous: listed?.value ?? .zero, device))
    } else {
      add(.deviceListed(ListedDevice(value: identifier.value, added: identifier.created)))
    }
  }

  /// Lists this device beside the original, or under the identifier that it had left to an original before.
  private mutating func listBeside(original: ListedDevice, _ identifier: Identifier) {
    let isBack = registry.devices[identifier.value] != nil
    if isBack {
      // The identifier is one that this machine had before, so its keys are here, and the one in between was its own.
      add(.deviceUnlisted(original.value))
    } else {
      add(.deviceListed(ListedDevice(value: identifier.value, name: original.name, added: identifier.created)))
      // A machine that comes back a second time left the account when it was left. It joins anew, and was not removed.
      if registry.records[identifier.value]?.isGone == true { add(.fleetForgotten(identifier.value)) }
    }
    guard var standing = registry.fleet else { return }
    // The keys are still those of the first original, if the service has not run since.
    standing.original = isBack ? nil : standing.original ?? original.value
    if standing != registry.fleet { add(.fleetAdvanced(standing)) }
  }
}
