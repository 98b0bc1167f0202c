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
  /// `fleet said`: shows words of the fleet's service in `status` until the connection ends.
  case said(state: Text?, [Event.Attribute])
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
  case compare(Release, Release, VersionOrder)
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

/// Requests about the store as a whole, for admins only.
package enum StoreCommand: Equatable, Sendable {
  /// `key rotate`: wraps the data key in another master key.
  case rotateKey
  /// `key protect`: wraps the data key in this recovery key.
  case protectKey(SealedSecret)
  /// `key recover`: opens the data key with this recovery key and wraps it in the master key, or only tests the
  /// recovery key.
  case recoverKey(SealedSecret, dryRun: Bool)
  /// `machine resumed`: gives sessions other identifiers, because another machine may go on from the same snapshot.
  case resume
  /// `machine compare`: compares a machine-id with those that the store knows.
  case compareMachine(UUID)
  /// `backup`: returns a backup, encrypted with this key.
  case backup(key: SealedSecret)
  /// `restore end`: restores the uploaded backup, or reports the changes that a restore would make.
  case restore(dryRun: Bool, adoptsDevice: Bool)
}
