/// How long an identifier stays the same. A later daemon may have levels that are not named here.
public struct IdentifierLevel: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// As the protocol has it.
  public let rawValue: String
  /// Takes a level of the protocol.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// The level's name.
  public var description: String { rawValue }

  /// For one launch of the app, also over restarts of the daemon.
  public static let session = IdentifierLevel(rawValue: "session")
  /// For one name in one session; see ``IdentityRequest/key(_:)``.
  public static let key = IdentifierLevel(rawValue: "key")
  /// Until the next boot, for one app.
  public static let boot = IdentifierLevel(rawValue: "boot")
  /// As long as the app is installed.
  public static let installation = IdentifierLevel(rawValue: "installation")
  /// As long as any app of the vendor is installed.
  public static let vendor = IdentifierLevel(rawValue: "vendor")
  /// Until the system is reset.
  public static let device = IdentifierLevel(rawValue: "device")
}

/// An identifier, and what is known of it.
public struct Identifier: Hashable, Sendable {
  /// Where an identifier came from.
  public struct Origin: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// As the protocol has it.
    public let rawValue: String
    /// Takes an origin of the protocol.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The origin's name.
    public var description: String { rawValue }

    /// An earlier system gave it out.
    public static let migrated = Origin(rawValue: "migrated")
    /// It came with a backup.
    public static let restored = Origin(rawValue: "restored")
    /// It is derived from the machine-id.
    public static let machine = Origin(rawValue: "machine")
    /// It was made at random.
    public static let random = Origin(rawValue: "random")
  }

  /// The identifier itself.
  public let uuid: IdentityUUID
  /// How long it stays the same.
  public let level: IdentifierLevel
  /// The app that it belongs to.
  public let app: String?
  /// The vendor that it belongs to.
  public let vendor: String?
  /// Since when there is this identifier; nil where it is derived and not stored.
  public let created: IdentityTime?
  /// Where it came from, where the daemon tells.
  public let origin: Origin?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    level = IdentifierLevel(rawValue: try fields.required("level"))
    app = fields.text("app")
    vendor = fields.text("vendor")
    created = try fields.time("created")
    origin = fields.text("origin").map(Origin.init)
  }
}

/// An identifier that would be another one.
public struct IdentifierChange: Hashable, Sendable {
  /// How long it was to stay the same.
  public let level: IdentifierLevel
  /// What it is now.
  public let uuid: IdentityUUID
  /// The app that it belongs to.
  public let app: String?
  /// The vendor that it belongs to.
  public let vendor: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    level = IdentifierLevel(rawValue: try fields.word(0))
    uuid = try fields.uuid(1)
    app = fields.text("app")
    vendor = fields.text("vendor")
  }
}

/// An identifier in the place of another one.
public struct IdentifierRenewal: Hashable, Sendable {
  /// What it is now.
  public let uuid: IdentityUUID
  /// What it was; nil where there was none.
  public let previous: IdentityUUID?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    previous = try fields.uuid("previous")
  }
}

/// What a migration did, or would do.
public struct IdentifierMigration: Hashable, Sendable {
  /// The identifier that is adopted.
  public let uuid: IdentityUUID
  /// Whether it is another one than now.
  public let isChanged: Bool
  /// Whether it was carried out; else this says what would be.
  public let isCommitted: Bool
  /// What the identifier was; nil where there was none.
  public let previous: IdentityUUID?

  init(_ fields: AnswerFields) throws(IdentityError) {
    uuid = try fields.uuid(0)
    isChanged = try fields.flag("changed")
    isCommitted = try fields.flag("committed")
    previous = try fields.uuid("previous")
  }
}

/// What an identifier is, or was.
public struct ResolvedIdentifier: Hashable, Sendable {
  /// How long it stays the same.
  public let level: IdentifierLevel
  /// Whether it still is the one of its level.
  public let isCurrent: Bool
  /// What is in its place now; nil where it is current, or nothing is.
  public let now: IdentityUUID?
  /// The app that it belongs to.
  public let app: String?
  /// The vendor that it belongs to.
  public let vendor: String?

  init(_ fields: AnswerFields) throws(IdentityError) {
    level = IdentifierLevel(rawValue: try fields.word(0))
    isCurrent = try fields.flag("current")
    now = try fields.uuid("now")
    app = fields.text("app")
    vendor = fields.text("vendor")
  }
}

/// An identifier, and from when to when it held.
public struct IdentifierPeriod: Hashable, Sendable {
  /// The identifier.
  public let uuid: IdentityUUID
  /// Since when it held.
  public let from: IdentityTime
  /// Until when; nil for the one that holds now.
  public let until: IdentityTime?
  /// Why it came: `first-use`, `migrated`, `renewed` and others.
  public let cause: String
  /// Why it ended; nil for the one that holds now.
  public let endCause: String?
  /// Who brought it, `uid:N` or `unit:NAME`, where somebody did.
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
