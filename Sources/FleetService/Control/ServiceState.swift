import IdentityCore

/// The state of the service, as admins are told.
enum ServiceState: Equatable, Sendable {
  /// A row of the answer to `status`.
  struct Row: Equatable, Sendable {
    let name: String
    let value: String
  }

  /// identityd does not answer, and all state is there.
  case unknown
  case known([Row])

  /// Returns the answer to `status`.
  func reply() throws(Refusal) -> Reply {
    guard case .known(let rows) = self else { throw Service.unanswered }
    var reply = Reply()
    for row in rows {
      reply.row()
      reply.attribute(row.name, .string(row.value))
    }
    reply.ok()
    return reply
  }
}
