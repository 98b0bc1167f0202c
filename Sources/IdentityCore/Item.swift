/// The key of an item (protocol, section 4): at most one item has it.
package struct ItemKey: Hashable, Sendable {
  /// The access group that the item is in.
  package let group: Text
  /// What the secret is for.
  package let service: Text
  /// Whose it is there.
  package let account: Text

  /// Puts a key together.
  package init(group: Text, service: Text, account: Text) {
    self.group = group
    self.service = service
    self.account = account
  }
}

/// A secret as it goes through the daemon: sealed with a key that lives as long as the process.
///
/// Nothing but the store's guarded memory ever holds it open, so that no copy of it is left behind in a queue or a freed
/// array.
package struct SealedSecret: Equatable, Sendable {
  /// What only the store can open.
  package let bytes: [UInt8]
  /// The length of the secret, in bytes.
  package let length: Int

  /// Takes what the store sealed.
  package init(bytes: [UInt8], length: Int) {
    self.bytes = bytes
    self.length = length
  }
}

/// Where the secret of a request goes the moment it is read.
package protocol SecretIntake {
  /// Decodes Base64 text (RFC 4648, section 4) in guarded memory and seals what it says.
  ///
  /// - Parameter fill: writes the text, at most ``Bound/lineLength`` bytes, and returns how long it is.
  func seal(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret
}

/// Why a secret was not taken in.
package enum SecretFault: Error, Equatable, Sendable {
  /// The text is not Base64.
  case notBase64
  /// It is longer than ``Bound/secretLength``.
  case tooLong
}

/// An item without its secret, which the store alone has.
package struct Item: Equatable, Sendable {
  /// `attr.NAME=V`.
  package struct Attribute: Equatable, Sendable {
    /// In lower case, without `attr.`.
    package let name: Text
    /// At least one byte.
    package let value: Text

    /// Puts an attribute together.
    package init(name: Text, value: Text) {
      self.name = name
      self.value = value
    }
  }

  /// What tells one item from another.
  package let key: ItemKey
  /// Its place in the store, and in the order in which items were added.
  package let number: Int64
  /// Another one with each change: a secret belongs to one edition of its item.
  package var edition: UUID
  /// The app that added it, or put it in the place of another: it is charged for it.
  package var owner: Text
  /// What people call it.
  package var label: Text?
  /// Each name once, in the order of the names.
  package var attributes: [Attribute]
  /// Backups leave it out.
  package var isThisDeviceOnly: Bool
  /// It ends with the installation of its owner.
  package var endsWithInstallation: Bool
  /// The length of the secret, in bytes.
  package var secretLength: Int
  /// When it was added.
  package let created: Timestamp
  /// When it was last changed.
  package var modified: Timestamp

  /// Puts an item together.
  package init(
    key: ItemKey, number: Int64, edition: UUID, owner: Text, label: Text?, attributes: [Attribute],
    isThisDeviceOnly: Bool, endsWithInstallation: Bool, secretLength: Int, created: Timestamp, modified: Timestamp
  ) {
    self.key = key
    self.number = number
    self.edition = edition
    self.owner = owner
    self.label = label
    self.attributes = attributes
    self.isThisDeviceOnly = isThisDeviceOnly
    self.endsWithInstallation = endsWithInstallation
    self.secretLength = secretLength
    self.created = created
    self.modified = modified
  }

  /// What it counts in its owner's quota, in bytes: the secret, and everything that is said of it.
  package var size: Int {
    let described = attributes.reduce(label?.bytes.count ?? 0) { $0 + $1.name.bytes.count + $1.value.bytes.count }
    return secretLength + described + key.group.bytes.count + key.service.bytes.count + key.account.bytes.count
  }
}

// MARK: - Requests

/// The key that a request names; without a group the app's own is meant.
package struct ItemName: Equatable, Sendable {
  /// The service.
  package let service: Text
  /// The account.
  package let account: Text
  /// The access group, where one is named.
  package let group: Text?

  /// Puts a name together.
  package init(service: Text, account: Text, group: Text?) {
    self.service = service
    self.account = account
    self.group = group
  }
}

/// What `item add` and `item put` say of an item.
package struct ItemDescription: Equatable, Sendable {
  /// The label; an empty one is none.
  package var label: Text?
  /// The attributes; an empty value is none.
  package var attributes: [Item.Attribute]
  /// `this-device-only=yes`.
  package var isThisDeviceOnly: Bool
  /// `lifetime=installation`.
  package var endsWithInstallation: Bool

  /// Puts a description together.
  package init(
    label: Text? = nil, attributes: [Item.Attribute] = [], isThisDeviceOnly: Bool = false,
    endsWithInstallation: Bool = false
  ) {
    self.label = label
    self.attributes = attributes
    self.isThisDeviceOnly = isThisDeviceOnly
    self.endsWithInstallation = endsWithInstallation
  }
}

/// What `item update` changes: what is nil or not named stays.
package struct ItemUpdate: Equatable, Sendable {
  /// Another secret.
  package var secret: SealedSecret?
  /// Another label; an empty one removes it.
  package var label: Text?
  /// Other attributes; an empty value removes one.
  package var attributes: [Item.Attribute]

  /// Puts an update together.
  package init(secret: SealedSecret? = nil, label: Text? = nil, attributes: [Item.Attribute] = []) {
    self.secret = secret
    self.label = label
    self.attributes = attributes
  }
}

/// Which items `item find` and `item delete` mean: those that meet every condition.
package struct ItemCondition: Equatable, Sendable {
  /// Where to look.
  package enum Groups: Equatable, Sendable {
    /// In the app's own group.
    case own
    /// In this one.
    case named(Text)
    /// In all that the peer may use: `group=*`.
    case all
  }

  /// Where to look.
  package var groups: Groups
  /// The service.
  package var service: Text?
  /// The account.
  package var account: Text?
  /// The label; an empty one means items without.
  package var label: Text?
  /// Attributes; an empty value means items without.
  package var attributes: [Item.Attribute]

  /// Puts a condition together.
  package init(
    groups: Groups = .own, service: Text? = nil, account: Text? = nil, label: Text? = nil,
    attributes: [Item.Attribute] = []
  ) {
    self.groups = groups
    self.service = service
    self.account = account
    self.label = label
    self.attributes = attributes
  }

  /// Whether nothing is said of the items, not even of their group.
  package var isEmpty: Bool {
    groups == .own && service == nil && account == nil && label == nil && attributes.isEmpty
  }

  /// Whether an item of a group that was looked in is meant.
  func isMet(by item: Item) -> Bool {
    if let service, service != item.key.service { return false }
    if let account, account != item.key.account { return false }
    if let label, label != item.label ?? "" { return false }
    return attributes.allSatisfy { wanted in
      (item.attributes.first { $0.name == wanted.name }?.value ?? "") == wanted.value
    }
  }
}
