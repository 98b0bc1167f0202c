/// What a backup holds, once it is proven whole.
package struct Backup: Equatable, Sendable {
  /// An item with its secret.
  package struct StoredItem: Equatable, Sendable {
    /// The item.
    package let item: Item
    /// Its secret.
    package let secret: SealedSecret

    /// Puts both together.
    package init(_ item: Item, _ secret: SealedSecret) {
      self.item = item
      self.secret = secret
    }
  }

  /// When it was made.
  package var created: Timestamp
  /// Whether it was made on this hardware; where the hardware does not tell, on a system with this machine-id.
  package var isFromHere: Bool
  /// The account's name.
  package var account: Text?
  /// The installed apps.
  package var apps: [Text: App] = [:]
  /// The history, oldest first.
  package var identifiers: [Identifier] = []
  /// The devices of the account.
  package var devices: [ListedDevice] = []
  /// The items, those of this device alone left out.
  package var items: [StoredItem] = []

  /// The versions there were.
  package var versions = VersionTable()
  /// The push tokens.
  package var tokens: [Token] = []

  /// An empty one.
  package init(created: Timestamp, isFromHere: Bool) {
    self.created = created
    self.isFromHere = isFromHere
  }
}
