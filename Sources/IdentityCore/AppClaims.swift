/// The ranges of user IDs that belong to people and to services.
package struct UserRanges: Equatable, Sendable {
  /// The lowest user ID of a regular user: `UID_MIN` of login.defs(5).
  package let firstRegular: UInt32

  /// The user IDs that systemd assigns to services with `DynamicUser=` and reuses later (UIDS-GIDS of systemd).
  package static let dynamic: ClosedRange<UInt32> = 61_184...65_519

  /// The user IDs that the kernel shows for users without a mapping here, so each stands for many users
  /// (user_namespaces(7)). 65535 is for kernel interfaces with 16-bit user IDs.
  package static let unmapped: ClosedRange<UInt32> = 65_534...65_535

  /// Creates ranges from the lowest user ID of a regular user. Root never counts as a regular user.
  package init(firstRegular: UInt32 = 1_000) { self.firstRegular = max(1, firstRegular) }

  /// Returns whether a user is root or a dynamic user. Both exist only for the unit that they run in.
  package func isUnitItself(_ userID: UInt32) -> Bool { userID == 0 || Self.dynamic.contains(userID) }

  /// Returns whether a user exists for services: root, a dynamic user, or a system user.
  package func isForServices(_ userID: UInt32) -> Bool { userID < firstRegular || isUnitItself(userID) }
}

/// The policy for containers that no manifest admits (`Containers=`).
package enum ContainerPolicy: String, CaseIterable, Sendable {
  /// Treats each container as an app of its own.
  case own
  /// Refuses connections from the container.
  case deny
}

/// The apps that manifests assign to peers, by unit and user, by user alone, or by container.
package struct AppClaims: Equatable, Sendable {
  private enum Claim: Hashable {
    case container(Text)
    case userOfUnit(Text, UInt32)
    /// Root, system users, and the unit's dynamic user.
    case servicesOfUnit(Text)
    case everyoneInUnit(Text)
    case user(UInt32)

    /// The settings of a manifest that make the claim.
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

  package init() {}

  /// Returns the app whose manifest admits a container.
  package func app(container: Text) -> Text? { apps[.container(container)] }

  /// Returns the app whose manifest admits a user in a unit of the system manager.
  ///
  /// A manifest that names the user takes precedence over a manifest without `User=`, and that over one with `User=*`.
  package func app(unit: Text, userID: UInt32, _ ranges: UserRanges) -> Text? {
    if let app = apps[.userOfUnit(unit, userID)] { return app }
    if ranges.isForServices(userID), let app = apps[.servicesOfUnit(unit)] { return app }
    return apps[.everyoneInUnit(unit)]
  }

  /// Returns the app whose manifest names a user and no unit.
  package func app(userID: UInt32) -> Text? { apps[.user(userID)] }

  /// Adds the claims of manifests. If two manifests make the same claim, all claims of both are dropped.
  ///
  /// - Returns: the apps that are not served because of a conflict, and a fault with both files for each pair.
  package mutating func insert(_ entries: [Text: ManifestSurvey.Entry]) -> (refused: Set<Text>, faults: [String]) {
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
        // Two user names can have the same user ID.
        guard other.app != app else { continue }
        refused.formUnion([app, other.app])
        if named.insert(other.app).inserted {
          faults.append(
            "\(other.file) and \(entry.file) both claim \(claim.settings): neither app is served until one manifest changes"
          )
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
