/// One thing that happened to the registry: stored, applied to the committed copy, and told in an event.
///
/// On its way it is handed on a dozen times, so it is one reference, and not one to each of its texts.
package indirect enum Change: Equatable, Sendable {
  /// An app was installed: its manifest appeared, or it was used for the first time.
  case appInstalled(Text, App)
  /// The manifest of an installed app says something else now.
  case appUpdated(Text, App)
  /// An app was uninstalled.
  case appUninstalled(Text)
  /// An installed app without a manifest was used.
  case appUsed(Text, AppUse, isFirst: Bool)
  /// An app went of which it was known when it was used.
  case appUseForgotten(Text)
  /// The daemon began another day.
  case dayBegan(AppUse, isFirst: Bool)
  /// An identifier came into force; what its scope had before went out of it.
  case identifierMade(Identifier)
  /// An identifier of the past became known from a backup.
  case identifierRemembered(Identifier)
  /// A scope has no identifier any more.
  case identifierEnded(Scope, Identifier.End)
  /// The history let go of an identifier that had ended.
  case identifierForgotten(NumberedIdentifier)
  /// A device identifier may be another machine's too, and was kept.
  case deviceSuspected(Scope, Cause)
  /// What the daemon knows of the machine under it.
  case machineRecorded(MachineRecord)
  /// The account got another name, or none.
  case accountSet(Text?)
  /// A device of the account came, at the end of the list.
  case deviceListed(ListedDevice)
  /// What is told of a listed device changed.
  case deviceDescribed(ListedDevice)
  /// A device took another identifier; its place in the list stays.
  case deviceReplaced(previous: UUID, ListedDevice)
  /// A device left the list.
  case deviceUnlisted(UUID)
  /// An item was added or changed.
  case itemStored(Item, SealedSecret, ItemChange)
  /// An item is no more.
  case itemDeleted(Item)
  /// Something about the versions of an app or the system.
  case version(VersionChange)
  /// A push token came or changed.
  case tokenStored(Token, TokenChange)
  /// A push token is no more.
  case tokenDeleted(Token)
  /// The store was sealed: nothing may follow, and the next start is a first one.
  case sealed
  /// Event numbers are those of another epoch from now on: what was known of them before is no guide.
  case epochBegan(UUID)
}

/// What happened to an item that is there afterwards, as its event is named.
package enum ItemChange: String, Sendable {
  case added
  case replaced
  case updated
}

/// A change with the event that tells of it: both are written in one transaction. It goes from list to list, so it is one
/// reference.
package final class RecordedChange: Equatable, Sendable {
  /// What happened.
  package let change: Change
  /// What is told of it; nil for what is nobody's concern.
  package let event: Event?

  /// Puts both together.
  package init(_ change: Change, event: Event?) {
    self.change = change
    self.event = event
  }

  package static func == (left: RecordedChange, right: RecordedChange) -> Bool {
    left.change == right.change && left.event == right.event
  }
}

/// What an answer may need from outside: the registry itself reads no clock, no random source, no file.
package struct Surroundings: Sendable {
  /// Reads the clock.
  package let now: @Sendable () -> Timestamp
  /// Tells one session of a peer's app from another.
  package let session: @Sendable (Peer) throws(Refusal) -> UUID

  /// Puts both together.
  package init(
    now: @escaping @Sendable () -> Timestamp, session: @escaping @Sendable (Peer) throws(Refusal) -> UUID
  ) {
    self.now = now
    self.session = session
  }
}

/// What a decision may need from outside.
package struct Context {
  /// Who asks; nil where the daemon decides by itself.
  package var peer: Peer?
  /// What an answer needs.
  package let surroundings: Surroundings
  /// The clock's time.
  package let now: Timestamp
  /// Draws a fresh random version 4 UUID.
  package let random: () throws(Refusal) -> UUID
  /// The device identifier that the machine-id gives for a scope, or nil when there is no usable machine-id.
  package let machine: (Scope) throws(Refusal) -> UUID?
  /// What the administrator allows.
  package let limits: Limits
  /// The secret of an item.
  package let secret: (Item) throws(Refusal) -> SealedSecret
  /// The UUID that the secret of an item says.
  package let identifier: (SealedSecret) throws(Refusal) -> UUID
  /// Tells one token from another where the token itself has no place.
  package let fingerprint: (Text) -> Text

  /// Puts a context together.
  package init(
    peer: Peer?, in surroundings: Surroundings, limits: Limits = Limits(),
    random: @escaping () throws(Refusal) -> UUID, machine: @escaping (Scope) throws(Refusal) -> UUID?,
    fingerprint: @escaping (Text) -> Text,
    secret: @escaping (Item) throws(Refusal) -> SealedSecret = { (_) throws(Refusal) in throw noSecrets },
    identifier: @escaping (SealedSecret) throws(Refusal) -> UUID = { (_) throws(Refusal) in throw noSecrets }
  ) {
    self.peer = peer
    self.surroundings = surroundings
    now = surroundings.now()
    self.limits = limits
    self.random = random
    self.machine = machine
    self.secret = secret
    self.identifier = identifier
    self.fingerprint = fingerprint
  }

  /// Where nothing can open a secret.
  package static var noSecrets: Refusal { .unavailable("secrets cannot be opened here") }
}

/// What comes of a command: the changes it takes, and the answer once they are on disk.
package struct Decision: Equatable, Sendable {
  /// In order; empty when nothing has to change.
  package var changes: [Change]
  /// To be sent after the changes are durable.
  package var reply: Reply

  /// Puts a decision together.
  package init(changes: [Change] = [], reply: Reply) {
    self.changes = changes
    self.reply = reply
  }
}
