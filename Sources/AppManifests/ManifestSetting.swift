import ConfigurationFiles
import IdentityCore

/// One setting of a manifest's section `[App]`. The table below is all there are.
struct ManifestSetting: Sendable {
  /// As systemd spells names.
  let name: String
  /// What a value may be, for people.
  let allowed: String
  /// Takes a value in; false where it is not allowed. An empty value means the default (systemd.syntax(7)).
  let set: @Sendable (_ result: inout Manifest, _ value: Text, _ defaults: Manifest) -> Bool

  /// Access groups of one app: every request that names one is compared with them.
  static let accessGroups = 64

  /// Users of one app: each is looked up by its name.
  static let users = 64

  static let all: [ManifestSetting] = [
    ManifestSetting(name: "Vendor", allowed: Text.manifestNames) { result, value, defaults in
      result.vendor = value.isEmpty ? defaults.vendor : value
      return value.isEmpty || value.isManifestName
    },
    ManifestSetting(name: "Unit", allowed: Text.serviceNames) { result, value, _ in
      result.unit = value.isEmpty ? nil : value
      return value.isEmpty || value.isServiceName
    },
    ManifestSetting(name: "Container", allowed: Text.containerNames) { result, value, _ in
      result.container = value.isEmpty ? nil : value
      return value.isEmpty || value.isContainerName
    },
    // A list: each line adds a user, and an empty value begins it anew.
    ManifestSetting(name: "User", allowed: "\(Text.userNames), at most \(users) of them; or *") { result, value, _ in
      if value.isEmpty {
        result.users = .unnamed
      } else if value == "*" {
        result.users = .everyone
      } else if result.users != .everyone, !result.users.names.contains(value) {
        result.users = .named(result.users.names + [value])
      }
      return value.isEmpty || value == "*" || value.isUserName && result.users.names.count <= users
    },
    // A list: it grows with every line, and an empty value begins it anew.
    ManifestSetting(
      name: "AccessGroups",
      allowed: "up to \(accessGroups) names with spaces between, each \(Text.manifestNames)"
    ) { result, value, _ in
      let names = value.bytes.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map {
        Text(trusted: Array($0))
      }
      if names.isEmpty { result.accessGroups = [] }
      for name in names where !result.accessGroups.contains(name) { result.accessGroups.append(name) }
      return names.allSatisfy(\.isManifestName) && result.accessGroups.count <= accessGroups
    },
    choice("DeviceIdentifier", \.deviceBinding),
    choice("VersionOrder", \.versionOrder),
  ]

  private static func choice<Value: RawRepresentable<String> & CaseIterable & SendableMetatype>(
    _ name: String, _ path: any WritableKeyPath<Manifest, Value> & Sendable
  ) -> ManifestSetting {
    let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
    return ManifestSetting(name: name, allowed: allowed) { result, value, defaults in
      guard let choice = value.isEmpty ? defaults[keyPath: path] : Value(rawValue: "\(value)") else { return false }
      result[keyPath: path] = choice
      return true
    }
  }
}

extension Manifest {
  /// What the settings of one file say. Of a setting that is given twice the last counts (systemd.syntax(7)).
  ///
  /// - Parameters:
  ///   - app: the app, which is its own vendor where none is named.
  ///   - settings: in the order of the file.
  ///   - ignored: takes what is not known, each with file and line.
  /// - Throws: the first value that is not allowed, with file, line and what is allowed.
  init(of app: Text, _ settings: [Setting], ignored: inout [String]) throws(ConfigurationFailure) {
    let defaults = Manifest(vendor: app)
    self = defaults
    for setting in settings {
      guard setting.section == "App", let known = ManifestSetting.all.first(where: { $0.name == setting.name }) else {
        ignored.append("\(setting.place): there is no setting [\(setting.section)] \(setting.name)=; it is ignored")
        continue
      }
      guard known.set(&self, Text(setting.value), defaults) else {
        throw ConfigurationFailure(
          place: "\(setting.place)",
          reason: "[App] \(known.name)= cannot be '\(setting.value)'; allowed: \(known.allowed)")
      }
      if let fault = contradiction { throw ConfigurationFailure(place: "\(setting.place)", reason: fault) }
    }
    guard users != .everyone || unit != nil else {
      throw ConfigurationFailure(
        place: settings.last.map { "\($0.place)" } ?? "\(app)",
        reason: "[App] User=* takes Unit= too: everyone on the machine cannot be one app")
    }
  }

  /// Settings that exclude each other.
  private var contradiction: String? {
    guard container != nil, unit != nil || users != .unnamed else { return nil }
    return "[App] Container= excludes Unit= and User=: a container has users of its own"
  }
}
