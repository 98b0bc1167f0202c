/// Which user numbers belong to people, and which to services.
package struct UserRanges: Equatable, Sendable {
  /// The first number of a regular user: `UID_MIN` of login.defs(5).
  package let firstRegular: UInt32

  /// The numbers that systemd gives to services with DynamicUser= and takes back (systemd's UIDS-GIDS).
  package static let dynamic: ClosedRange<UInt32> = 61_184...65_519

  /// Takes the first number of a regular user, which root is not.
  package init(firstRegular: UInt32 = 1_000) { self.firstRegular = max(1, firstRegular) }

  /// Whether a user is root or the dynamic user of the unit that it runs in: both are there for the unit alone.
  package func isUnitItself(_ userID: UInt32) -> Bool { userID == 0 || Self.dynamic.contains(userID) }

  /// Whether a user is there for services: the unit itself, or a system user.
  package func isForServices(_ userID: UInt32) -> Bool { userID < firstRegular || isUnitItself(userID) }
}

/// The policy for containers that no manifest admits (`Containers=`).
package enum ContainerPolicy: String, CaseIterable, Sendable {
  /// It is an app of its own.
  case own
  /// It is not served.
  case deny
}

/// Which app a peer is by the manifests: by its unit and its user, by its user alone, or by its container.
package struct AppClaims: Equatable, Sendable {
  private enum Claim: Hashable {
    case container(Text)
    case userOfUnit(Text, UInt32)
    /// Root, system users, and the unit's dynamic user.
    case servicesOfUnit(Text)
    case everyoneInUnit(Text)
    case user(UInt32)

    /// As the manifests say it.
    var settings: String {
      switch self {
      case .container(let name): "Container=\(name)"
      case .userOfUnit(let unit, let user): "Unit=\(unit) and User=\(user)"
      case .servicesOfUnit(let unit): "Unit=\(unit)"
      case .everyoneInUnit(let unit): "Unit=\(unit) and User=*"
      case .user(let user): "User=\(user)"
      }
    }
  }

  private var apps: [Claim: Text] = [:]

  /// Nobody claims anything.
  package init() {}

  /// The app of the manifest that admits a container.
  package func app(container: Text) -> Text? { apps[.container(container)] }

  /// The app of the manifest with this unit of the system that admits a user. One that names the user goes before one that
  /// names none, and that before one that names everyone.
  package func app(unit: Text, userID: UInt32, _ ranges: UserRanges) -> Text? {
    if let app = apps[.userOfUnit(unit, userID)] { return app }
    if ranges.isForServices(userID), let app = apps[.servicesOfUnit(unit)] { return app }
    return apps[.everyoneInUnit(unit)]
  }

  /// The app of the manifest that names a user and no unit.
  package func app(userID: UInt32) -> Text? { apps[.user(userID)] }

  /// Takes the claims of the manifests in. Where two manifests make the same claim, neither has any.
  ///
  /// - Returns: the apps that are not served, and for each pair what is wrong, with both files.
  package mutating func take(_ entries: [Text: ManifestSurvey.Entry]) -> (refused: Set<Text>, faults: [String]) {
    var refused: Set<Text> = []
    var faults: [String] = []
    var owners: [Claim: (app: Text, file: String)] = [:]
    for (app, entry) in entries.sorted(by: { $0.key < $1.key }) {
      var named: Set<Text> = []
      for claim in Self.claims(of: entry) {
        guard let other = owners[claim] else {
          owners[claim] = (app, entry.file)
          continue
        }
        // One user may have two names.
        guard other.app != app else { continue }
        refused.formUnion([app, other.app])
        if named.insert(other.app).inserted {
          faults.append("\(other.file) and \(entry.file) both say \(claim.settings): neither is served")
        }
      }
    }
    for (claim, owner) in owners where !refused.contains(owner.app) { apps[claim] = owner.app }
    return (refused, faults)
  }

  private static func claims(of entry: ManifestSurvey.Entry) -> [Claim] {
    guard let manifest = entry.manifest else { return [] }
    if let container = manifest.container { return [.container(container)] }
    guard let unit = manifest.unit else { return entry.userIDs.map { .user($0) } }
    return switch manifest.users {
    case .unnamed: [.servicesOfUnit(unit)]
    case .named: entry.userIDs.map { .userOfUnit(unit, $0) }
    case .everyone: [.everyoneInUnit(unit)]
    }
  }
}
