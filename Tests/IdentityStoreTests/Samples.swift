import IdentityCore

extension Registry {
  init(applying batches: [[Change]]) {
    self.init()
    for change in batches.joined() { apply(change) }
  }

  /// Records and applies changes, and returns them with their events.
  mutating func recorded(_ changes: [Change]) -> [RecordedChange] {
    changes.map { change in
      let recorded = record(change, at: Timestamp(milliseconds: start.milliseconds + lastEvent))
      apply(recorded)
      return recorded
    }
  }

  /// Whether everything in this registry is also in the other one: nothing was made up or altered.
  func isPart(of other: Registry) -> Bool {
    apps.allSatisfy { other.apps[$0.key] == $0.value }
      && history.allSatisfy { other.history.contains($0) }
      && scopes.allSatisfy { self[$0] == other[$0] }
      && devices.allSatisfy { other.devices.contains($0) }
      && records.all.allSatisfy { other.records[$0.device] == $0 } && (fleet == nil || fleet == other.fleet)
      && (account == nil || account == other.account)
      && (machine == nil || machine == other.machine)
      && (!isSealed || other.isSealed) && proofKeys.allSatisfy { other.proofKeys.contains($0) }
      && items.all.allSatisfy { item in other.items[item.key].map { itemFault == nil ? $0 : $0.undescribed } == item }
      && versions.all.allSatisfy { $0.isPart(of: other.versions[$0.subject]) }
      && tokens.all.allSatisfy { other.tokens[$0.app, $0.provider] == $0 }
      && lastEvent <= other.lastEvent
  }
}

/// Returns the change that brings an identifier into force.
func made(
  _ scope: Scope, _ value: UUID, _ origin: Origin, _ cause: Cause = .firstUse, at time: Timestamp = start,
  by author: Text? = nil
) -> Change {
  .identifierMade(
    Identifier(scope: scope, value: value, created: time, origin: origin, cause: cause, author: author))
}

/// The change that gives the device its identifier.
let deviceMade = made(.device, uuid(1), .machine, at: Timestamp(milliseconds: 1_700_000_000_123))

/// Returns the changes that install the app with a number and give it its identifier.
func installed(_ number: Int) -> [Change] {
  let app = Text("unit:app-\(number).service")
  let time = Timestamp(milliseconds: 1_700_000_001_000 + Int64(number))
  return [
    .appInstalled(app, App(installed: time, manifest: Manifest(vendor: Text("vendor-\(number % 3)")))),
    made(.installation(app), uuid(1_000 + UInt64(number)), .random, at: time, by: "uid:0"),
  ]
}

/// Returns one transaction with the device's identifier, then one for each of this number of apps.
func sample(apps: Int) -> [[Change]] { [[deviceMade]] + (0..<apps).map(installed) }

/// Returns a version 4 UUID, a different one for each number.
func uuid(_ number: UInt64) -> UUID {
  UUID(high: 0x1111_1111_1111_1111, low: number &* 0x9e37_79b9_7f4a_7c15).stamped(version: 4)
}

/// Returns the proof key with a number.
func proofKey(_ number: Int64, machine: Text? = "digest", leaves: Timestamp? = nil) -> StoredProofKey {
  StoredProofKey(
    number: number,
    pair: ProofKeyPair(
      identifier: Text("key-\(number)"), x: "x", y: "y", sealed: [UInt8](repeating: UInt8(number), count: 178)),
    device: uuid(1), machine: machine, created: later(number), signs: later(number + 60), leaves: leaves)
}

/// Returns the time so many seconds after the start.
func later(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: start.milliseconds + seconds * 1_000) }

/// An app whose manifest has most settings.
let fullApp = App(
  installed: later(1),
  manifest: {
    var manifest = Manifest(vendor: "com.example")
    manifest.unit = "example.service"
    manifest.users = .named(["example"])
    manifest.accessGroups = ["com.example.shared", "com.example.files", "é"]
    manifest.deviceBinding = .app
    manifest.versionOrder = .linux
    manifest.rights = [.fleet]
    return manifest
  }(), folder: "/usr/lib/identityd/apps.d", suspended: later(3))

/// An app that runs in a container.
let containedApp = App(
  installed: later(1),
  manifest: {
    var manifest = Manifest(vendor: "com.example")
    manifest.container = "web"
    return manifest
  }())

/// A machine record with a suspicion and a spent machine-id.
let fullMachine = MachineRecord(
  fingerprint: MachineFingerprint(machine: "0a0a", hardware: "0b0b"),
  suspicion: .init(cause: .hardwareChanged, since: later(40)), spentMachine: "0c0c")

/// Returns the record of a former machine whose hardware has no UUID.
private func formerMachine(_ number: Int64, isAcknowledged: Bool) -> FormerMachine {
  FormerMachine(
    number: number, fingerprint: MachineFingerprint(machine: Text("0d0\(number)"), hardware: nil),
    lastIdentifier: number * 5,
    cause: .machineChanged, left: later(number), isAcknowledged: isAcknowledged)
}

/// Returns a message of the fleet about the device with a number.
func message(_ device: UInt64, counter: UInt64, isGone: Bool = false, isSuspect: Bool = false) -> FleetRecord {
  FleetRecord(
    device: uuid(device), generation: .max, counter: counter, isGone: isGone, isSuspect: isSuspect,
    message: Text(String(repeating: "aUYB", count: 100)))
}

/// Every kind of change except the seal, for a store whose device already has its identifier.
let life = deviceLife + versionLife

private let deviceLife: [[Change]] = [
  [.machineRecorded(MachineRecord(fingerprint: MachineFingerprint(machine: nil, hardware: nil)))],
  [.deviceListed(ListedDevice(value: uuid(1), added: later(0)))],
  [.appInstalled("com.example.full", fullApp), .appInstalled("user:7", App(installed: later(2)))],
  [
    made(.installation("user:7"), uuid(21), .migrated, .migrated, by: "uid:7"),
    made(.vendor("com.example"), uuid(22), .random, by: "unit:a.service"),
    made(.deviceOfVendor("com.example"), uuid(23), .machine), made(.deviceOfApp("user:7"), uuid(24), .restored),
  ],
  [
    .deviceListed(ListedDevice(value: uuid(31), name: "a phone", seen: later(3), added: later(4))),
    .deviceListed(ListedDevice(value: uuid(32), added: later(5))),
    .deviceListed(ListedDevice(value: uuid(33), name: "", added: later(6))),
  ],
  [.deviceDescribed(ListedDevice(value: uuid(32), name: "a \"tablet\"", seen: later(9), added: later(5)))],
  // Two new identifiers in one transaction, each with its change of the device list.
  [
    made(.device, uuid(2), .random, .renewed, at: later(10), by: "uid:0"),
    .deviceReplaced(previous: uuid(1), ListedDevice(value: uuid(2), added: later(0))),
    made(.device, uuid(3), .random, .renewed, at: later(11), by: "uid:0"),
    .deviceReplaced(previous: uuid(2), ListedDevice(value: uuid(3), added: later(0))),
  ],
  [.deviceUnlisted(uuid(31)), .accountSet("somebody@example.com")],
  [.deviceListed(ListedDevice(value: uuid(34), added: later(12)))],
  [
    .appUpdated("com.example.full", App(installed: later(1), manifest: Manifest(vendor: "org.example"))),
    .identifierEnded(.vendor("com.example"), .init(time: later(13), cause: .uninstalled)),
  ],
  [
    .identifierEnded(.installation("user:7"), .init(time: later(14), cause: .uninstalled)),
    .appUninstalled("user:7"),
  ],
  [
    .appInstalled("user:7", App(installed: later(15))),
    made(.installation("user:7"), uuid(25), .random, at: later(15), by: "uid:7"),
  ],
  [.accountSet(nil)], [.accountSet("é")],
  [.machineRecorded(fullMachine), .deviceSuspected(.device, .hardwareChanged)],
  [
    .machineLeft(formerMachine(1, isAcknowledged: false)), .machineLeft(formerMachine(2, isAcknowledged: true)),
    .machineLeft(formerMachine(3, isAcknowledged: false)),
  ],
  [.machineAcknowledged(formerMachine(1, isAcknowledged: true)), .machineForgotten(2)],
  [
    .deviceLeft(LeftDevice(number: 1, device: uuid(25), day: 1, items: 1..<3)),
    .deviceLeft(LeftDevice(number: 2, device: uuid(26), day: 31, items: 3..<3)),
    .deviceLeft(LeftDevice(number: 3, device: uuid(26), day: 31, items: 5..<1 << 40)),
  ],
  [.leftDeviceForgotten(2)],
  [.proofKeyStored(proofKey(1)), .proofKeyStored(proofKey(2))],
  [.proofKeyStored(proofKey(3, machine: nil)), .proofKeyStored(proofKey(2, leaves: later(90)))],
  [.proofKeyForgotten(proofKey(1), .rotated), .proofKeyLocked(proofKey(3, machine: nil))],
  [.fleetAdvanced(FleetStanding(counter: 7))],
  [.fleetAdvanced(FleetStanding(counter: .max, generation: .max, runs: [uuid(41), uuid(40)]))],
  [
    .fleetRecorded(message(32, counter: 1, isSuspect: true)),
    .fleetRecorded(message(33, counter: .max)),
    .fleetRecorded(message(35, counter: 0, isGone: true)),
  ],
  [
    .fleetRecorded(message(32, counter: 1 << 63)),
    .fleetRecorded(message(33, counter: 2, isGone: true)), .fleetForgotten(uuid(35)),
  ],
  [.backupTaken(later(50))],
  [.backupTaken(later(51))],
]

/// Returns the changes that seal a store, as before a golden image is made of it.
func sealing(_ registry: Registry) -> [Change] {
  registry.scopes.map { .identifierEnded($0, .init(time: later(90), cause: .sealed)) }
    + registry.items.all.sorted { $0.number < $1.number }.map { .itemDeleted($0) }
    + registry.versions.all.flatMap(\.forgotten) + registry.tokens.all.map { .tokenDeleted($0) } + [.sealed]
}
