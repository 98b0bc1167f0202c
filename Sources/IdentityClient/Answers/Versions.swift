/// What runs beside what ran before it.
public struct VersionReport: Hashable, Sendable {
  /// What is new.
  public enum State: String, CaseIterable, Sendable {
    /// Nothing was reported before.
    case installed
    /// It is the same as in the session before.
    case unchanged
    /// The version is the same, the build another.
    case updated
    /// It is a later version.
    case upgraded
    /// It is an earlier version.
    case downgraded
  }

  /// What is new.
  public let state: State
  /// What runs.
  public let version: String
  /// Its build, where one was reported.
  public let build: String?
  /// What ran before; nil where that was the same.
  public let previous: String?
  /// The build of that.
  public let previousBuild: String?
  /// When this version first came; nil in an answer that changed nothing.
  public let installed: IdentityTime?

  init(_ fields: AnswerFields) throws(IdentityError) {
    state = try fields.choice(Dictionary(uniqueKeysWithValues: State.allCases.map { ($0.rawValue, $0) }))
    version = try fields.word(1)
    build = fields.text("build")
    previous = fields.text("previous")
    previousBuild = fields.text("previous-build")
    installed = try fields.time("installed")
  }
}

/// A version that there was.
public struct InstalledVersion: Hashable, Sendable {
  /// The version.
  public let version: String
  /// Its build, where one was reported.
  public let build: String?
  /// When it first came.
  public let installed: IdentityTime
  /// When it last came.
  public let last: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    version = try fields.word(0)
    build = fields.text("build")
    installed = try fields.requiredTime("installed")
    last = try fields.requiredTime("last")
  }
}

/// Whose versions are meant.
public enum VersionOwner: Hashable, Sendable {
  /// An app's; nil for the asking one. Another one's is for admins.
  case app(String?)
  /// The system's.
  case system
}

/// How one version stands to another.
public enum VersionComparison: String, Hashable, Sendable {
  /// The first is the earlier one.
  case less
  /// Neither is.
  case equal
  /// The first is the later one.
  case greater
}

/// What makes a version the later one.
public enum VersionOrder: String, Sendable {
  /// Numbers between dots; what is missing is 0.
  case numeric
  /// As `systemd-analyze compare-versions` has it: `1.2~rc1` is before `1.2`.
  case linux
}
