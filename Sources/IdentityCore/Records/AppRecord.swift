/// An installed app with its ID, as it is stored.
package struct AppRecord: StoredRecord {
  package static let table = RecordTable("app", of: Self.self, digestIndex: 1, .apps)

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
    let written = fields.isReading ? nil : app.manifest
    var vendor = written?.vendor
    var unit = written?.unit
    var container = written?.container
    var users = written?.joinedUsers
    var groups = written.map { Text(joining: $0.accessGroups) }
    var rights = written?.joinedRights
    var binding = written?.deviceBinding
    var order = written?.versionOrder
    var consent = written?.proofConsent
    fields.field("vendor", &vendor)
    fields.field("unit", &unit)
    fields.field("container", &container, since: 3)
    fields.field("user", &users)
    fields.field("access_groups", &groups)
    fields.field("rights", &rights, since: 3)
    fields.field("device_identifier", &binding)
    fields.field("version_order", &order)
    fields.field("installed", &app.installed)
    fields.field("folder", &app.folder, since: 5)
    fields.field("suspended", &app.suspended, since: 5)
    fields.field("proof_consent", &consent, since: 6)
    guard fields.isReading else { return }
    app.manifest = nil
    if fields.version < 3 { Self.divide(&unit, &container, &groups, &rights) }
    if let vendor, let groups, let rights, let binding, let order {
      var manifest = Manifest(vendor: vendor)
      manifest.unit = unit
      manifest.container = container
      manifest.joinedUsers = users
      manifest.accessGroups = groups.words
      manifest.deviceBinding = binding
      manifest.versionOrder = order
      if let consent { manifest.proofConsent = consent } else if fields.version >= 6 { fields.refuse() }
      if !manifest.grant(rights) { fields.refuse() }
      app.manifest = manifest
    } else if vendor != nil || unit != nil || container != nil || users != nil || groups != nil || rights != nil
      || binding != nil || order != nil || app.folder != nil || app.suspended != nil
      || consent != nil
    {
      fields.refuse()
    }
  }

  /// Divides the columns of schema version 2, of which `unit` had `container/NAME` for a container, and `access_groups`
  /// had `right/NAME` for each right. No name of a service or of a group has a slash.
  private static func divide(
    _ unit: inout Text?, _ container: inout Text?, _ groups: inout Text?, _ rights: inout Text?
  ) {
    let containerMark = Array("container/".utf8)
    let rightMark = Array("right/".utf8)
    if let both = unit, both.bytes.starts(with: containerMark) {
      container = Text(trusted: Array(both.bytes.dropFirst(containerMark.count)))
      unit = nil
    }
    guard let both = groups?.words else { return }
    let marked = both.filter { $0.bytes.starts(with: rightMark) }
    groups = Text(joining: both.filter { !$0.bytes.starts(with: rightMark) })
    rights = Text(joining: marked.map { Text(trusted: Array($0.bytes.dropFirst(rightMark.count))) })
  }
}

extension Manifest.DeviceBinding: StoredWord {}
extension Manifest.ProofConsent: StoredWord {}
extension VersionOrder: StoredWord {}

extension Manifest {
  /// The column `user`: names of users, joined by spaces, which no name contains, or `*` for everyone.
  fileprivate var joinedUsers: Text? {
    get {
      switch users {
      case .unnamed: nil
      case .named(let names): Text(joining: names)
      case .everyone: "*"
      }
    }
    set {
      users =
        switch newValue {
        case nil: .unnamed
        case "*"?: .everyone
        case let names?: .named(names.words)
        }
    }
  }

  /// The column `rights`: the words of the rights, joined by spaces.
  fileprivate var joinedRights: Text {
    Text(joining: Right.allCases.filter(rights.contains).map { Text($0.rawValue) })
  }

  /// Takes over the words of the column `rights`. Returns false if a right is unknown.
  fileprivate mutating func grant(_ words: Text) -> Bool {
    let found = words.words.map { Right(rawValue: $0.description) }
    rights = Set(found.compactMap(\.self))
    return found.count == rights.count
  }
}

extension Text {
  /// Joins words with spaces. No word contains a space.
  init(joining words: [Text]) {
    self.init(trusted: Array(words.map(\.bytes).joined(separator: [UInt8(ascii: " ")])))
  }

  /// The words that spaces join.
  var words: [Text] { bytes.split(separator: UInt8(ascii: " ")).map { Text(trusted: Array($0)) } }
}

/// The last use of an app, as it is stored.
package struct AppUseRecord: StoredRecord {
  package static let table = RecordTable("app_use", of: Self.self, digestIndex: 11, .uses)

  /// The ID of the app; in schema version 2, empty for the daemon itself.
  package var id: Text
  /// The day.
  package var use: AppUse

  package init(of app: Text, _ use: AppUse) {
    id = app
    self.use = use
  }

  package init() { self.init(of: .empty, AppUse(day: 0, date: Day(number: 0))) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.field("id", &id)
    fields.field("day", &use.day)
    fields.field("date", &use.date.number)
  }
}

/// The present day of the daemon: the only row of its table.
package struct DayRecord: StoredRecord {
  package static let table = RecordTable("day", of: Self.self, digestIndex: 15, .uses, since: 3)

  /// The day.
  package var use: AppUse

  package init(_ use: AppUse) { self.use = use }

  package init() { self.init(AppUse(day: 0, date: Day(number: 0))) }

  package mutating func visit(_ fields: inout some FieldVisitor) {
    fields.only()
    fields.field("day", &use.day)
    fields.field("date", &use.date.number)
  }
}
