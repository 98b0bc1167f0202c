import Foundation

// Identifiers, and the devices of the account: IDENTIFIERS in identityd-protocol(7).
extension ReferenceModel {
  /// The owner of an identifier.
  struct Scope: Equatable, Sendable {
    let level: String
    let app: String?
    let vendor: String?

    init(_ level: String, app: String? = nil, vendor: String? = nil) {
      self.level = level
      self.app = app
      self.vendor = vendor
    }
  }

  struct Identifier: Sendable {
    let scope: Scope
    let value: String
    let from: String
    let cause: String
    let origin: String
    let author: String
    var until: String?
    var ended: String?
  }

  struct Device: Sendable {
    var value: String
    var name: String?
    var seen: String?
    let added: String
  }

  /// The identifiers in force, in the order of their creation.
  var current: [Identifier] { identifiers.filter { $0.until == nil } }

  func current(_ scope: Scope) -> Identifier? { identifiers.first { $0.until == nil && $0.scope == scope } }

  private func scope(_ level: String, _ app: String) throws(Fault) -> Scope {
    switch level {
    case "device": return deviceScope(of: app)
    case "vendor": return Scope(level, vendor: vendor(of: app))
    case "installation": return Scope(level, app: app)
    default: throw .badArgument
    }
  }

  func audience(of scope: Scope) -> Audience {
    if let app = scope.app { return .app(app) }
    return scope.vendor.map { .vendor($0) } ?? .sharing
  }

  /// Returns `app=` and `vendor=` of a scope. The vendor of an installation is that of its app.
  func whose(_ scope: Scope) -> String {
    let vendor = scope.level == "installation" ? scope.app.map { self.vendor(of: $0) } : scope.vendor
    return said("app", scope.app) + said("vendor", vendor)
  }

  // MARK: Changes

  mutating func end(_ scope: Scope, _ cause: String) {
    guard let place = identifiers.firstIndex(where: { $0.until == nil && $0.scope == scope }) else { return }
    identifiers[place].until = time
    identifiers[place].ended = cause
    let attributes = " value=\(identifiers[place].value) cause=\(cause)\(whose(scope))"
    tell(scope.level, "ended", attributes, to: audience(of: scope))
  }

  private mutating func put(
    _ scope: Scope, _ value: String, _ cause: String, _ origin: String, isCopy: Bool = false
  ) {
    let before = identifiers.firstIndex { $0.until == nil && $0.scope == scope }
    let previous = before.map { identifiers[$0].value }
    if let before {
      identifiers[before].until = time
      identifiers[before].ended = cause
    }
    identifiers.append(
      Identifier(scope: scope, value: value, from: time, cause: cause, origin: origin, author: peer.author))
    let attributes = " value=\(value)\(said("previous", previous)) cause=\(cause)\(whose(scope))"
    tell(scope.level, before == nil ? "created" : "changed", attributes, to: audience(of: scope))
    rehome(scope, isCopy: isCopy)
    if scope == Scope("device") { list(value, previous, isCopy: isCopy) }
  }

  /// Adds this device to the list of devices. A changed identifier keeps its position, but that of an original stays.
  private mutating func list(_ value: String, _ previous: String?, isCopy: Bool) {
    let place = devices.firstIndex { $0.value == previous }
    if isCopy, !account.isEmpty, let place {
      devices.append(Device(value: value, name: devices[place].name, added: time))
      tell("devices", "added", " value=\(value)", to: .sharing)
      if fleet != (0, 0, []) { original = original ?? previous }
    } else if devices.contains(where: { $0.value == value }) {
      if let place { unlist(place) }
    } else if let place, let previous {
      devices[place].value = value
      tell("devices", "replaced", " value=\(value) previous=\(previous)", to: .sharing)
    } else {
      devices.append(Device(value: value, added: time))
      tell("devices", "added", " value=\(value)", to: .sharing)
    }
  }

  /// Makes the identifier at the first use of a scope. The one derived from the machine-id is used only once.
  mutating func make(_ scope: Scope) {
    let fromMachine = "<u:\([scope.level, scope.app ?? "", scope.vendor ?? ""].joined(separator: ","))>"
    let isSpent = identifiers.contains { $0.scope == scope && $0.value == fromMachine }
    if scope.level == "device", hasMachine, !isSpent {
      put(scope, fromMachine, "first-use", "machine")
    } else {
      put(scope, draw(), "first-use", "random")
    }
  }

  // MARK: Verbs

  mutating func get(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    let scope = try scope(request.word(0), app)
    if current(scope) == nil {
      try requireOpen()
      if scope.level != "device" { use(app) }
      make(scope)
    }
    guard let found = current(scope) else { throw .notFound }
    let origin = scope.level == "device" || found.origin != "random" ? found.origin : nil
    return ["OK \(found.value) level=\(scope.level)\(whose(scope)) created=\(found.from)\(said("origin", origin))"]
  }

  mutating func renew(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    let scope = try scope(request.word(0), app)
    guard scope.level == "device" || apps[app] != nil else { throw .notFound }
    // Renewing the shared device identifier renews the others too: an old one would link it to its successor.
    let others = scope == Scope("device") ? current.map(\.scope).filter { $0.level == "device" && $0 != scope } : []
    guard request["dry-run"] != "yes" else {
      return rows(([scope] + others).compactMap { current($0) }.map(describe))
    }
    try requireOpen()
    let previous = current(scope)?.value ?? ""
    let cause = isCloned && scope == Scope("device") ? "cloned" : "renewed"
    let isCopy = isCloned && scope == Scope("device") && request["replaces"] != "yes"
    for each in [scope] + others { put(each, draw(), cause, "random", isCopy: isCopy) }
    if isCopy { for place in items.indices { items[place].isOriginals = true } }
    if scope == Scope("device") { isCloned = false }
    if scope == Scope("device"), request["replaces"] == "yes" { regain() }
    return ["OK \(current(scope)?.value ?? "") previous=\(word(previous))"]
  }

  func history(_ request: Request) throws(Fault) -> [String] {
    let scope = try scope(
      request.word(0), app(request["app"], isRemembered: request.word(0) == "installation"))
    return rows(
      identifiers.filter { $0.scope == scope }.map {
        "\($0.value) from=\($0.from)\(said("until", $0.until)) cause=\($0.cause)\(said("ended", $0.ended))"
          + " origin=\($0.origin) by=\($0.author)"
      })
  }

  func resolve(_ request: Request) throws(Fault) -> [String] {
    let readable = identifiers.filter { $0.value == request.word(0) && sees(peer, audience(of: $0.scope)) }
    guard let found = readable.last(where: { $0.until == nil }) ?? readable.last else { throw .notFound }
    let now = found.until == nil ? nil : current(found.scope)?.value
    return [
      "OK \(found.scope.level) current=\(found.until == nil ? "yes" : "no")\(said("now", now))\(whose(found.scope))"
    ]
  }

  mutating func migrate(_ request: Request) throws(Fault) -> [String] {
    var value = request.word(1)
    if request["item"] != nil {
      let place = try unlockedPlace(request, account: "item")
      _ = try app(request["app"])
      try requireOpen()
      guard let secret = Self.uuid(inBase64: items[place].data) else { throw .invalidUUID }
      value = secret
    }
    let app = try app(request["app"])
    let forces = request["force"] == "yes"
    guard !forces || peer.isAdmin else { throw .denied }
    let scope = try scope(request.word(0), app)
    let previous = current(scope)?.value
    if value != previous {
      guard previous == nil || forces else { throw .conflict }
      guard scope != Scope("device") || !devices.contains(where: { $0.value == value }) else { throw .conflict }
      try requireOpen()
      if request["commit"] == "yes" {
        if scope.level != "device" { use(app) }
        put(scope, value, "migrated", "migrated")
        if scope == Scope("device") { isCloned = false }
      }
    }
    let commits = request["commit"] == "yes" ? "yes" : "no"
    return [
      "OK \(value) changed=\(value == previous ? "no" : "yes") committed=\(commits) previous=\(word(previous ?? ""))"
    ]
  }

  private static func uuid(inBase64 text: String) -> String? {
    guard let data = Data(base64Encoded: text), let plain = String(data: data, encoding: .utf8) else { return nil }
    return UUID(uuidString: plain).map { $0.uuidString.lowercased() }
  }

  // MARK: The account and its devices

  func tellAccount() throws(Fault) -> [String] {
    _ = try app(nil)
    guard sees(peer, .sharing) else { throw .denied }
    return ["OK \(word(account))"]
  }

  /// Sets the account. The first account takes over the listed devices. Another account, or none, keeps
  /// only this device.
  mutating func setAccount(_ name: String, dryRun: Bool) throws(Fault) -> [String] {
    let isFirst = account.isEmpty && !name.isEmpty
    let keepsAll = name == account && !name.isEmpty || isFirst
    let others = keepsAll ? [] : devices.map(\.value).filter { $0 != current(Scope("device"))?.value }
    guard !dryRun else {
      let leaving = devices.filter { others.contains($0.value) }
      return rows(leaving.map { row($0, isSelf: false) }).dropLast() + [
        "OK \(leaving.count)\(said("previous", name == account || account.isEmpty ? nil : account))"
      ]
    }
    guard name != account || !others.isEmpty || !keepsAll && !records.isEmpty else { return ["OK"] }
    try requireOpen()
    if name != account {
      account = name
      tell("account", "changed", " value=\(word(name))", to: .sharing)
    }
    for value in others.reversed() {
      if let place = devices.firstIndex(where: { $0.value == value }) { unlist(place) }
    }
    if !keepsAll { records = [] }
    return ["OK"]
  }

  /// Returns a row of the dry runs of `renew` and `seal`.
  func describe(_ identifier: Identifier) -> String {
    "\(identifier.scope.level) \(identifier.value)\(said("app", identifier.scope.app))"
      + said("vendor", identifier.scope.vendor)
  }

  func listDevices() throws(Fault) -> [String] {
    _ = try app(nil)
    let scope = deviceScope(of: peer.app)
    let own = current(scope)
    // An app with its own device identifier sees no other device.
    let single = own.map { [Device(value: $0.value, added: $0.from)] } ?? []
    let listed = scope == Scope("device") ? devices : single
    return rows(
      listed.map {
        row($0, isSelf: $0.value == own?.value)
          + (scope == Scope("device") && isSuspect($0.value) ? " suspect=yes" : "")
      })
  }

  private func row(_ device: Device, isSelf: Bool) -> String {
    "\(device.value) self=\(isSelf ? "yes" : "no")\(said("name", device.name))\(said("seen", device.seen))"
      + " added=\(device.added)"
  }

  mutating func putDevice(_ request: Request) throws(Fault) -> [String] {
    let value = request.word(0)
    let place = devices.firstIndex { $0.value == value }
    if let place {
      let (name, seen) = (request["name"] ?? devices[place].name, request["seen"] ?? devices[place].seen)
      guard name != devices[place].name || seen != devices[place].seen else { return ["OK"] }
      try requireOpen()
      rename(place, name)
      devices[place].seen = seen
    } else {
      try requireOpen()
      devices.append(Device(value: value, name: request["name"], seen: request["seen"], added: time))
      tell("devices", "added", " value=\(value)", to: .sharing)
    }
    return ["OK"]
  }

  mutating func openFleet(_ run: String) throws(Fault) -> [String] {
    if current(Scope("device")) == nil || fleet.runs.first != run {
      try requireOpen()
      if current(Scope("device")) == nil { make(Scope("device")) }
      fleet.runs = Array(([run] + fleet.runs.filter { $0 != run }).prefix(16))
    }
    let own = current(Scope("device"))?.value ?? ""
    let name = account.isEmpty ? "" : " account=\(word(account))"
    return fleet.runs.dropFirst().map { "* run \($0)" } + [
      "OK \(own) generation=\(fleet.generation) counter=\(fleet.counter) home=<fhome>\(name)"
        + said("original", original)
    ]
  }

  mutating func nextCounter(above: Int) throws(Fault) -> [String] {
    try requireOpen()
    fleet.counter = max(fleet.counter, above) + 1
    return ["OK \(fleet.counter)"]
  }

  mutating func nameDevice(_ name: String) throws(Fault) -> [String] {
    let own = current(Scope("device"))?.value
    if let own, let place = devices.firstIndex(where: { $0.value == own }), devices[place].name == name {
      return ["OK"]
    }
    try requireOpen()
    if own == nil { make(Scope("device")) }
    guard let place = devices.firstIndex(where: { $0.value == current(Scope("device"))?.value }) else {
      throw .notFound
    }
    rename(place, name)
    return ["OK"]
  }

  mutating func rename(_ place: Int, _ name: String?) {
    guard let name, devices[place].name != name else { return }
    devices[place].name = name
    tell("devices", "changed", " value=\(devices[place].value) name=\(word(name))", to: .sharing)
  }

  mutating func removeDevice(_ value: String) throws(Fault) -> [String] {
    guard let place = devices.firstIndex(where: { $0.value == value }) else { throw .notFound }
    guard value != current(Scope("device"))?.value else { throw .conflict }
    try requireOpen()
    unlist(place)
    return ["OK"]
  }

  mutating func unlist(_ place: Int) {
    tell("devices", "removed", " value=\(devices.remove(at: place).value)", to: .sharing)
  }
}
