/// The version of an app or of the system, compared with the version of the session before.
public struct VersionStatus: Hashable, Sendable {
  /// The difference from the version of the session before.
  public enum State: String, CaseIterable, Sendable {
    /// No version was reported before.
    case installed
    /// Version and build are the same as in the session before.
    case unchanged
    /// The version is the same, and the build differs; or both are equal in the order, and written differently, see
    /// ``VersionStatus/isEqualInOrder``.
    case updated
    /// The version is later, or the system is another distribution.
    case upgraded
    /// The version is earlier.
    case downgraded
  }

  /// The difference from the session before.
  public let state: State
  /// The version that was reported.
  public let version: String
  /// The build; nil if none was reported.
  public let build: String?
  /// The version of the session before; nil if ``state`` is `installed` or `unchanged`.
  public let previous: String?
  /// The build of the session before; nil if ``previous`` is nil or had no build.
  public let previousBuild: String?
  /// Whether ``version`` and ``previous`` are equal in the order, and written differently.
  public let isEqualInOrder: Bool
  /// The time of the first report of this version with this build; nil in a preview if there was none.
  public let installed: IdentityTime?

  init(_ fields: AnswerFields) throws(IdentityError) {
    state = try fields.choice(Dictionary(uniqueKeysWithValues: State.allCases.map { ($0.rawValue, $0) }))
    version = try fields.word(1)
    build = fields.text("build")
    previous = fields.text("previous")
    previousBuild = fields.text("previous-build")
    isEqualInOrder = fields.text("same-order") == "yes"
    installed = try fields.time("installed")
  }
}

/// A version in the history of an app or of the system.
public struct InstalledVersion: Hashable, Sendable {
  /// The version.
  public let version: String
  /// The build; nil if none was reported.
  public let build: String?
  /// The time of the first report of this version with this build.
  public let installed: IdentityTime
  /// The time at which this version was last reported after a different one.
  public let last: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    version = try fields.word(0)
    build = fields.text("build")
    installed = try fields.requiredTime("installed")
    last = try fields.requiredTime("last")
  }
}

/// The owner of versions.
public enum VersionOwner: Hashable, Sendable {
  /// An app; nil for the calling app. Any other app is for admins.
  case app(String?)
  /// The operating system.
  case system
}

/// The order of two versions.
public enum VersionComparison: String, CaseIterable, Hashable, Sendable {
  /// The first version is earlier.
  case less
  /// The versions are equal, and so are their builds.
  case equal
  /// The versions are equal, and their builds differ.
  case different
  /// The first version is later.
  case greater
}

/// The rule that orders versions (identityd-protocol(7), How versions are ordered).
public enum VersionScheme: String, Sendable {
  /// Compares the fields between dots as numbers. A missing field is 0.
  case numeric
  /// Compares by Semantic Versioning 2.0.0, section 11: `1.0.0-rc.1` is earlier than `1.0.0`.
  case semver
  /// Compares like `dpkg --compare-versions`, with epochs and revisions (deb-version(7)).
  case debian
  /// Compares like `systemd-analyze compare-versions`: `1.2~rc1` is earlier than `1.2`.
  case linux
  /// Chooses the order by the form of both versions.
  case auto
}
