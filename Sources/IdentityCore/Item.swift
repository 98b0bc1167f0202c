/// The unique key of an item (identityd-protocol(7), section "ITEMS").
package struct ItemKey: Hashable, Sendable {
  /// The access group of the item.
  package internal(set) var group: Text
  /// The service that the secret is for.
  package internal(set) var service: Text
  /// The account at that service.
  package internal(set) var account: Text

  package init(group: Text, service: Text, account: Text) {
    self.group = group
    self.service = service
    self.account = account
  }

  /// Returns a key that no key of a group, or of a service in it, precedes.
  static func first(of group: Text, service: Text?) -> Self {
    ItemKey(group: group, service: service ?? .empty, account: .empty)
  }

  /// Returns whether a key of the same group precedes another one.
  func isBefore(_ other: Self) -> Bool {
    service == other.service ? account < other.account : service < other.service
  }
}

extension ItemKey: Comparable {
  /// Orders keys by group, service and account.
  package static func < (left: Self, right: Self) -> Bool {
    left.group == right.group ? left.isBefore(right) : left.group < right.group
  }
}

/// A secret in transit through the daemon, encrypted with a key that exists only as long as the process.
///
/// A secret is in the clear only in the store's guarded memory, so that no copy of it remains in a queue or a freed array.
package struct SealedSecret: Equatable, Sendable {
  /// The ciphertext, which only the store can decrypt.
  package let bytes: [UInt8]
  /// The length of the secret, in bytes.
  package let length: Int

  /// Creates a sealed secret from ciphertext that the store made.
  package init(bytes: [UInt8], length: Int) {
    self.bytes = bytes
    self.length = length
  }
}

/// Takes in the secret of a request as soon as the parser reads it.
package protocol SecretIntake {
  /// Decodes Base64 text (RFC 4648, section 4) in guarded memory and encrypts the decoded bytes.
  ///
  /// - Parameter fill: writes the text, at most ``Bound/lineLength`` bytes, and returns its length.
  func encrypt(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret
}

/// The reason why a secret was not accepted.
package enum SecretFault: Error, Equatable, Sendable {
  /// The text is not Base64.
  case notBase64
  /// The secret is longer than ``Bound/secretLength``.
  case tooLong
}

/// An item without its secret. Only the store holds the secret.
package struct Item: Equatable, Sendable {
  /// An attribute of an item: `attr.NAME=V`.
  package struct Attribute: Equatable, Sendable {
    /// The name in lower case, without `attr.`.
    package let name: Text
    /// The value, at least one byte.
    package let value: Text

    package init(name: Text, value: Text) {
      self.name = name
      self.value = value
    }
  }

  /// The unique key of the item.
  package internal(set) var key: ItemKey
  /// The row number in the store. Item numbers ascend in the order in which items were added.
  package internal(set) var number: Int64
  /// A UUID that changes with every change of the item. A stored secret belongs to one edition.
  package var edition: UUID
  /// The app that is charged for the item: the app that added or last replaced the item.
  ///
  /// If an admin puts an item into an installed app's own group, that app is charged.
  package var owner: Text
  /// The display name of the item.
  package var label: Text?
  /// The attributes, sorted by name. Each name occurs once.
  package var attributes: [Attribute]
  /// Whether backups leave the item out.
  package var isThisDeviceOnly: Bool
  /// Whether the item is deleted when its owner is uninstalled.
  package var endsWithInstallation: Bool
  /// The length of the secret, in bytes.
  package var secretLength: Int
  /// The time the item was added.
  package internal(set) var created: Timestamp
  /// The time of the last change.
  package var modified: Timestamp

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

  /// The size that counts against the owner's quota, in bytes: the secret, the key, the label and the attributes.
  package var size: Int {
    let described = attributes.reduce(label?.bytes.count ?? 0) { $0 + $1.name.bytes.count + $1.value.bytes.count }
    return secretLength + described + key.group.bytes.count + key.service.bytes.count + key.account.bytes.count
  }
}

// MARK: - Requests

/// The key of an item as a request names it. Without a group, the request means the app's own group.
package struct ItemName: Equatable, Sendable {
  /// The service.
  package let service: Text
  /// The account.
  package let account: Text
  /// The access group, if the request names one.
  package let group: Text?

  package init(service: Text, account: Text, group: Text?) {
    self.service = service
    self.account = account
    self.group = group
  }
}

/// The properties of an item that `item add` and `item put` set.
package struct ItemDescription: Equatable, Sendable {
  /// The label. An empty label means no label.
  package var label: Text?
  /// The attributes. An attribute with an empty value is not stored.
  package var attributes: [Item.Attribute]
  /// Whether backups leave the item out (`this-device-only=yes`).
  package var isThisDeviceOnly: Bool
  /// Whether the item is deleted with its owner (`lifetime=installation`).
  package var endsWithInstallation: Bool

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

/// The changes of an `item update`. A property that is nil or not listed stays as it is.
package struct ItemUpdate: Equatable, Sendable {
  /// The new secret.
  package var secret: SealedSecret?
  /// The new label. An empty label removes the present one.
  package var label: Text?
  /// The changed attributes. An empty value removes an attribute.
  package var attributes: [Item.Attribute]

  package init(secret: SealedSecret? = nil, label: Text? = nil, attributes: [Item.Attribute] = []) {
    self.secret = secret
    self.label = label
    self.attributes = attributes
  }
}

/// The condition of an `item find` or `item delete`. An item has to meet every part.
package struct ItemCondition: Equatable, Sendable {
  /// The access groups to search.
  package enum Groups: Equatable, Sendable {
    /// The app's own group.
    case own
    /// The group with this name.
    case named(Text)
    /// All groups that the peer may use (`group=*`).
    case all
  }

  /// The access groups to search.
  package var groups: Groups
  /// The service, if the condition restricts it.
  package var service: Text?
  /// The account, if the condition restricts it.
  package var account: Text?
  /// The label, if the condition restricts it. An empty label matches items without a label.
  package var label: Text?
  /// The attributes to match, sorted by name. An empty value matches items without the attribute.
  package let attributes: [Item.Attribute]

  package init(
    groups: Groups = .own, service: Text? = nil, account: Text? = nil, label: Text? = nil,
    attributes: [Item.Attribute] = []
  ) {
    self.groups = groups
    self.service = service
    self.account = account
    self.label = label
    self.attributes = attributes.sorted { $0.name < $1.name }
  }

  /// Whether the condition has no part at all, not even a group.
  package var isEmpty: Bool {
    groups == .own && service == nil && account == nil && label == nil && attributes.isEmpty
  }

  /// The name of the only item that can meet the condition: service and account are given, and nothing else but a group;
  /// nil for any other condition.
  package var exactName: ItemName? {
    guard let service, let account, label == nil, attributes.isEmpty else { return nil }
    switch groups {
    case .own: return ItemName(service: service, account: account, group: nil)
    case .named(let group): return ItemName(service: service, account: account, group: group)
    case .all: return nil
    }
  }

  /// Returns whether an item in one of the searched groups meets the condition.
  func isMet(by item: Item) -> Bool {
    if let service, service != item.key.service { return false }
    if let account, account != item.key.account { return false }
    if let label, label != item.label ?? "" { return false }
    // Both lists are sorted by name.
    var index = 0
    for wanted in attributes {
      while index < item.attributes.count, item.attributes[index].name < wanted.name { index += 1 }
      let isThere = index < item.attributes.count && item.attributes[index].name == wanted.name
      guard wanted.value == (isThere ? item.attributes[index].value : .empty) else { return false }
    }
    return true
  }
}

/// The items of a group, of one of its services, or all items, in the order of their keys.
struct ItemRange: BlockSource {
  private var blocks: OrderedBlocks<HeldItem>

  /// All items.
  init(_ table: OrderedTable<HeldItem>) { blocks = OrderedBlocks(table) }

  /// The items of a group, of one of its services, or the only item of a service and account.
  init(_ table: OrderedTable<HeldItem>, group: Text, service: Text? = nil, account: Text? = nil) {
    if let service, let account {
      let only = ItemKey(group: group, service: service, account: account)
      blocks = OrderedBlocks(table, from: only, through: only)
    } else {
      blocks = OrderedBlocks(table, from: .first(of: group, service: service)) { key in
        key.group == group && (service == nil || key.service == service)
      }
    }
  }

  mutating func next() -> ArraySlice<HeldItem> { blocks.next() }
}
