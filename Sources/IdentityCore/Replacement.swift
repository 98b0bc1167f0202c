/// An app that takes the place of another one, with all that moves from the one to the other (`Replaces=`).
package struct Replacement: Equatable, Sendable {
  /// An item that moves.
  package struct MovedItem: Equatable, Sendable {
    /// The item before.
    package let before: Item
    /// The item afterwards, with the same number.
    package let item: Item
    /// The secret, which is encrypted together with the properties of the item.
    package let secret: SealedSecret

    package init(before: Item, item: Item, secret: SealedSecret) {
      self.before = before
      self.item = item
      self.secret = secret
    }
  }

  /// The ID of the app that is replaced.
  package let previous: Text
  /// The ID of the app that replaces it.
  package let id: Text
  /// The app under its new ID.
  package let app: App
  /// The identifiers in force and past ones, with their new scopes.
  package let identifiers: [NumberedIdentifier]
  /// The items of the previous app's own group, and those that it is charged for.
  package let items: [MovedItem]
  /// The changes that remove the versions from the one app and add them to the other.
  package let versions: [VersionChange]
  /// The push tokens of the previous app, as they were. Only their app changes.
  package let tokens: [Token]

  package init(
    previous: Text, id: Text, app: App, identifiers: [NumberedIdentifier] = [], items: [MovedItem] = [],
    versions: [VersionChange] = [], tokens: [Token] = []
  ) {
    self.previous = previous
    self.id = id
    self.app = app
    self.identifiers = identifiers
    self.items = items
    self.versions = versions
    self.tokens = tokens
  }
}

/// A replacement that a manifest asks for and that is not possible.
package struct ReplacementFault: Sendable {
  /// The path of the manifest.
  package let file: String
  /// The ID of the app that was to be replaced.
  package let previous: Text
  /// The reason, with a remedy.
  package let refusal: Refusal
}
