extension IdentityRequest where Answer == IssuedIdentifier {
  /// Requests the identifier of a level. The daemon creates it at the first request.
  ///
  /// Fails with ``IdentityError/Code/denied`` if the app is not the calling one and the caller is not an admin, and
  /// with ``IdentityError/Code/notFound`` if the app is not installed.
  ///
  /// - Parameters:
  ///   - level: Any level but ``IdentifierLevel/key``, which has ``key(_:)``.
  ///   - app: The ID of the app; nil for the calling app. The level ``IdentifierLevel/session`` accepts nil only.
  public static func identifier(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("get").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try IssuedIdentifier(fields) }
  }

  /// Requests the identifier of a name in the calling app's session. The same name gives the same identifier.
  ///
  /// - Parameter name: 1 to 255 bytes.
  public static func key(_ name: String) -> IdentityRequest {
    IdentityRequest(.question("get key").operand(name)) { (fields) throws(IdentityError) in
      try IssuedIdentifier(fields)
    }
  }
}

/// The version of newly generated UUIDs (RFC 9562).
public enum IdentityUUIDVersion: String, Sendable {
  /// Version 4: random.
  case random = "4"
  /// Version 7: strictly ascending across all callers of the daemon.
  case timeOrdered = "7"
}

extension IdentityRequest where Answer == [IdentityUUID] {
  /// Requests new UUIDs, which the daemon does not store.
  ///
  /// - Parameters:
  ///   - count: The number of UUIDs, 1 to 10,000.
  ///   - version: The version of the UUIDs.
  public static func uuids(count: Int, version: IdentityUUIDVersion = .random) -> IdentityRequest {
    let line = RequestLine.question("get uuid").attribute("count", "\(count)").attribute("version", version.rawValue)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try row.uuid(0) }
    }
  }
}

extension IdentityRequest where Answer == IdentityUUID? {
  /// Requests whether a text is a UUID. The answer is the UUID, or nil if the text is not one.
  public static func check(_ text: String) -> IdentityRequest {
    IdentityRequest(.question("check").operand(text)) { (fields) throws(IdentityError) in
      try fields.word(0) == "invalid" ? nil : try fields.uuid(1)
    }
  }
}

extension IdentityRequest where Answer == ResolvedIdentifier {
  /// Requests the meaning of a current or former identifier that the daemon gave out.
  ///
  /// Fails with ``IdentityError/Code/notFound`` for any other UUID, and for an identifier that the caller may not read.
  public static func resolve(_ uuid: IdentityUUID) -> IdentityRequest {
    IdentityRequest(.question("resolve").operand(uuid.description)) { (fields) throws(IdentityError) in
      try ResolvedIdentifier(fields)
    }
  }
}

extension IdentityRequest where Answer == [IdentifierPeriod] {
  /// Requests the identifiers that a level has had, in the order in which the daemon recorded them.
  ///
  /// - Parameters:
  ///   - level: Device, installation or vendor.
  ///   - app: The ID of the app; nil for the calling app. Any other app is for admins.
  public static func history(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("history").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try IdentifierPeriod(row) }
    }
  }
}

extension IdentityRequest where Answer == IdentifierRenewal {
  /// Replaces the identifier of a level with a random one. For admins.
  ///
  /// Renewing the shared device identifier also renews the separate device identifiers of apps and vendors.
  ///
  /// - Parameters:
  ///   - level: Device, installation or vendor.
  ///   - app: The ID of the app; nil for the calling app.
  public static func renew(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.change("renew").operand(level.rawValue).attribute("app", app)
    return IdentityRequest(line) { (fields) throws(IdentityError) in try IdentifierRenewal(fields) }
  }
}

extension IdentityRequest where Answer == [IdentifierChange] {
  /// Requests the identifiers that ``renew(_:app:)`` would replace, and changes nothing. For admins.
  public static func previewRenewal(_ level: IdentifierLevel, app: String? = nil) -> IdentityRequest {
    let line = RequestLine.question("renew").operand(level.rawValue).attribute("app", app).flag("dry-run", true)
    return IdentityRequest(line) { (fields) throws(IdentityError) in
      try fields.map { (row) throws(IdentityError) in try IdentifierChange(row) }
    }
  }
}

extension IdentityRequest where Answer == IdentifierMigration {
  /// Adopts an identifier that an earlier system gave out, or reports the effect of adopting it.
  ///
  /// Fails with ``IdentityError/Code/conflict`` if an identifier of this level was already handed out, unless
  /// `forces` is set.
  ///
  /// - Parameters:
  ///   - level: Device or installation.
  ///   - uuid: The identifier to adopt.
  ///   - app: The ID of the app; nil for the calling app.
  ///   - commits: Whether the migration is carried out. If false, nothing is changed.
  ///   - forces: Whether an identifier that was already handed out is replaced. For admins; any other caller
  ///     gets ``IdentityError/Code/denied``.
  public static func migrate(
    _ level: IdentifierLevel, to uuid: IdentityUUID, app: String? = nil, commits: Bool, forces: Bool = false
  ) -> IdentityRequest {
    migrate(RequestLine.change("migrate").operand(level.rawValue).operand(uuid.description), app, commits, forces)
  }

  /// Adopts an identifier that is the secret of an item, or reports the effect of adopting it.
  ///
  /// The item is read with the rights of the calling app. The secret must be a UUID, with or without white space around
  /// it. Otherwise the rules are those of ``migrate(_:to:app:commits:forces:)``.
  public static func migrate(
    _ level: IdentifierLevel, from item: ItemPrimaryKey, app: String? = nil, commits: Bool, forces: Bool = false
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
