/// The users that a manifest admits (`User=`).
package enum AdmittedUsers: Equatable, Sendable {
  /// It names none: of its unit root, system users and the unit's dynamic user; without a unit nobody.
  case unnamed
  /// These, by their names.
  case named([Text])
  /// Everyone in its unit.
  case everyone

  /// The names.
  package var names: [Text] { if case .named(let names) = self { names } else { [] } }
}

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
  /// The container that is the app, by the name that its control group has.
  package var container: Text?
  /// The users that are the app; with a unit, in that unit alone.
  package var users = AdmittedUsers.unnamed
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
    /// The numbers of those users that the manifest names and that exist.
    package let userIDs: [UInt32]

    /// Puts an entry together.
    package init(file: String, manifest: Manifest?, userIDs: [UInt32] = []) {
      self.file = file
      self.manifest = manifest
      self.userIDs = userIDs
    }
  }

  /// Every app that has a manifest, and what is wrong with some of them: each with file and line.
  case found([Text: Entry], faults: [String])
  /// A folder could not be read, and why: nothing may be concluded.
  case unreadable(String)
}
