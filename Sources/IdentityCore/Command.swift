/// A request with checked arguments.
package enum Command: Equatable, Sendable {
  /// A request that the loop answers alone.
  case local(LocalCommand)
  /// A request that is answered from the registry or by a change to it.
  case registry(RegistryCommand)
  /// A request that the writer carries out on the store as a whole.
  case store(StoreCommand)
}

/// Requests that do not use the registry, or only its committed copy.
package enum LocalCommand: Equatable, Sendable {
  /// `ping`: answers `OK`.
  case ping
  /// `hello`: names the daemon, its version and the version of the protocol.
  case hello
  /// `help`: lists the verbs that begin with these words, or all verbs.
  case help([Text])
  /// `quit`: answers, then closes the connection.
  case quit
  /// `status`: shows the state of the daemon.
  case status
  /// `stats`: shows the metrics of the daemon, or the request counts of the apps.
  case stats(ofApps: Bool)
  /// `whoami`: shows the peer as the daemon attested it.
  case whoami
  /// `check`: tests whether a text is a UUID.
  case check(Text)
  /// `get uuid`: generates UUIDs. A nil `count` means a single UUID in the final line instead of rows.
  case uuids(count: Int?, version: UUIDVersion)
  /// `get key`, `get session`, `get boot`: computes an identifier that is not stored.
  case derived(DerivedIdentifier)
  /// `subscribe`: sends events of these topics from now on, and if requested those after an event number first.
  case subscribe(Set<Topic>, since: EventNumber?, snapshot: Bool)
  /// `unsubscribe`: sends no more events of these topics.
  case unsubscribe(Set<Topic>)
  /// `version compare`: compares two versions.
  case compare(Text, Text, VersionOrder)
  /// `restore begin`: starts an upload of a backup that this key opens.
  case beginRestore(key: SealedSecret)
  /// `restore add`: adds a piece of the backup, in Base64.
  case addToRestore(Text)
}

/// The derived identifier that a request asks for.
package enum DerivedIdentifier: Equatable, Sendable {
  /// The identifier of a name in the session.
  case key(Text)
  /// The identifier of the session.
  case session
  /// The identifier of the boot, for the peer's app or for the app that an admin names.
  case boot(app: Text?)
}

/// Requests to the registry. Without an app, the peer's own app is meant.
///
/// The enumeration is indirect because a command is passed from queue to queue: each copy retains one object instead of
/// every text.
package indirect enum RegistryCommand: Equatable, Sendable {
  /// `get LEVEL`: returns the identifier of a level.
  case get(Level, app: Text?)
  /// `renew LEVEL`: replaces the identifier of a level.
  case renew(Level, app: Text?, dryRun: Bool)
  /// `history LEVEL`: lists the identifiers of a level, including past ones.
  case history(Level, app: Text?)
  /// `resolve`: finds an identifier by its value.
  case resolve(UUID)
  /// `migrate LEVEL`: adopts an identifier that an earlier system gave out.
  case migrate(Level, UUID, app: Text?, commits: Bool, forces: Bool)
  /// `app list`: lists the installed apps.
  case apps
  /// `app forget ID`: uninstalls an app that has no manifest.
  case forget(app: Text)
  /// `app forget`: uninstalls or lists the apps without a manifest and without items that meet a condition.
  case forgetMatching(AppCondition, dryRun: Bool)
  /// `account`: returns the name of the account.
  case account
  /// `account set`, `account clear`: changes or removes the name of the account.
  case setAccount(Text?)
  /// `devices`: lists the devices of the account.
  case devices
  /// `devices put`: adds a device of the account, or updates a listed one.
  case putDevice(UUID, name: Text?, seen: Timestamp?)
  /// `devices remove`, `devices forget`: removes a device from the list.
  case removeDevice(UUID)
  /// `seal`: prepares a golden image.
  case seal
  /// `migrate LEVEL item=`: adopts the identifier in the secret of an item.
  case migrateFromItem(Level, ItemName, app: Text?, commits: Bool, forces: Bool)
  /// A request about items.
  case item(ItemCommand)
  /// A request about versions.
  case version(VersionCommand)
  /// A request about push tokens.
  case token(TokenCommand)

  /// Whether the answer has a row for each existing element, and so may be long.
  package var isListing: Bool {
    switch self {
    case .history, .apps, .devices, .item(.find), .version(.history), .token(.list): true
    case .get, .renew, .resolve, .migrate, .forget, .forgetMatching, .account, .setAccount, .putDevice, .removeDevice,
      .seal,
      .migrateFromItem, .item, .version, .token:
      false
    }
  }
}

/// Requests about items (identityd-protocol(7), section "ITEMS").
package enum ItemCommand: Equatable, Sendable {
  /// `item add`, `item put`: adds an item. With `replaces`, an existing item with the same key is replaced.
  case store(ItemName, SealedSecret, ItemDescription, replaces: Bool)
  /// `item read`: returns an item with its secret.
  case read(ItemName)
  /// `item find`: lists the items that meet a condition, at most `limit` of them.
  case find(ItemCondition, limit: Int?)
  /// `item update`: changes the given properties of an item.
  case update(ItemName, ItemUpdate)
  /// `item delete`: deletes the items that meet a condition.
  case delete(ItemCondition)
}

/// Requests about the store as a whole, for admins only.
package enum StoreCommand: Equatable, Sendable {
  /// `key rotate`: wraps the data key in another master key.
  case rotateKey
  /// `backup`: returns a backup, encrypted with this key.
  case backup(key: SealedSecret)
  /// `restore end`: restores the uploaded backup, or reports the changes that a restore would make.
  case restore(dryRun: Bool, adoptsDevice: Bool)
}
