/// A request to the registry: the rule of its verb, with the arguments of the request.
///
/// Each file in `Rules/` has the rules of some verbs, and the functions that make commands of them. A nil app
/// means the peer's own app.
package struct RegistryCommand: Equatable, Sendable {
  /// The rule, which also declares the properties of its answer.
  package let rule: any RegistryRule

  init(_ rule: some RegistryRule) { self.rule = rule }

  package static func == (left: Self, right: Self) -> Bool { left.rule.isEqual(to: right.rule) }
}

/// The rule of a verb, with the arguments of a request.
///
/// A rule checks rights and existence, and then decides. The loop and the writer apply the same rule, so that rights
/// and existence are checked in one place. Only the writer has a context, without which a rule decides no change.
package protocol RegistryRule: Equatable, Sendable {
  /// The records that the answer depends on.
  var basis: Basis { get }
  /// The app whose record the answer needs because the request names the app; nil for the peer's own app.
  var namedApp: Text? { get }
  /// The right that the peer needs, unless it is an admin. Nil if every peer may make the request, or if only the rule
  /// can tell.
  var right: Right? { get }
  /// The kind of the answer, which the server has to know before it has the answer.
  var answerKind: AnswerKind { get }
  /// The app whose manifest is looked for again before the request is decided, because a package may have removed the
  /// manifest a moment ago; nil if the last survey is good enough.
  var removedApp: Text? { get }

  /// Applies the rule.
  ///
  /// - Returns: nil if the request needs a change and there is no context.
  func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
}

/// A kind of answer that the server treats in its own way.
package enum AnswerKind: Sendable {
  /// An answer of none of the following kinds.
  case plain
  /// A row for each existing element, so that the answer may be long.
  case list
  /// An answer that stays the same until something changes: it contains no time, no random value and no secret.
  case standing
  /// An answer to the only connection that may have the fleet open.
  case lease
  /// A proof, which is signed before the answer is sent, or the name of a key, which is made before.
  case proof
  /// An answer with the secret of an item.
  case secret
  /// No answer yet: the objects of the request have to be found first (``SearchRule``).
  case search
  /// The answer to a change of many records, which is made in several steps.
  case steps
}

extension RegistryRule {
  package var namedApp: Text? { nil }
  package var right: Right? { nil }
  package var answerKind: AnswerKind { .plain }
  package var removedApp: Text? { nil }

  /// Whether the answer may depend on items. A search looks for what a change would remove, which may be items.
  package var needsItems: Bool {
    let basis = basis
    return basis.found.union(basis.whole).contains(.items) || answerKind == .search || answerKind == .steps
  }

  fileprivate func isEqual(to other: any RegistryRule) -> Bool { other as? Self == self }
}

/// A rule that may decide changes. Its answers without a change depend neither on the clock nor on the peer's session.
package protocol ChangeRule: RegistryRule {
  /// Applies the rule, as ``RegistryRule/decide(in:for:in:_:)`` does.
  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision?
}

extension ChangeRule {
  package func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    try decide(in: registry, for: peer, context)
  }
}

/// A rule about records that are looked for before the rule decides.
///
/// The search runs on the loop in pieces, on the state in which it began. It ends with another command of the rule, which
/// has the objects found, and which checks each of them again when it decides.
package protocol SearchRule: ChangeRule {
  /// Begins the search.
  ///
  /// - Throws: the refusal of the request, whatever the search would find.
  func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch
}

extension SearchRule {
  /// Decides all at once, before the daemon has started: only then no search precedes the decision.
  func decideAtOnce(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    var search = try search(in: registry, for: peer)
    var effort = Int.max
    var plan = Plan(registry)
    var rest = search.advance(&effort)
    while let rule = rest {
      guard let decision = try rule.decide(in: plan.registry, for: peer, context) else { return nil }
      decision.changes.forEach { plan.add($0) }
      guard let next = decision.next else { return Decision(changes: plan.changes, reply: decision.reply) }
      rest = next
    }
    return nil
  }
}

/// A search for the objects of a request. It can pause after any element.
package struct ObjectSearch: Sendable {
  private var collection: any ObjectCollection

  /// Creates a search.
  ///
  /// - Parameters:
  ///   - most: the number of objects after which the search ends.
  ///   - finish: returns the rule with the objects found.
  init<Source: BlockSource>(
    _ search: Search<Source>, most: Int = .max, finish: @escaping @Sendable ([Source.Element]) -> any SearchRule
  ) {
    collection = FoundObjects(search: search, most: most, finish: finish)
  }

  /// Goes on with the search.
  ///
  /// - Parameter effort: the number of elements that may be examined. The call reduces the number.
  /// - Returns: the rule with the objects found; nil if the search has not ended.
  mutating func advance(_ effort: inout Int) -> (any SearchRule)? { collection.advance(&effort) }

  /// Goes on with the search, and returns the command with the objects found; nil if the search has not ended.
  package mutating func command(_ effort: inout Int) -> RegistryCommand? {
    advance(&effort).map { RegistryCommand($0) }
  }
}

private protocol ObjectCollection: Sendable {
  mutating func advance(_ effort: inout Int) -> (any SearchRule)?
}

private struct FoundObjects<Source: BlockSource>: ObjectCollection {
  var search: Search<Source>
  let most: Int
  let finish: @Sendable ([Source.Element]) -> any SearchRule
  private var found: [Source.Element] = []

  init(search: Search<Source>, most: Int, finish: @escaping @Sendable ([Source.Element]) -> any SearchRule) {
    self.search = search
    self.most = most
    self.finish = finish
  }

  mutating func advance(_ effort: inout Int) -> (any SearchRule)? {
    while found.count < most {
      switch search.step(&effort) {
      case .found(let element): found.append(element)
      case .paused: return nil
      case .ended: return finish(found)
      }
    }
    return finish(found)
  }
}

/// A rule that decides no changes.
package protocol QueryRule: RegistryRule {
  /// Returns the answer.
  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply
}

extension QueryRule {
  package func decide(in registry: Registry, for peer: Peer, in surroundings: Surroundings, _ context: Context?)
    throws(Refusal) -> Decision?
  {
    Decision(reply: try answer(in: registry, for: peer, in: surroundings))
  }
}

// MARK: - Application

extension Registry {
  /// Answers a command from the present state.
  ///
  /// - Returns: nil if the command needs a change, which ``decide(_:_:)`` decides.
  package func answer(_ command: RegistryCommand, for peer: Peer, in surroundings: Surroundings) throws(Refusal)
    -> Reply?
  {
    try proven(command.rule, for: peer, in: surroundings, nil)?.reply
  }

  /// Begins the search of a command whose objects have to be found first.
  ///
  /// - Returns: nil if the command has no search.
  package func search(_ command: RegistryCommand, for peer: Peer) throws(Refusal) -> ObjectSearch? {
    guard let rule = command.rule as? any SearchRule else { return nil }
    try requireProof(of: rule.basis.whole)
    return try rule.search(in: self, for: peer)
  }

  /// Decides the changes of a command. The caller commits the changes, applies them, and then sends the reply.
  package func decide(_ command: RegistryCommand, _ context: Context) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    // A sealed store is only read.
    let decision = try proven(command.rule, for: peer, in: context.surroundings, isSealed ? nil : context)
    guard let decision else {
      throw .unavailable("the store is sealed for a golden image; the next start of identityd begins a new store")
    }
    return decision
  }
}
