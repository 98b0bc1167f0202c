/// The users that a manifest admits (`User=`).
package enum AdmittedUsers: Equatable, Sendable {
  /// No `User=`: with `Unit=`, admits root, system users and the unit's dynamic user. Without `Unit=`, admits nobody.
  case unnamed
  /// The users with these names.
  case named([Text])
  /// Every user in the unit (`User=*`).
  case everyone

  /// The names of the admitted users; empty unless the users are named.
  package var names: [Text] { if case .named(let names) = self { names } else { [] } }
}

/// A right that the manifest of an app can give (`Rights=`).
package enum Right: String, CaseIterable, Sendable {
  /// The right to keep the account and its devices up to date, and to renew the shared device identifier.
  case fleet
  /// The right to ask for proofs about other apps.
  case prove
}

/// The content of an app's manifest (identityd.app(5)).
package struct Manifest: Equatable, Sendable {
  /// The device identifier that an app sees.
  package enum DeviceBinding: String, CaseIterable, Sendable {
    /// The identifier that apps share.
    case shared
    /// An identifier of the app's vendor.
    case vendor
    /// An identifier of the app alone.
    case app
  }

  /// The consent of an app with a device identifier of its own to proofs, which link it to the other apps.
  package enum ProofConsent: String, CaseIterable, Sendable {
    /// There are no proofs about the app.
    case unlinkable
    /// Proofs about the app name the identifiers that apps share.
    case linkable
  }

  /// The vendor. An app whose manifest names no vendor is a vendor of its own.
  package var vendor: Text
  /// The name of the system service that is the app.
  package var unit: Text?
  /// The name of the container that is the app, as it appears in the container's cgroup.
  package var container: Text?
  /// The users that are the app. With a unit, they are the app in that unit only.
  package var users = AdmittedUsers.unnamed
  /// The access groups that the app may use besides its own.
  package var accessGroups: [Text] = []
  /// The device identifier that the app sees (`DeviceIdentifier=`).
  package var deviceBinding = DeviceBinding.shared
  /// The consent to proofs in spite of a device identifier of its own (`Proof=`).
  package var proofConsent = ProofConsent.unlinkable
  /// The order of the app's versions (`VersionOrder=`).
  package var versionOrder = VersionOrder.numeric
  /// The rights of the app (`Rights=`).
  package var rights: Set<Right> = []
  /// The app that this one takes the place of when it is installed (`Replaces=`); nil in an installed app.
  package var replaces: Text?

  /// Creates a manifest with a vendor and otherwise default values.
  package init(vendor: Text) { self.vendor = vendor }
}

/// An installed app.
package struct App: Equatable, Sendable {
  /// The time of installation.
  package internal(set) var installed: Timestamp
  /// The manifest; nil for an app that was installed by its first use. A suspended app keeps its last one.
  package var manifest: Manifest?
  /// The folder of the manifest, without a slash at its end; nil without a manifest, and if it is not known.
  package var folder: Text?
  /// The time since which the manifest is missing; nil while the app is in force.
  ///
  /// The identifiers and the data of a suspended app stay. Its processes count as apps without a manifest.
  package var suspended: Timestamp?

  package init(installed: Timestamp, manifest: Manifest? = nil, folder: Text? = nil, suspended: Timestamp? = nil) {
    self.installed = installed
    self.manifest = manifest
    self.folder = folder
    self.suspended = suspended
  }

  /// The directories that only the administrator and packages write to. A suspended app resumes from below them in any
  /// case.
  private static let trustedPlaces: [Text] = ["/etc/", "/usr/lib/"]

  /// Returns whether a manifest in a folder is that of this suspended app.
  ///
  /// Services fill /run while they run, and /usr/local may belong to a group of users. A manifest from there must not
  /// take over the secrets of an app that was installed elsewhere.
  package func resumes(with other: Manifest, in folder: Text?) -> Bool {
    guard let manifest, manifest.vendor == other.vendor else { return false }
    guard (manifest.container == nil) == (other.container == nil) else { return false }
    if folder == self.folder { return true }
    return Self.trustedPlaces.contains { folder?.bytes.starts(with: $0.bytes) ?? false }
  }
}

/// The result of reading the manifest folders.
package enum ManifestSurvey: Equatable, Sendable {
  /// The manifest of one app, and the file that contains the manifest.
  package struct Entry: Equatable, Sendable {
    /// The path of the file.
    package let file: String
    /// The manifest; nil if the file is faulty.
    package let manifest: Manifest?
    /// The user IDs of those users in the manifest that exist.
    package let userIDs: [UInt32]
    /// The folder that contains the file; nil if the file is not a path.
    package var folder: Text? { file.lastIndex(of: "/").map { Text(String(file[..<$0])) } }

    package init(file: String, manifest: Manifest?, userIDs: [UInt32] = []) {
      self.file = file
      self.manifest = manifest
      self.userIDs = userIDs
    }
  }

  /// The entry of every app that has a manifest, and the faults, each with file and line.
  case found([Text: Entry], faults: [String])
  /// The reason why a folder could not be read. No conclusion about installed apps is possible.
  case unreadable(String)
}
