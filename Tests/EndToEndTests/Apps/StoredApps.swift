import Foundation
import IdentityCore
import IdentityStore
import IdentityWire
import TestSupport

extension DaemonUnderTest {
  /// Makes a store with this number of apps that have a manifest, and an item that ends with the installation.
  ///
  /// - Parameter suspended: the time since which the apps are suspended.
  func storeApps(_ count: Int, suspended: Timestamp? = nil) throws {
    try makeStore { secret in
      (1...Int64(count)).flatMap { (number: Int64) -> [Change] in
        let app = Text("org.example.a\(number)")
        let item = Item(
          key: ItemKey(group: app, service: "s", account: "a"), number: number,
          edition: UUID(high: 0x4000, low: UInt64(number)), owner: app, label: nil, attributes: [],
          isThisDeviceOnly: false, endsWithInstallation: true, secretLength: 3, created: Self.time, modified: Self.time)
        return [
          .appInstalled(
            app, App(installed: Self.time, manifest: Manifest(vendor: "org.example"), suspended: suspended)),
          .itemStored(item, secret, .added),
        ]
      }
    }
  }

  /// Makes a store with this number of users as apps, each with an installation identifier.
  func storeUsers(_ count: Int) throws {
    try makeStore { _ in
      (1...UInt64(count)).flatMap { (number: UInt64) -> [Change] in
        let app = Text("user:\(100_000 + number)")
        let identifier = Identifier(
          scope: .installation(app), value: UUID(high: 0x4000, low: number), created: Self.time,
          origin: .random, cause: .firstUse, author: app)
        return [.appInstalled(app, App(installed: Self.time)), .identifierMade(identifier)]
      }
    }
  }

  /// Makes a store in which the installation identifier of an app was renewed more often than a history keeps, as earlier
  /// releases did.
  func storeRenewals(_ count: Int, of app: Text) throws {
    try makeStore { _ in
      [.appInstalled(app, App(installed: Self.time))]
        + (0...UInt64(count)).map { number in
          .identifierMade(
            Identifier(
              scope: .installation(app), value: UUID(high: 0x4000, low: 0x8000_0000_0000_0000 | number),
              created: Self.time, origin: .random, cause: number == 0 ? .firstUse : .renewed, author: app))
        }
    }
  }

  private static let time = Timestamp(milliseconds: 1_795_000_000_000)

  /// Makes a store of this machine.
  ///
  /// - Parameter changes: returns the changes to a new store, in which each item has the same secret.
  private func makeStore(_ changes: (SealedSecret) -> [Change]) throws {
    let machine = try Data(contentsOf: URL(filePath: "/etc/machine-id")).prefix(32)
    var store = try Store.open(
      try StateDirectory.open(path: state.path), options: .init(), now: Self.time,
      identity: .init(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef),
      machine: MachineMarks(machineID: Array(machine), hardware: nil))
    var registry = store.takeContent().registry
    let memory = try store.makeSecretMemory()
    let secret = try memory.encrypt { bytes in
      for index in 0..<4 { bytes[index] = UInt8(ascii: "A") }
      return 4
    }
    let recorded = changes(secret).map { change in
      let recorded = registry.record(change, at: Self.time)
      registry.apply(recorded)
      return recorded
    }
    if let refusal = store.commit(recorded, events: recorded.events) { throw Failure("not committed: \(refusal)") }
    if let complaint = store.close() { throw Failure("not closed: \(complaint)") }
  }
}
