/// What an item is found by: one secret of an app or of a group of apps.
public struct ItemKey: Hashable, Sendable {
  /// What the secret is for.
  public var service: String
  /// Whose it is there.
  public var account: String
  /// The access group; nil for the asking app's own.
  public var group: String?

  /// Names an item.
  public init(service: String, account: String, group: String? = nil) {
    self.service = service
    self.account = account
    self.group = group
  }
}

/// What is said of an item besides its secret.
public struct ItemDescription: Hashable, Sendable {
  /// What people call it.
  public var label: String?
  /// Attributes of the app's own: names of letters, digits, `.`, `_` and `-`, which the daemon writes in lower case.
  public var attributes: [String: String]
  /// Whether it stays out of backups.
  public var isThisDeviceOnly: Bool
  /// Whether it ends with the app's installation.
  public var endsWithInstallation: Bool

  /// Describes an item.
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
  /// What it is found by; the group is always named.
  public let key: ItemKey
  /// What is said of it.
  public let description: ItemDescription
  /// When it was added.
  public let created: IdentityTime
  /// When it was last changed.
  public let modified: IdentityTime

  init(_ fields: AnswerFields) throws(IdentityError) {
    key = ItemKey(
      service: try fields.required("service"), account: try fields.required("account"),
      group: try fields.required("group"))
    description = ItemDescription(
      label: fields.text("label"), attributes: fields.attributes(behind: "attr."),
      isThisDeviceOnly: fields.text("this-device-only") == "yes",
      endsWithInstallation: fields.text("lifetime") == "installation")
    created = try fields.requiredTime("created")
    modified = try fields.requiredTime("modified")
  }
}

/// An item with its secret.
public struct Item: Sendable {
  /// Everything but the secret.
  public let entry: ItemEntry
  /// The secret.
  public let secret: Secret

  init(_ fields: AnswerFields) throws(IdentityError) {
    guard let secret = fields.secret else { throw .brokenAnswer("data= is missing, or not Base64") }
    self.secret = secret
    entry = try ItemEntry(fields)
  }
}

/// Which items are meant: those that meet every condition given.
public struct ItemCondition: Hashable, Sendable {
  /// Where is looked.
  public enum Groups: Hashable, Sendable {
    /// In the asking app's own group.
    case own
    /// In the group of this name.
    case named(String)
    /// In every group that the app may use. For finding alone.
    case all
  }

  /// Where is looked.
  public var groups: Groups
  /// What the secret is for.
  public var service: String?
  /// Whose it is there.
  public var account: String?
  /// What people call it.
  public var label: String?
  /// Attributes of the app's own with these values.
  public var attributes: [String: String]

  /// Says which items are meant; every one in the groups where nothing else is said.
  public init(
    in groups: Groups = .own, service: String? = nil, account: String? = nil, label: String? = nil,
    attributes: [String: String] = [:]
  ) {
    self.groups = groups
    self.service = service
    self.account = account
    self.label = label
    self.attributes = attributes
  }

  /// The one item of this key.
  public init(_ key: ItemKey) {
    self.init(in: key.group.map { .named($0) } ?? .own, service: key.service, account: key.account)
  }
}
