/// An installed app with its ID, as it is stored.
package struct AppRecord: StoredRecord {
  package static let table = RecordTable("app", of: Self.self, place: 1, .apps)

  /// The ID of the app.
  package var id: Text
  /// The app.
  package var app: App

  package init(id: Text, app: App) {
    self.id = id
    self.app = app
  }

  package init() { self.init(id: .empty, app: App(installed: .epoch)) }

  /// Without a manifest, all of its columns are NULL.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("id", &id)
    var vendor = app.manifest?.vendor
    var unit = app.manifest?.packedUnit
    var users = app.manifest?.packedUsers
    var grants = app.manifest?.packedGrants
    var binding = app.manifest?.deviceBinding
    var order = app.manifest?.versionOrder
    fields.field("vendor", &vendor)
    fields.field("unit", &unit)
    fields.field("user", &users)
    fields.field("access_groups", &grants)
    fields.field("device_identifier", &binding)
    fields.field("version_order", &order)
    fields.field("installed", &app.installed)
    guard fields.isReading else { return }
    app.manifest = nil
    if let vendor, let grants, let binding, let order {
      var manifest = Manifest(vendor: vendor)
      manifest.packedUnit = unit
      manifest.packedUsers = users
      manifest.deviceBinding = binding
      manifest.versionOrder = order
      if !manifest.grant(grants) { fields.refuse() }
      app.manifest = manifest
    } else if vendor != nil || unit != nil || users != nil || grants != nil || binding != nil || order != nil {
      fields.refuse()
    }
  }
}

extension Manifest.DeviceBinding: StoredWord {}
extension VersionOrder: StoredWord {}

extension Manifest {
  /// The prefix of `unit` for a container. The name of a service has no slash.
  private static let containerMark = Array("container/".utf8)

  /// The column `unit`: the name of the service, or `container/NAME`.
  fileprivate var packedUnit: Text? {
    get { container.map { Text(trusted: Self.containerMark + $0.bytes) } ?? unit }
    set {
      guard let newValue, newValue.bytes.starts(with: Self.containerMark) else { return unit = newValue }
      container = Text(trusted: Array(newValue.bytes.dropFirst(Self.containerMark.count)))
    }
  }

  /// The column `user`: names of users, joined by spaces, which no name contains, or `*` for everyone.
  fileprivate var packedUsers: Text? {
    get {
      switch users {
      case .unnamed: nil
      case .named(let names): Text(trusted: Array(names.map(\.bytes).joined(separator: [UInt8(ascii: " ")])))
      case .everyone: "*"
      }
    }
    set {
      users =
        switch newValue {
        case nil: .unnamed
        case "*"?: .everyone
        case let names?: .named(names.bytes.split(separator: UInt8(ascii: " ")).map { Text(trusted: Array($0)) })
        }
    }
  }

  /// The prefix of a right in `access_groups`. The name of an access group has no slash.
  private static let rightMark = Array("right/".utf8)

  /// The column `access_groups`: the names of the groups, and `right/NAME` for each right, joined by spaces.
  fileprivate var packedGrants: Text {
    let names = Right.allCases.filter(rights.contains).map { Self.rightMark + $0.rawValue.utf8 }
    return Text(trusted: Array((accessGroups.map(\.bytes) + names).joined(separator: [UInt8(ascii: " ")])))
  }

  /// Takes over the words of the column `access_groups`. Returns false if a right is unknown.
  fileprivate mutating func grant(_ grants: Text) -> Bool {
    for word in grants.bytes.split(separator: UInt8(ascii: " ")) {
      if word.starts(with: Self.rightMark) {
        let name = String(decoding: word.dropFirst(Self.rightMark.count), as: UTF8.self)
        guard let right = Right(rawValue: name) else { return false }
        rights.insert(right)
      } else {
        accessGroups.append(Text(trusted: Array(word)))
      }
    }
    return true
  }
}

/// The last use of an app, or the present day of the daemon, as it is stored.
package struct AppUseRecord: StoredRecord {
  package static let table = RecordTable("app_use", of: Self.self, place: 11, .uses)

  /// The ID of the app; empty for the daemon itself, because no app has an empty ID.
  package var id: Text
  /// The day.
  package var use: AppUse

  /// Creates a record.
  ///
  /// - Parameter app: the ID of the app; nil for the daemon itself.
  package init(of app: Text?, _ use: AppUse) {
    id = app ?? .empty
    self.use = use
  }

  package init() { self.init(of: nil, AppUse(day: 0, date: Day(number: 0))) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("id", &id)
    fields.field("day", &use.day)
    fields.field("date", &use.date.number)
  }
}
