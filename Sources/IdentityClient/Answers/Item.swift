/// The primary key of an item: access group, service and account. At most one item has a given key.
public struct ItemPrimaryKey: Hashable, Sendable {
  /// The service that the secret is for, 1 to 255 bytes.
  public var service: String
  /// The account at that service, 1 to 255 bytes.
  public var account: String
  /// The access group, 1 to 255 bytes; nil for the calling app's own group.
  public var group: String?

  /// Creates a key. The daemon checks the lengths.
  public init(service: String, account: String, group: String? = nil) {
    self.service = service
    self.account = account
    self.group = group
  }
}

/// The label, attributes and lifetime of an item.
public struct ItemMetadata: Hashable, Sendable {
  /// The name of the item for people, at most 1,024 bytes. An empty label is the same as none.
  public var label: String?
  /// Attributes of the app's choice: at most 64, with values of at most 1,024 bytes.
  ///
  /// A name has 1 to 64 ASCII letters, digits, `.`, `_` and `-`. The daemon returns names in lower case. An attribute
  /// with an empty value is not stored.
  public var attributes: [String: String]
  /// Whether backups leave the item out.
  public var isThisDeviceOnly: Bool
  /// Whether the item is deleted when its app is uninstalled.
  public var endsWithInstallation: Bool

  /// Creates metadata. The daemon checks its bounds.
  public init(
    label: String? = nil, attributes: [String: String] = [:], isThisDeviceOnly: Bool = false,
    endsWithInstallation: Bool = false
  ) {
    self.label = label
    self.attributes = attributes
    self.isThisDeviceOnly = isThisDeviceOnly
    self.endsWithInstallation = endsWithInstallation
  }
}

/// An item without its secret.
public struct ItemEntry: Hashable, Sendable {
  /// The key, whose group is never nil.
  public let key: ItemPrimaryKey
  /// The label, attributes and lifetime.
  public let metadata: ItemMetadata
  /// The time at which the item was added.
  public let created: IdentityTime
  /// The time of the last change.
  public let modified: IdentityTime
  /// Whether the item belongs to another machine, of which this one may be a copy. Then its secret cannot be read.
  public let isLocked: Bool

  init(_ fields: AnswerFields) throws(IdentityError) {
    key = ItemPrimaryKey(
      service: try fields.required("service"), account: try fields.required("account"),
      group: try fields.required("group"))
    metadata = ItemMetadata(
      label: fields.text("label"), attributes: fields.attributes(behind: "attr."),
      isThisDeviceOnly: fields.text("this-device-only") == "yes",
      endsWithInstallation: fields.text("lifetime") == "installation")
    created = try fields.requiredTime("created")
    modified = try fields.requiredTime("modified")
    isLocked = fields.text("state") == "locked"
  }
}

/// An item with its secret.
public struct DecryptedItem: Sendable {
  /// The key, metadata and times of the item.
  public let entry: ItemEntry
  /// The secret.
  public let secret: Secret

  init(_ fields: AnswerFields) throws(IdentityError) {
    secret = try fields.requiredSecret()
    entry = try ItemEntry(fields)
  }
}

/// An item that a query has found, with its secret.
public struct FoundItem: Sendable {
  /// The key, metadata and times of the item.
  public let entry: ItemEntry
  /// The secret; nil if the item is locked.
  public let secret: Secret?

  init(_ fields: AnswerFields) throws(IdentityError) {
    entry = try ItemEntry(fields)
    secret = entry.isLocked ? nil : try fields.requiredSecret()
  }
}

/// A query for items. An item must match every part of it.
public struct ItemQuery: Hashable, Sendable {
  /// The access groups to search.
  public enum AccessGroups: Hashable, Sendable {
    /// The calling app's own group.
    case own
    /// The group of this name.
    case named(String)
    /// All groups that the app may use. Only ``IdentityRequest/findItems(_:limit:)`` and
    /// ``IdentityRequest/findSecrets(_:limit:)`` accept this case.
    case all
  }

  /// The access groups to search.
  public var groups: AccessGroups
  /// The service of the items; nil for any.
  public var service: String?
  /// The account of the items; nil for any.
  public var account: String?
  /// The label of the items; nil for any, and empty for items without a label.
  public var label: String?
  /// The attributes that an item must have, with their values. An empty value selects items without the attribute.
  public var attributes: [String: String]

  /// Creates a query. Without further arguments it selects all items of the groups.
  public init(
    in groups: AccessGroups = .own, service: String? = nil, account: String? = nil, label: String? = nil,
    attributes: [String: String] = [:]
  ) {
    self.groups = groups
    self.service = service
    self.account = account
    self.label = label
    self.attributes = attributes
  }

  /// Creates a query for the one item with this key.
  public init(_ key: ItemPrimaryKey) {
    self.init(in: key.group.map { .named($0) } ?? .own, service: key.service, account: key.account)
  }
}
