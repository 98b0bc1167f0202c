/// The installed apps by their ID, and what has to be known of all of them together.
package struct AppTable: Equatable, Sendable {
  private var apps = DividedDictionary<Text, App>()
  /// How many manifests name a vendor.
  private var vendors = DividedDictionary<Text, Int>()
  /// Each user's own services.
  private var services = DividedDictionary<UInt32, Set<Text>>()
  /// How many have no manifest.
  package private(set) var withoutManifest = 0

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

  /// A user's own services.
  func services(of user: UInt32) -> Set<Text> { services[user] ?? [] }

  /// Takes an app in, in the place of one with the same ID.
  mutating func store(_ app: App, as id: Text) { exchange(app, at: id) }

  /// Lets go of an app.
  mutating func remove(_ id: Text) { exchange(nil, at: id) }

  private mutating func exchange(_ app: App?, at id: Text) {
    let before = apps.exchange(app, forKey: id)
    if let before { count(before, -1) }
    if let app { count(app, 1) }
    guard (before == nil) != (app == nil), let user = id.owner else { return }
    var ids = services(of: user)
    services[user] = nil
    if app == nil { ids.remove(id) } else { ids.insert(id) }
    if !ids.isEmpty { services[user] = ids }
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
