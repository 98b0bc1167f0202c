/// What a migration comes to, before anything is changed.
struct Migration {
  let scope: Scope
  let value: UUID
  let previous: UUID?

  /// The value that is in force already is no change.
  var changes: Bool { value != previous }

  /// Whether it is an app's first use.
  func installs(in registry: Registry) -> Bool {
    scope.level != .device && scope.app.map { registry.apps[$0] == nil } ?? false
  }

  func reply(commits: Bool) -> Reply {
    var reply = Reply()
    reply.ok()
    reply.word(.uuid(value))
    reply.attribute("changed", .yesOrNo(changes))
    reply.attribute("committed", .yesOrNo(commits))
    reply.attribute("previous", previous.map(Reply.Value.uuid) ?? .string(""))
    return reply
  }
}

// `migrate LEVEL VALUE` (protocol, section 3): adopt an identifier that an earlier system gave out.
extension Registry {
  /// Finds out what a migration comes to. A dry run is refused for what the real one would be.
  ///
  /// - Throws: `invalidUUID` for a value that is nobody's identifier; `conflict` where an identifier was handed out
  ///   already, or the value is another device's; `denied` for `force=yes` by anybody but an admin.
  func migration(_ level: Level, to value: UUID, app: Text, _ peer: Peer, forces: Bool) throws(Refusal) -> Migration {
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    guard !forces || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, for force=yes")
    }
    let scope = scope(level, app: app)
    let migration = Migration(scope: scope, value: value, previous: self[scope]?.value)
    guard migration.changes else { return migration }
    guard migration.previous == nil || forces else {
      throw .conflict("the \(level.rawValue) identifier was handed out already; an admin may use force=yes")
    }
    guard scope != .device || !devices.contains(where: { $0.value == value }) else {
      throw .conflict("another device of the account has this identifier")
    }
    guard level == .device || isInstalledOrUnclaimed(app) else { throw .notFound("\(app) is not installed") }
    return migration
  }

  /// Carries a migration out, or tells what it would come to.
  func migrate(
    _ level: Level, to value: UUID, app id: Text, commits: Bool, forces: Bool, _ context: Context
  ) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    let migration = try migration(level, to: value, app: id, peer, forces: forces)
    var plan = Plan(self)
    if level != .device, let change = try firstUse(of: id, context) { plan.add(change) }
    guard commits else { return Decision(reply: migration.reply(commits: false)) }
    plan.put(
      Identifier(
        scope: migration.scope, value: value, created: context.now, origin: .migrated, cause: .migrated,
        author: peer.author))
    if migration.scope == .device { plan.endSuspicion() }
    return Decision(changes: plan.changes, reply: migration.reply(commits: true))
  }
}
