extension IdentityRequest where Answer == Identifier {
  /// The identifier of a level, which is made at its first use.
  ///
  /// - Parameters:
  ///   - level: any but ``IdentifierLevel/key``, which has ``key(_:)``.
  ///   - app: whose; nil for the asking app's own. Another one's is for admins.
  public static func identifier(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("get").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try Identifier(fields) }
  }

  /// The identifier of a name in the asking app's session: the same one for the same name.
  public static func key(_ name: String) -> IdentityRequest {
    IdentityRequest(.question("get key").operand(name)) { (fields) throws(IdentityError) in try Identifier(fields) }
  }
}

/// Which kind of fresh UUIDs.
public enum IdentityUUIDVersion: String, Sendable {
  /// Version 4: at random.
  case random = "4"
  /// Version 7: strictly ascending over all callers of the daemon.
  case timeOrdered = "7"
}

extension IdentityRequest where Answer == [IdentityUUID] {
  /// Fresh UUIDs, which the daemon does not remember.
  ///
  /// - Parameters:
  ///   - count: from 1 to 10,000.
  ///   - version: which kind.
  public static func uuids(count: Int, version: IdentityUUIDVersion = .random) -> IdentityRequest {
    let line = RequestLine.question("get uuid").attribute("count", "\(count)").attribute("version", version.rawValue)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try row.uuid(0) }
    }
  }
}

extension IdentityRequest where Answer == IdentityUUID? {
  /// Whether a text is a UUID: the UUID, or nil where it is none.
  public static func check(_ text: String) -> IdentityRequest {
    IdentityRequest(.question("check").operand(text)) { (fields) throws(IdentityError) in
      try fields.word(0) == "invalid" ? nil : try fields.uuid(1)
    }
  }
}

extension IdentityRequest where Answer == ResolvedIdentifier {
  /// What an identifier is that the daemon gave out, or was; ``IdentityError/Code/notFound`` for any other.
  public static func resolve(_ uuid: IdentityUUID) -> IdentityRequest {
    IdentityRequest(.question("resolve").operand(uuid.description)) { (fields) throws(IdentityError) in
      try ResolvedIdentifier(fields)
    }
  }
}

extension IdentityRequest where Answer == [IdentifierPeriod] {
  /// The identifiers that a level has had, oldest first.
  public static func history(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("history").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try IdentifierPeriod(row) }
    }
  }
}

extension IdentityRequest where Answer == IdentifierRenewal {
  /// Puts a random identifier in the place of the one of a level: device, installation or vendor. For admins.
  public static func renew(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("renew").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try IdentifierRenewal(fields) }
  }
}

extension IdentityRequest where Answer == [IdentifierChange] {
  /// What ``renew(_:app:)`` would change, and nothing is changed. For admins.
  public static func previewRenewal(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("renew").operand(level.rawValue).attribute("app", app).flag("dry-run", true)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try IdentifierChange(row) }
    }
  }
}

extension IdentityRequest where Answer == IdentifierMigration {
  /// Adopts an identifier that an earlier system gave out, or tells what that would change.
  ///
  /// - Parameters:
  ///   - level: device or installation.
  ///   - uuid: the identifier.
  ///   - app: whose; nil for the asking app's own.
  ///   - commits: whether it is carried out; without that nothing is changed.
  ///   - forces: whether one that was handed out already is replaced. For admins; else that is
  ///     ``IdentityError/Code/conflict``.
  public static func migrate(
    _ level: IdentifierLevel, to uuid: IdentityUUID, app: String? = nil, commits: Bool, forces: Bool = false
  ) -> IdentityRequest {
    migrate(RequestLine.change("migrate").operand(level.rawValue).operand(uuid.description), app, commits, forces)
  }

  /// The same for the identifier that an item holds as its secret, which is read with the asking app's rights.
  public static func migrate(
    _ level: IdentifierLevel, from item: ItemKey, app: String? = nil, commits: Bool, forces: Bool = false
  ) -> IdentityRequest {
    let line = RequestLine.change("migrate").operand(level.rawValue).attribute("item", item.account)
      .attribute("service", item.service).attribute("group", item.group)
    return migrate(line, app, commits, forces)
  }

  private static func migrate(_ line: RequestLine, _ app: String?, _ commits: Bool, _ forces: Bool) -> IdentityRequest {
    let line = line.attribute("app", app).flag("commit", commits).flag("force", forces)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try IdentifierMigration(fields) }
  }
}
