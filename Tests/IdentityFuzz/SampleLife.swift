import IdentityCore
import IdentityStore
import IdentityWire

/// A sequence of changes of many kinds, committed to a store, with the registry after each commit and all secrets.
struct SampleLife {
  /// The registries after each commit, oldest first.
  private(set) var states: [Registry] = []
  private var secrets: [UUID: [UInt8]] = [:]
  /// The state built from all events.
  private(set) var follower = Follower()

  /// The registry at the end.
  var registry: Registry { states.last ?? Registry() }

  init() {}

  /// Commits all changes, one per commit.
  mutating func live(in store: inout Store, from start: Registry) throws {
    var registry = start
    let memory = try store.makeSecretMemory()
    states = [registry]
    for change in Self.changes + (try (1...4).map { try item($0, memory) }) + Self.lastChanges {
      let recorded = registry.record(change, at: Self.time(registry.lastEvent))
      registry.apply(recorded)
      if let event = recorded.event { try follower.take(event) }
      if let refusal = store.commit([recorded], events: [recorded].events) {
        throw Finding("not committed: \(refusal)")
      }
      states.append(registry)
    }
  }

  private mutating func item(_ number: Int64, _ memory: SecretMemory) throws -> Change {
    let secret = (0..<Int(number * number * 40)).map { UInt8(truncatingIfNeeded: $0 * 7 + Int(number)) }
    var text: [UInt8] = []
    Base64.append(secret[...], to: &text)
    let sealed = try memory.encrypt { span in
      for index in text.indices { span[index] = text[index] }
      return text.count
    }
    let item = Item(
      key: ItemKey(group: "org.shared", service: "mail", account: Text("user-\(number)")), number: number,
      edition: Self.uuid(100 + UInt64(number)), owner: "user:1000", label: "a label",
      attributes: [.init(name: "url", value: "é \"quoted\"")], isThisDeviceOnly: number % 2 == 0,
      endsWithInstallation: number % 3 == 0, secretLength: secret.count, created: Self.time(number),
      modified: Self.time(number))
    secrets[item.edition] = text
    return .itemStored(item, sealed, .added)
  }

  /// Returns a change that is valid after all others.
  static func extra(after registry: Registry) -> RecordedChange {
    registry.record(.deviceListed(ListedDevice(value: uuid(999), added: time(99))), at: time(99))
  }

  // MARK: Checks of a store

  /// Checks that every served value existed at some time.
  func requireKnown(_ served: Registry) throws(Finding) {
    func known(_ what: String, _ isThere: (Registry) -> Bool) throws(Finding) {
      try require(states.contains(where: isThere), "\(what) was made up")
    }
    for (id, app) in served.apps { try known("app \(id)") { $0.apps[id] == app } }
    for identifier in served.history { try known("\(identifier.value)") { $0.history.contains(identifier) } }
    for device in served.devices { try known("\(device.value)") { $0.devices.contains(device) } }
    for item in served.items.all {
      try known("item \(item.number)") { state in
        guard let item = state.items[item.key].map({ served.itemFault == nil ? $0 : $0.undescribed }) else {
          return false
        }
        return served.items[item.key] == item
      }
    }
    for token in served.tokens.all { try known("a token") { $0.tokens[token.app, token.provider] == token } }
    for history in served.versions.all {
      for release in history.releases {
        try known("a release") { $0.versions[history.subject].releases.contains(release) }
      }
      for report in history.reports { try known("a report") { $0.versions[history.subject].reports.contains(report) } }
    }
    if let account = served.account { try known("the account") { $0.account == account } }
    if let machine = served.machine { try known("the machine") { $0.machine == machine } }
    try require(!served.isSealed && served.lastEvent <= registry.lastEvent, "it is sealed, or events were made up")
  }

  /// Checks that every readable secret is the right one.
  func requireSecrets(_ store: borrowing Store, _ served: Registry) throws {
    guard served.itemFault == nil, let reader = store.makeItemReader() else { return }
    let memory = try store.makeSecretMemory()
    for item in served.items.all {
      do {
        let secret = try store.secret(of: item)
        var text: [UInt8] = []
        let isOpened = memory.append(secret, as: .base64, to: &text)
        try require(isOpened && text == secrets[item.edition], "another secret is served")
      } catch let refusal as Refusal {
        guard case .broken = refusal else { throw refusal }
      }
      var read: [UInt8] = []
      let outcome = reader.append(secretOf: item, as: .base64, to: &read, memory)
      try require(outcome != .appended || read == secrets[item.edition], "another secret is read")
    }
  }

  // MARK: The changes

  static func uuid(_ number: UInt64) -> UUID { UUID(high: 0x4000, low: 1 << 63 | number) }
  private static func time(_ seconds: Int64) -> Timestamp {
    Timestamp(milliseconds: Scratch.start.milliseconds + seconds * 1_000)
  }

  private static let changes: [Change] = [
    .machineRecorded(MachineRecord(fingerprint: MachineFingerprint(machine: "0a", hardware: "0b"))),
    made(.device, 1, .machine), .deviceListed(ListedDevice(value: uuid(1), added: time(1))),
    .appInstalled("org.a", App(installed: time(2), manifest: manifest)),
    .appInstalled("user:1000", App(installed: time(3))), made(.installation("user:1000"), 2, .migrated),
    made(.vendor("org.v"), 3, .random), made(.deviceOfApp("org.a"), 4, .machine),
    .deviceListed(ListedDevice(value: uuid(5), name: "a \"phone\"", seen: time(4), added: time(5))),
    .accountSet("somebody"), made(.device, 6, .random, .renewed),
    .deviceReplaced(previous: uuid(1), ListedDevice(value: uuid(6), added: time(1))),
    .version(.installed(.app("org.a"), installed(1, "1.0"))), .version(.reported(.app("org.a"), reported(1, "1.0"))),
    .version(.claimed(.app("org.a"), VersionClaim(number: 1, version: "1.0", name: "migrate"))),
    .version(.installed(.app("user:1000"), installed(2, "2.0"))),
    .version(.installed(.app("user:1000"), installed(3, "2.1"))),
    .version(.reported(.app("user:1000"), reported(2, "2.1"))),
    .version(.claimed(.app("user:1000"), VersionClaim(number: 2, version: "2.1", name: "tidy"))),
  ]

  private static let lastChanges: [Change] = [
    .tokenStored(
      Token(
        number: 1, app: "user:1000", provider: "apns", value: "abc", environment: nil, topic: nil, device: uuid(6),
        isValid: true, created: time(30), changed: time(30), confirmed: time(30),
        fingerprint: Token.fingerprint(of: "abc")), .created),
    .tokenStored(
      Token(
        number: 2, app: "org.a", provider: "fcm", value: "bk3:x_y", environment: "prod", topic: "t", device: uuid(4),
        isValid: true, created: time(30), changed: time(31), confirmed: time(32),
        fingerprint: Token.fingerprint(of: "bk3:x_y")), .created),
    .identifierEnded(.installation("user:1000"), .init(time: time(33), cause: .uninstalled)),
    made(.installation("user:1000"), 7, .random), .accountSet("somebody else"),
  ]

  private static var manifest: Manifest {
    var manifest = Manifest(vendor: "org.v")
    manifest.unit = "a.service"
    manifest.accessGroups = ["org.shared"]
    manifest.deviceBinding = .app
    return manifest
  }

  private static func made(_ scope: Scope, _ number: UInt64, _ origin: Origin, _ cause: Cause = .firstUse) -> Change {
    .identifierMade(
      Identifier(scope: scope, value: uuid(number), created: time(10), origin: origin, cause: cause, author: "uid:0"))
  }

  private static func installed(_ number: Int64, _ version: Text) -> InstalledRelease {
    InstalledRelease(number: number, release: Release(version: version), installed: time(20), last: time(20))
  }

  private static func reported(_ number: Int64, _ version: Text) -> VersionReport {
    VersionReport(
      number: number, session: uuid(50), release: Release(version: version), state: .installed, previous: nil)
  }
}

extension Item {
  /// The item without its label and attributes, which only the data key decrypts.
  fileprivate var undescribed: Item {
    var item = self
    item.label = nil
    item.attributes = []
    return item
  }
}

extension Registry {
  /// Whether all stored data is equal. Ignores whether items are usable, since that depends on their key.
  func isSame(as other: Registry) -> Bool {
    guard (itemFault == nil) != (other.itemFault == nil) else { return self == other }
    return apps == other.apps && history == other.history && scopes == other.scopes && devices == other.devices
      && account == other.account && machine == other.machine && isSealed == other.isSealed
      && Set(items.all.map(\.key)) == Set(other.items.all.map(\.key)) && versions == other.versions
      && tokens == other.tokens && lastEvent == other.lastEvent
  }
}
