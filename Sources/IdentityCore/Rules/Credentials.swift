// Credentials of units (identityd-protocol(7), section "CREDENTIALS OF SERVICES").

extension RegistryCommand {
  /// Reads a credential for the service manager. No verb leads here, so the rule checks no rights: the caller has
  /// compared the request with the attested peer; see ``CredentialRequest/content(for:)``.
  package static func readCredential(of group: Text, _ name: Text) -> Self {
    Self(ReadCredentialRule(group: group, name: name))
  }
}

/// The answer to ``CredentialRequest``: the item `service=credential account=NAME` of the unit's group.
package struct ReadCredentialRule: QueryRule {
  package let group: Text
  package let name: Text
  package var basis: Basis { Basis(found: [.items]) }
  package var answerKind: AnswerKind { .secret }

  package func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    if let itemFault = registry.itemFault { throw .unavailable(itemFault) }
    guard let item = registry.items[ItemKey(group: group, service: CredentialRequest.service, account: name)] else {
      throw .notFound("it is not stored")
    }
    try registry.requireUnlocked(item)
    var reply = Reply()
    reply.ok()
    reply.secret(of: item)
    return reply
  }
}
