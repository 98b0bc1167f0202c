/// A reference to an installed app in the table. Copying the reference retains one object instead of every text of the
/// app and its manifest.
package final class InstalledApp: OrderedElement, Equatable, Sendable {
  /// The ID of the app.
  package let key: Text
  /// The app.
  package let app: App

  package init(key: Text, app: App) {
    self.key = key
    self.app = app
  }

  /// Returns whether both apps have the same ID and are equal.
  package static func == (left: InstalledApp, right: InstalledApp) -> Bool {
    left === right || left.key == right.key && left.app == right.app
  }
}

/// The installed apps by ID, with counts per vendor and per principal.
package struct AppTable: Equatable, Sendable {
  /// The apps in the order of their IDs.
  private(set) var table = OrderedTable<InstalledApp>()
  /// The number of manifests that name a vendor.
  private var vendors = DividedDictionary<Text, Int>()
  /// The apps of each principal that is charged for all of its apps together.
  private var charged = DividedDictionary<Holder, ChargedApps>()
  /// The number of principals with such apps.
  private(set) var principals = 0
  /// The number of apps without a manifest.
  package private(set) var withoutManifest = 0
  /// The number of suspended apps.
  package private(set) var suspended = 0
  private var subordinates = SubordinateUsers()

  init() {}

  /// Loads apps in bulk, each with another ID. The result equals storing them one after the other, in less time.
  init(_ apps: [InstalledApp]) {
    let isOrdered = zip(apps, apps.dropFirst()).allSatisfy { $0.key < $1.key }
    table = OrderedTable(isOrdered ? apps : apps.sorted { $0.key < $1.key })
    // Most apps without a manifest belong to users, each of whom has few.
    charged = DividedDictionary(minimumCapacity: apps.count { $0.app.manifest == nil })
    for installed in apps {
      count(installed.app, 1)
      charge(installed.key, isInstalled: true)
    }
  }

  /// The number of installed apps.
  package var count: Int { table.count }

  /// The app with an ID.
  package subscript(id: Text) -> App? { table[id]?.app }

  func contains(_ id: Text) -> Bool { table[id] != nil }

  /// Returns whether an app is installed and not suspended.
  func isInForce(_ id: Text) -> Bool { table[id].map { $0.app.suspended == nil } ?? false }

  /// Returns whether an app is installed by a manifest and not suspended.
  package func hasManifest(_ id: Text) -> Bool {
    table[id].map { $0.app.manifest != nil && $0.app.suspended == nil } ?? false
  }

  /// All app IDs in order.
  package var keys: some Sequence<Text> { table.lazy.map(\.key) }

  /// Returns whether a vendor has an app. An app without a manifest is a vendor of its own.
  func hasAny(of vendor: Text) -> Bool {
    if vendors[vendor] != nil { return true }
    guard let app = self[vendor] else { return false }
    return app.manifest == nil
  }

  /// Returns the installed apps that a holder is charged for.
  func apps(of holder: Holder) -> Set<Text> {
    switch holder {
    case .app(let id): contains(id) ? [id] : []
    case .principal: charged[holder]?.ids ?? []
    }
  }

  /// Returns the number of these apps.
  func count(of holder: Holder) -> Int {
    guard case .principal = holder else { return apps(of: holder).count }
    return charged[holder]?.count ?? 0
  }

  /// Recomputes which holders are charged, for other subordinate users.
  mutating func use(_ subordinates: SubordinateUsers) {
    self.subordinates = subordinates
    charged = DividedDictionary()
    principals = 0
    for installed in table { charge(installed.key, isInstalled: true) }
  }

  /// Adds an app, or replaces the app with the same ID.
  mutating func store(_ app: App, as id: Text) { exchange(app, at: id) }

  mutating func remove(_ id: Text) { exchange(nil, at: id) }

  private mutating func exchange(_ app: App?, at id: Text) {
    let before = (app.map { table.store(InstalledApp(key: id, app: $0)) } ?? table.remove(id))?.app
    if let before { count(before, -1) }
    if let app { count(app, 1) }
    if (before == nil) != (app == nil) { charge(id, isInstalled: app != nil) }
  }

  private mutating func charge(_ id: Text, isInstalled: Bool) {
    let holder = Holder(of: id, subordinates)
    guard case .principal = holder else { return }
    principals += charged.update(holder) { apps in
      let before = apps == nil ? 0 : 1
      // Taken out, so that a set is changed in place.
      switch apps.take() {
      case nil: apps = isInstalled ? .one(id) : nil
      case .one(let other): apps = isInstalled ? .several([other, id]) : nil
      case .several(var ids):
        if isInstalled { ids.insert(id) } else { ids.remove(id) }
        apps = ids.count == 1 ? ids.first.map { .one($0) } : .several(ids)
      }
      return (apps == nil ? 0 : 1) - before
    }
  }

  private mutating func count(_ app: App, _ step: Int) {
    if app.suspended != nil { suspended += step }
    guard let vendor = app.manifest?.vendor else {
      withoutManifest += step
      return
    }
    let number = (vendors[vendor] ?? 0) + step
    vendors[vendor] = number == 0 ? nil : number
  }
}

extension AppTable: Sequence {
  /// Iterates over the apps in the order of their IDs.
  package func makeIterator() -> some IteratorProtocol<(key: Text, value: App)> {
    table.lazy.map { (key: $0.key, value: $0.app) }.makeIterator()
  }
}

/// The apps of a principal. Most principals have one app, for which a set would need memory of its own.
private enum ChargedApps: Equatable, Sendable {
  case one(Text)
  /// At least two.
  case several(Set<Text>)

  var ids: Set<Text> {
    switch self {
    case .one(let id): [id]
    case .several(let ids): ids
    }
  }

  var count: Int {
    switch self {
    case .one: 1
    case .several(let ids): ids.count
    }
  }
}
