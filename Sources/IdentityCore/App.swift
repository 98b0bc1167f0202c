/// What a manifest says of an app (protocol, section 2).
package struct Manifest: Equatable, Sendable {
  /// Which device identifier the app sees.
  package enum DeviceBinding: String, CaseIterable, Sendable {
    /// The one that all apps share.
    case shared
    /// One of its vendor's.
    case vendor
    /// One of its own.
    case app
  }

  /// The vendor; an app whose manifest names none is one of its own.
  package var vendor: Text
  /// The system service that is the app.
  package var unit: Text?
  /// The user that is the app.
  package var user: Text?
  /// The access groups it may use besides its own.
  package var accessGroups: [Text] = []
  /// `DeviceIdentifier=`.
  package var deviceBinding = DeviceBinding.shared
  /// `VersionOrder=`.
  package var versionOrder = VersionOrder.numeric

  /// A manifest that says no more than the vendor.
  package init(vendor: Text) { self.vendor = vendor }
}

/// An app that is installed.
package struct App: Equatable, Sendable {
  /// When it was installed.
  package let installed: Timestamp
  /// What its manifest says; nil for an app that was installed by its first use.
  package var manifest: Manifest?

  /// Puts an app together.
  package init(installed: Timestamp, manifest: Manifest? = nil) {
    self.installed = installed
    self.manifest = manifest
  }
}

/// What a look at the manifests' folders found.
package enum ManifestSurvey: Equatable, Sendable {
  /// What is known of one app's manifest, and the file it stands in.
  package struct Entry: Equatable, Sendable {
    /// The path of the file.
    package let file: String
    /// What it says; nil where it is faulty.
    package let manifest: Manifest?
    /// The user's number, where the manifest names a user that exists.
    package let userID: UInt32?

    /// Puts an entry together.
    package init(file: String, manifest: Manifest?, userID: UInt32? = nil) {
      self.file = file
      self.manifest = manifest
      self.userID = userID
    }
  }

  /// Every app that has a manifest, and what is wrong with some of them: each with file and line.
  case found([Text: Entry], faults: [String])
  /// A folder could not be read, and why: nothing may be concluded.
  case unreadable(String)
}

/// Which app a peer is, by its unit or its user.
package struct AppClaims: Equatable, Sendable {
  private var units: [Text: Text] = [:]
  private var users: [UInt32: Text] = [:]

  /// Nobody claims anything.
  package init() {}

  /// The app whose manifest names this system service, else the one whose manifest names this user.
  package func app(unit: Text?, userID: UInt32) -> Text? {
    if let unit, let app = units[unit] { return app }
    return users[userID]
  }

  /// Takes the claims of the manifests in. Where two name one unit or one user, neither has a claim.
  ///
  /// - Returns: the apps that are not served, and for each pair what is wrong, with both files.
  package mutating func take(_ entries: [Text: ManifestSurvey.Entry]) -> (refused: Set<Text>, faults: [String]) {
    var refused: Set<Text> = []
    var faults: [String] = []
    func compare<Key: Hashable>(_ what: String, _ key: (ManifestSurvey.Entry) -> Key?, _ text: (Key) -> String) {
      var owners: [Key: Text] = [:]
      for (app, entry) in entries.sorted(by: { $0.key < $1.key }) {
        guard let wanted = key(entry) else { continue }
        guard let other = owners[wanted], let file = entries[other]?.file else {
          owners[wanted] = app
          continue
        }
        refused.formUnion([app, other])
        faults.append("\(file) and \(entry.file) both say \(what)=\(text(wanted)): neither is served")
      }
    }
    compare("Unit", { $0.manifest?.unit }, { "\($0)" })
    compare("User", { $0.userID }, { "\($0)" })
    for (app, entry) in entries where !refused.contains(app) {
      if let unit = entry.manifest?.unit { units[unit] = app }
      if let user = entry.userID { users[user] = app }
    }
    return (refused, faults)
  }
}
