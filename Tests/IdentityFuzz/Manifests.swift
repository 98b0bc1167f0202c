import ConfigurationFiles
import IdentityCore

@testable import AppManifests

/// The content of an app's manifest. It must parse, or be refused with its line.
final class ManifestTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    var ignored: [String] = []
    do throws(ConfigurationFailure) {
      let settings = try INIFile.parse(input, file: "org.example.app")
      let manifest = try Manifest(of: "org.example", settings, isTrusted: true, ignored: &ignored)
      try check(manifest)
      // Every setting must be either known or reported as ignored.
      let known = settings.count { setting in
        setting.section == "App" && ManifestSetting.all.contains { $0.name == setting.name }
      }
      try Self.require(known + ignored.count == settings.count, "a setting was passed over")
    } catch {
      if error.place.isEmpty { throw Finding(error.reason) }
    }
  }

  private func check(_ manifest: Manifest) throws(ConfigurationFailure) {
    try Self.require(manifest.vendor.isPlainName, "vendor \(manifest.vendor)")
    try Self.require(manifest.accessGroups.allSatisfy(\.isPlainName), "groups \(manifest.accessGroups)")
    try Self.require(Set(manifest.accessGroups).count == manifest.accessGroups.count, "a group stands there twice")
    try Self.require(manifest.accessGroups.count <= 64, "\(manifest.accessGroups.count) groups")
    if let unit = manifest.unit { try Self.require("\(unit)".hasSuffix(".service"), "unit \(unit)") }
    if let container = manifest.container {
      try Self.require(container.isPlainName && manifest.unit == nil, "container \(container)")
      try Self.require(manifest.users == .unnamed, "a container with users")
    }
    try Self.require(manifest.users != .everyone || manifest.unit != nil, "everyone without a unit")
    try Self.require(manifest.users.names.count <= 64, "\(manifest.users.names.count) users")
    for user in manifest.users.names {
      // A number, or an empty name, would mean another user.
      let isNumber = user.bytes.allSatisfy { (0x30...0x39).contains($0) }
      try Self.require(!isNumber && !user.bytes.contains(0x2f), "user \(user)")
    }
  }

  private static func require(_ holds: Bool, _ what: String) throws(ConfigurationFailure) {
    guard holds else { throw ConfigurationFailure(place: "", reason: what) }
  }
}

extension Text {
  /// Whether the text is a plain name: no colon, slash, space or line feed.
  fileprivate var isPlainName: Bool {
    (1...Bound.nameLength).contains(bytes.count)
      && !bytes.contains { $0 <= 0x20 || $0 >= 0x7f || $0 == 0x3a || $0 == 0x2f }
  }
}
