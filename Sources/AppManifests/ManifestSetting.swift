import ConfigurationFiles
import IdentityCore

/// A setting in the section `[App]` of a manifest. The table `all` has every setting.
struct ManifestSetting: Sendable {
  /// The name, in the style of systemd.
  let name: String
  /// The allowed values, as a text for people.
  let allowed: String
  /// Stores a value and returns whether it is allowed. An empty value means the default (systemd.syntax(7)).
  let set: @Sendable (_ result: inout Manifest, _ value: Text, _ defaults: Manifest) -> Bool

  /// The maximum number of access groups of an app. Every request with a group is compared with all of them.
  static let accessGroups = 64

  /// The maximum number of users of an app. Each is looked up by name.
  static let users = 64

  /// The names of all rights.
  private static let rightNames = Right.allCases.map(\.rawValue).joined(separator: ", ")

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
    // A list: each line adds a user, and an empty value clears the list.
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
    // A list: each line adds groups, and an empty value clears the list.
    ManifestSetting(
      name: "AccessGroups",
      allowed: "up to \(accessGroups) names, separated by spaces, each \(Text.manifestNames)"
    ) { result, value, _ in
      let names = value.bytes.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map {
        Text(trusted: Array($0))
      }
      if names.isEmpty { result.accessGroups = [] }
      for name in names where !result.accessGroups.contains(name) { result.accessGroups.append(name) }
      return names.allSatisfy(\.isManifestName) && result.accessGroups.count <= accessGroups
    },
    choice("DeviceIdentifier", \.deviceBinding),
    choice("Proof", \.proofConsent),
    choice("VersionOrder", \.versionOrder),
    // A list: each line adds rights, and an empty value clears the list.
    ManifestSetting(name: "Rights", allowed: rightNames) { result, value, _ in
      let words = "\(value)".split { $0 == " " || $0 == "\t" }
      let given = words.compactMap { Right(rawValue: String($0)) }
      if words.isEmpty { result.rights = [] }
      result.rights.formUnion(given)
      return given.count == words.count
    },
    ManifestSetting(name: "Replaces", allowed: Text.manifestNames) { result, value, _ in
      result.replaces = value.isEmpty ? nil : value
      return value.isEmpty || value.isManifestName
    },
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
  /// Creates a manifest from the settings of a file. The last value of a repeated setting counts (systemd.syntax(7)).
  ///
  /// - Parameters:
  ///   - app: the app, which is its own vendor if no vendor is named.
  ///   - settings: the settings in the order of the file.
  ///   - isTrusted: whether the directory of the file is one whose manifests may give rights and replace apps.
  ///   - ignored: collects unknown settings, each with file and line.
  /// - Throws: the first value that is not allowed, with file, line and the allowed values.
  init(of app: Text, _ settings: [Setting], isTrusted: Bool, ignored: inout [String]) throws(ConfigurationFailure) {
    let defaults = Manifest(vendor: app)
    self = defaults
    for setting in settings {
      guard setting.section == "App", let known = ManifestSetting.all.first(where: { $0.name == setting.name }) else {
        ignored.append("\(setting.place): unknown setting [\(setting.section)] \(setting.name)=; it is ignored")
        continue
      }
      guard known.set(&self, Text(setting.value), defaults) else {
        throw ConfigurationFailure(
          place: "\(setting.place)",
          reason: "[App] \(known.name)= cannot be '\(setting.value)'; allowed: \(known.allowed)")
      }
      guard rights.isEmpty && replaces == nil || isTrusted else {
        throw ConfigurationFailure(
          place: "\(setting.place)",
          reason: "[App] \(known.name)= is refused below /run and /usr/local; "
            + "move the manifest to /etc/identityd/apps.d")
      }
      if let fault = contradiction(of: app) { throw ConfigurationFailure(place: "\(setting.place)", reason: fault) }
    }
    guard users != .everyone || unit != nil else {
      throw ConfigurationFailure(
        place: settings.last.map { "\($0.place)" } ?? "\(app)",
        reason: "[App] User=* requires Unit=: all users of the machine cannot be one app")
    }
  }

  /// The fault of settings that exclude each other, if any.
  private func contradiction(of app: Text) -> String? {
    if container != nil, unit != nil || users != .unnamed {
      return "[App] Container= cannot be combined with Unit= or User=: a container has users of its own"
    }
    if container != nil, !rights.isEmpty {
      return "[App] Container= cannot be combined with Rights=: no process in a container has rights on the host"
    }
    if container != nil, replaces != nil {
      return "[App] Container= cannot be combined with Replaces=: an image must not get the secrets of another app"
    }
    if replaces == app { return "[App] Replaces= names the app itself" }
    if rights.contains(.fleet), deviceBinding != .shared {
      return "[App] Rights=fleet requires DeviceIdentifier=shared: the fleet shows that identifier to other devices"
    }
    return nil
  }
}
