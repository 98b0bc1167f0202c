/// The installed apps by their ID, and what has to be known of all of them together.
package struct AppTable: Equatable, Sendable {
  private var apps = DividedDictionary<Text, App>()
  /// How many manifests name a vendor.
  private var vendors = DividedDictionary<Text, Int>()
  /// The apps of each principal that is charged for all of its apps together.
  private var charged = DividedDictionary<Holder, Set<Text>>()
  /// How many principals have such apps.
  private(set) var principals = 0
  /// How many have no manifest.
  package private(set) var withoutManifest = 0
  /// Which users are subordinate to which.
  private var subordinates = SubordinateUsers()

  /// There is none.
  init() {}

  /// Holds apps with their IDs.
  init(_ apps: [(Text, App)]) {
    self.apps = DividedDictionary(minimumCapacity: apps.count)
    for (id, app) in apps { exchange(app, at: id) }
  }

  /// How many there are.
  package var count: Int { apps.count }

  /// The app with an ID.
  package subscript(id: Text) -> App? { apps[id] }

  /// Whether there is an app with an ID.
  func contains(_ id: Text) -> Bool { apps.contains(id) }

  /// Every ID, in no order.
  package var keys: some Sequence<Text> { apps.keys }

  /// Whether a vendor has an app; one without a manifest is a vendor of its own.
  func hasAny(of vendor: Text) -> Bool {
    if vendors[vendor] != nil { return true }
    guard let app = apps[vendor] else { return false }
    return app.manifest == nil
  }

  /// The apps that a holder is charged for, as far as these are installed.
  func apps(of holder: Holder) -> Set<Text> {
    switch holder {
    case .app(let id): contains(id) ? [id] : []
    case .principal: charged[holder] ?? []
    }
  }

  /// Charges the holders anew.
  mutating func use(_ subordinates: SubordinateUsers) {
    self.subordinates = subordinates
    charged = DividedDictionary()
    principals = 0
    for id in apps.keys { charge(id, isInstalled: true) }
  }

  /// Takes an app in, in the place of one with the same ID.
  mutating func store(_ app: App, as id: Text) { exchange(app, at: id) }

  /// Lets go of an app.
  mutating func remove(_ id: Text) { exchange(nil, at: id) }

  private mutating func exchange(_ app: App?, at id: Text) {
    let before = apps.exchange(app, forKey: id)
    if let before { count(before, -1) }
    if let app { count(app, 1) }
    if (before == nil) != (app == nil) { charge(id, isInstalled: app != nil) }
  }

  private mutating func charge(_ id: Text, isInstalled: Bool) {
    let holder = Holder(of: id, subordinates)
    guard case .principal = holder else { return }
    var ids = apps(of: holder)
    if ids.isEmpty { principals += 1 }
    // The only reference, so that nothing is copied.
    charged[holder] = nil
    if isInstalled { ids.insert(id) } else { ids.remove(id) }
    if ids.isEmpty { principals -= 1 } else { charged[holder] = ids }
  }

  private mutating func count(_ app: App, _ step: Int) {
    guard let vendor = app.manifest?.vendor else {
      withoutManifest += step
      return
    }
    let number = (vendors[vendor] ?? 0) + step
    vendors[vendor] = number == 0 ? nil : number
  }
}

extension AppTable: Sequence {
  /// Every app with its ID, in no order.
  package func makeIterator() -> some IteratorProtocol<(key: Text, value: App)> { apps.makeIterator() }
}
