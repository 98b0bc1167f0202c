// `migrate LEVEL` adopts an identifier of an earlier system (identityd-protocol(7), section "IDENTIFIERS").
extension RegistryCommand {
  package static func migrate(_ level: Level, _ value: UUID, app: Text?, commits: Bool, forces: Bool) -> Self {
    Self(MigrateRule(level: level, value: value, namedApp: app, commits: commits, forces: forces))
  }
  package static func migrateFromItem(
    _ level: Level, _ name: ItemName, app: Text?, commits: Bool, forces: Bool
  ) -> Self {
    Self(MigrateFromItemRule(level: level, name: name, namedApp: app, commits: commits, forces: forces))
  }
}

/// `migrate LEVEL VALUE`: puts the value of an earlier system in force. A dry run is refused for the same reasons.
///
/// - Throws: `invalidUUID` for a placeholder UUID; `denied` for `force=yes` without admin rights; `conflict` if
///   an identifier was handed out already, or if the value belongs to another device; `notFound` if the app is
///   not installed; `limit` if there is no room for an app that is used for the first time.
package struct MigrateRule: ChangeRule {
  let level: Level
  let value: UUID
  package let namedApp: Text?
  package let commits: Bool
  let forces: Bool
  package var basis: Basis { Basis(whole: [.apps, .identifiers]) }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let id = try registry.app(named: namedApp, by: peer)
    let migration = try registry.migration(level, to: value, app: id, peer, forces: forces)
    guard migration.changes else { return Decision(reply: migration.reply(commits: commits)) }
    // Only the context has the limits, and so tells whether there is room for a new app. A sealed store gives none.
    guard commits || registry.isSealed || migration.installs(in: registry) else {
      return Decision(reply: migration.reply(commits: false))
    }
    guard let context else { return nil }
    var plan = Plan(registry)
    if level != .device, let change = try registry.firstUse(of: id, context) { plan.add(change) }
    guard commits else { return Decision(reply: migration.reply(commits: false)) }
    plan.put(
      Identifier(
        scope: migration.scope, value: value, created: context.now, origin: .migrated, cause: .migrated,
        author: peer.author))
    if migration.scope == .device { plan.endSuspicion() }
    return Decision(changes: plan.changes, reply: migration.reply(commits: true))
  }
}

/// `migrate LEVEL item=`: puts the value in the secret of an item in force. Only the writer opens the secret.
package struct MigrateFromItemRule: ChangeRule {
  let level: Level
  let name: ItemName
  package let namedApp: Text?
  package let commits: Bool
  let forces: Bool
  package var basis: Basis { Basis(whole: [.apps, .identifiers, .items]) }

  package func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let item = try registry.item(name, for: peer)
    _ = try registry.app(named: namedApp, by: peer)
    guard let context else { return nil }
    let value = try context.identifier(try context.secret(item))
    let rule = MigrateRule(level: level, value: value, namedApp: namedApp, commits: commits, forces: forces)
    return try rule.decide(in: registry, for: peer, context)
  }
}

extension Registry {
  fileprivate func migration(
    _ level: Level, to value: UUID, app: Text, _ peer: Peer, forces: Bool
  ) throws(Refusal) -> Migration {
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    guard !forces || peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights for force=yes")
    }
    let scope = scope(level, app: app)
    let migration = Migration(scope: scope, value: value, previous: self[scope]?.value)
    guard migration.changes else { return migration }
    guard migration.previous == nil || forces else {
      throw .conflict("the \(level.rawValue) identifier was already issued; an admin can replace it with force=yes")
    }
    guard scope != .device || devices[value] == nil else {
      throw .conflict("another device of the account has this identifier")
    }
    guard level == .device || isInstalledOrUnclaimed(app) else { throw .notFound("\(app) is not installed") }
    return migration
  }
}

/// The outcome of a migration, before anything is changed.
struct Migration {
  let scope: Scope
  let value: UUID
  let previous: UUID?

  /// Whether the value differs from the one in force.
  var changes: Bool { value != previous }

  /// Returns whether the migration is the first use of the app, and so installs it.
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
