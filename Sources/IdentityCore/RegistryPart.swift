/// A part of the registry that seldom changes.
///
/// One object, because each change of any kind copies the registry several times, and each copy retains this object
/// instead of every text and table in it.
final class RegistryPart<Content: RegistryContent>: Equatable, Sendable {
  let content: Content

  init(_ content: Content) { self.content = content }

  static func == (left: RegistryPart, right: RegistryPart) -> Bool { left === right || left.content == right.content }
}

/// The content of a part of the registry.
protocol RegistryContent: Equatable, Sendable {
  init()

  /// Whether the content is that of a new store.
  var isEmpty: Bool { get }
}

extension Optional {
  /// Changes the content. A part without any is nil.
  mutating func change<Content: RegistryContent>(_ body: (inout Content) -> Void)
  where Wrapped == RegistryPart<Content> {
    var content = self?.content ?? Content()
    // The old object is released first, so that tables are changed in place and not copied.
    self = nil
    body(&content)
    if !content.isEmpty { self = RegistryPart(content) }
  }
}

/// The part of the fleet in the registry.
struct FleetContent: RegistryContent {
  /// The counter, the generation and the runs of this device; nil before the fleet is used.
  var standing: FleetStanding?
  /// The messages about the devices.
  var records = FleetRecords()

  var isEmpty: Bool { standing == nil && records.count == 0 }
}

/// The account, the machines and the seal.
struct SettingsContent: RegistryContent {
  /// The name of the account, if any.
  var account: Text?
  /// The record of the machine; nil before the first start is recorded.
  var machine: MachineRecord?
  /// The machines that the daemon ran on before, oldest first.
  var formerMachines: [FormerMachine] = []
  /// The device identifiers that renewals left to other machines, oldest first.
  var leftDevices: [LeftDevice] = []
  /// The keys of proofs, oldest first.
  var proofKeys: [StoredProofKey] = []
  /// Whether the store is sealed.
  var isSealed = false

  var isEmpty: Bool { self == SettingsContent() }
}
