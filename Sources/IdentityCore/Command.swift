/// What a request asks for, with its arguments checked.
package enum Command: Equatable, Sendable {
  /// Answered by the daemon's loop alone.
  case local(LocalCommand)
  /// Answered from the registry, or by a change to it.
  case registry(RegistryCommand)
  /// Carried out by the store's owner as a whole.
  case store(StoreCommand)
}

/// Requests that the registry has no part in, or only its committed copy.
package enum LocalCommand: Equatable, Sendable {
  /// Is anybody there?
  case ping
  /// Which daemon, which version, which protocol?
  case hello
  /// The verbs, or those that begin with these words.
  case help([Text])
  /// Answer, then close.
  case quit
  /// What an operator wants to see at a glance.
  case status
  /// What was counted and measured: of the daemon, or of the apps that talk to it.
  case stats(ofApps: Bool)
  /// Who does the daemon take me for?
  case whoami
  /// Is this text a UUID?
  case check(Text)
  /// Fresh UUIDs: one when `count` is nil, else rows.
  case uuids(count: Int?, version: UUIDVersion)
  /// An identifier that is computed and stored nowhere.
  case derived(DerivedIdentifier)
  /// Events of these topics from now on, or from after a number on.
  case subscribe(Set<Topic>, since: EventNumber?, snapshot: Bool)
  /// No more events of these topics.
  case unsubscribe(Set<Topic>)
  /// How one version stands to another.
  case compare(Text, Text, VersionOrder)
  /// A backup follows, which this key opens.
  case beginRestore(key: SealedSecret)
  /// A piece of it, in Base64.
  case addToRestore(Text)
}

/// Which derived identifier is asked for.
package enum DerivedIdentifier: Equatable, Sendable {
  /// One for the session and a name.
  case key(Text)
  /// The session's.
  case session
  /// The boot's, for the peer's app or the app an admin names.
  case boot(app: Text?)
}

/// Requests to the registry. An app that is not named is the peer's own.
///
/// One is handed on from queue to queue, so it is one reference, and not one to each of its texts.
package indirect enum RegistryCommand: Equatable, Sendable {
  /// The identifier of a level.
  case get(Level, app: Text?)
  /// Another identifier in the place of the one of a level.
  case renew(Level, app: Text?, dryRun: Bool)
  /// Which identifiers of a level there were.
  case history(Level, app: Text?)
  /// Which identifier is this?
  case resolve(UUID)
  /// Adopt an identifier that an earlier system gave out.
  case migrate(Level, UUID, app: Text?, commits: Bool, forces: Bool)
  /// The installed apps.
  case apps
  /// Uninstall an app that has no manifest.
  case forget(app: Text)
  /// Uninstall apps without a manifest and without items that meet a condition, or tell which ones these are.
  case forgetMatching(AppCondition, dryRun: Bool)
  /// The account's name.
  case account
  /// Another name for the account, or none.
  case setAccount(Text?)
  /// The devices of the account.
  case devices
  /// Add a device of the account, or say more of one.
  case putDevice(UUID, name: Text?, seen: Timestamp?)
  /// Take a device out of the list.
  case removeDevice(UUID)
  /// Prepare a golden image.
  case seal
  /// Adopt the identifier that an item's secret says.
  case migrateFromItem(Level, ItemName, app: Text?, commits: Bool, forces: Bool)
  /// Something about items.
  case item(ItemCommand)
  /// Something about versions.
  case version(VersionCommand)
  /// Something about push tokens.
  case token(TokenCommand)

  /// Whether its answer has a row for each thing there is, and may so be long.
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

extension RegistryCommand {
  /// Whether it always takes a change, and is refused by what decides that as it is by what answers it.
  var isAlwaysDecided: Bool { if case .token(.put) = self { true } else { false } }
}

/// Requests about items (protocol, section 4).
package enum ItemCommand: Equatable, Sendable {
  /// Add an item, or replace the one there is.
  case store(ItemName, SealedSecret, ItemDescription, replaces: Bool)
  /// The item with its secret.
  case read(ItemName)
  /// The items that meet a condition; as many at most.
  case find(ItemCondition, limit: Int?)
  /// Change what is named.
  case update(ItemName, ItemUpdate)
  /// Delete the items that meet a condition.
  case delete(ItemCondition)
}

/// Requests about the store as a whole, for admins alone.
package enum StoreCommand: Equatable, Sendable {
  /// Wrap the data key in another master key.
  case rotateKey
  /// Everything there is, encrypted with this key.
  case backup(key: SealedSecret)
  /// Bring the backup that was handed in into force, or tell what that would change.
  case restore(dryRun: Bool, adoptsDevice: Bool)
}
