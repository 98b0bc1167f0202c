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
  /// An answer with the secret of an item.
  case secret
}

extension RegistryRule {
  package var namedApp: Text? { nil }
  package var right: Right? { nil }
  package var answerKind: AnswerKind { .plain }

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
