/// The lifetime of an identifier. A later daemon may have levels that are not named here.
public struct IdentifierLevel: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The name of the level in the protocol.
  public let rawValue: String
  /// Creates a level from its name in the protocol.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The name of the level.
  public var description: String { rawValue }

  /// One launch of the app. Restarts of the daemon do not end it.
  public static let session = IdentifierLevel(rawValue: "session")
  /// One session, for one name; see ``IdentityRequest/key(_:)``.
  public static let key = IdentifierLevel(rawValue: "key")
  /// One boot, for one app.
  public static let boot = IdentifierLevel(rawValue: "boot")
  /// The installation of the app, until the app is uninstalled.
  public static let installation = IdentifierLevel(rawValue: "installation")
  /// The time in which at least one app of the vendor is installed.
  public static let vendor = IdentifierLevel(rawValue: "vendor")
  /// The time until the system is reset.
  public static let device = IdentifierLevel(rawValue: "device")
}

/// The origin of an identifier. A later daemon may have origins that are not named here.
public struct IdentifierOrigin: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The name of the origin in the protocol.
  public let rawValue: String
  /// Creates an origin from its name in the protocol.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The name of the origin.
  public var description: String { rawValue }

  /// Adopted from an earlier system by a migration.
  public static let migrated = IdentifierOrigin(rawValue: "migrated")
  /// Restored from a backup.
  public static let restored = IdentifierOrigin(rawValue: "restored")
  /// Derived from the machine-id.
  public static let machine = IdentifierOrigin(rawValue: "machine")
  /// Generated at random.
  public static let random = IdentifierOrigin(rawValue: "random")
}

/// An identifier with its owner, age and origin.
public struct IssuedIdentifier: Hashable, Sendable {
  /// The identifier.
  public let uuid: IdentityUUID
  /// The level of the identifier.
  public let level: IdentifierLevel
  /// The app that the identifier belongs to; nil if it belongs to no single app.
  public let app: String?
  /// The vendor that the identifier belongs to; nil if it belongs to no vendor.
  public let vendor: String?
  /// The time at which the identifier was created; nil if it is derived and not stored.
  public let created: IdentityTime?
  /// The origin; nil if the daemon reports none.
  public let origin: IdentifierOrigin?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    level = IdentifierLevel(rawValue: try fields.required("level"))
    app = fields.text("app")
    vendor = fields.text("vendor")
    created = try fields.time("created")
    origin = fields.text("origin").map(IdentifierOrigin.init)
  }
}

/// An identifier that a renewal would replace.
public struct IdentifierChange: Hashable, Sendable {
  /// The level of the identifier.
  public let level: IdentifierLevel
  /// The current identifier.
  public let uuid: IdentityUUID
  /// The app that the identifier belongs to; nil if it belongs to no single app.
  public let app: String?
  /// The vendor that the identifier belongs to; nil if it belongs to no vendor.
  public let vendor: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    level = IdentifierLevel(rawValue: try fields.word(0))
    uuid = try fields.uuid(1)
    app = fields.text("app")
    vendor = fields.text("vendor")
  }
}

/// A renewed identifier and its predecessor.
public struct IdentifierRenewal: Hashable, Sendable {
  /// The new identifier.
  public let uuid: IdentityUUID
  /// The previous identifier; nil if there was none.
  public let previous: IdentityUUID?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    previous = try fields.uuid("previous")
  }
}

/// The result of a migration, or of its dry run.
public struct IdentifierMigration: Hashable, Sendable {
  /// The adopted identifier.
  public let uuid: IdentityUUID
  /// Whether the adopted identifier differs from the previous one.
  public let isChanged: Bool
  /// Whether the migration was carried out; false for a dry run.
  public let isCommitted: Bool
  /// The previous identifier; nil if there was none.
  public let previous: IdentityUUID?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    isChanged = try fields.flag("changed")
    isCommitted = try fields.flag("committed")
    previous = try fields.uuid("previous")
  }
}

/// The meaning of a current or former identifier.
public struct ResolvedIdentifier: Hashable, Sendable {
  /// The level of the identifier.
  public let level: IdentifierLevel
  /// Whether the identifier is still in force.
  public let isCurrent: Bool
  /// The identifier now in force in its place; nil if the identifier is current or has no successor.
  public let now: IdentityUUID?
  /// The app that the identifier belongs to; nil if it belongs to no single app.
  public let app: String?
  /// The vendor that the identifier belongs to; nil if it belongs to no vendor.
  public let vendor: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    level = IdentifierLevel(rawValue: try fields.word(0))
    isCurrent = try fields.flag("current")
    now = try fields.uuid("now")
    app = fields.text("app")
    vendor = fields.text("vendor")
  }
}

/// An identifier in the history of its level, with the period in which it was in force.
public struct IdentifierPeriod: Hashable, Sendable {
  /// The identifier.
  public let uuid: IdentityUUID
  /// The start of the period.
  public let from: IdentityTime
  /// The end of the period; nil for the identifier in force.
  public let until: IdentityTime?
  /// The cause of the start: `first-use`, `migrated`, `renewed` and others (identityd-protocol(7), Event lines).
  public let cause: String
  /// The cause of the end; nil for the identifier in force.
  public let endCause: String?
  /// The peer that asked for the identifier: `unit:NAME`, `unit:NAME@UID` or `uid:N`. Nil if the daemon decided.
  public let author: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    from = try fields.requiredTime("from")
    until = try fields.time("until")
    cause = try fields.required("cause")
    endCause = fields.text("ended")
    author = fields.text("by")
  }
}
