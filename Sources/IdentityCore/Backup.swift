/// The content of a backup that was verified as a whole.
package struct Backup: Equatable, Sendable {
  /// An item with its secret.
  package struct StoredItem: Equatable, Sendable {
    /// The item.
    package let item: Item
    /// The secret of the item.
    package let secret: SealedSecret

    package init(_ item: Item, _ secret: SealedSecret) {
      self.item = item
      self.secret = secret
    }
  }

  /// The time the backup was made.
  package var created: Timestamp
  /// Whether the backup was made on this hardware. If the hardware has no UUID, the machine-id decides.
  package var isFromHere: Bool
  /// The name of the account.
  package var account: Text?
  /// The installed apps.
  package var apps: [Text: App] = [:]
  /// The history of identifiers, oldest first.
  package var identifiers: [Identifier] = []
  /// The devices of the account.
  package var devices: [ListedDevice] = []
  /// The counter and the generation of the fleet, without its runs; nil if the fleet was not used.
  package var fleet: FleetStanding?
  /// The messages of the fleet about the devices.
  package var records: [FleetRecord] = []
  /// The items, without those for this device only.
  package var items: [StoredItem] = []

  /// The versions of the system and of the apps.
  package var versions = VersionTable()
  /// The push tokens.
  package var tokens: [Token] = []

  package init(created: Timestamp, isFromHere: Bool) {
    self.created = created
    self.isFromHere = isFromHere
  }
}
