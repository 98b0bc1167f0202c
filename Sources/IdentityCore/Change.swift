/// A mutation of the registry, decided by a rule and committed by the writer.
///
/// A change is stored, applied to the committed registry, and published as an event. The enumeration is indirect
/// because a change is passed on a dozen times: each copy retains one object instead of every text.
package indirect enum Change: Equatable, Sendable {
  /// An app was installed: its manifest appeared, or the app was used for the first time.
  case appInstalled(Text, App)
  /// The manifest of an installed app changed.
  case appUpdated(Text, App)
  /// An app was uninstalled.
  case appUninstalled(Text)
  /// An app took the place of another one, with all that the other one had.
  case appReplaced(Replacement)
  /// An installed app without a manifest was used.
  case appUsed(Text, AppUse)
  /// The record of an app's last use was removed, because the app is uninstalled.
  case appUseForgotten(Text)
  /// The daemon began another day.
  case dayBegan(AppUse)
  /// An identifier came into force and ended the previous identifier of its scope.
  case identifierMade(Identifier)
  /// A past identifier was added to the history from a backup.
  case identifierRemembered(Identifier)
  /// The identifier of a scope ended without a successor.
  case identifierEnded(Scope, Identifier.End)
  /// An ended identifier was removed from the history.
  case identifierForgotten(NumberedIdentifier)
  /// A device identifier that another machine may have too was kept. The fleet's service may know whether this machine
  /// is the copy.
  case deviceSuspected(Scope, Cause, CopyVerdict? = nil)
  /// An admin acknowledged that a suspected device identifier is this machine's.
  case deviceAcknowledged(Scope, Cause)
  /// The machine goes on from a snapshot, so another machine may be on with the same sessions until now.
  case deviceResumed(Scope)
  /// The record of the machine changed.
  case machineRecorded(MachineRecord)
  /// The daemon began to run on another machine, and remembers the previous one.
  case machineLeft(FormerMachine)
  /// An admin acknowledged that the daemon does not run on this former machine any more.
  case machineAcknowledged(FormerMachine)
  /// The record of a former machine was removed, by its number.
  case machineForgotten(Int64)
  /// A renewal left a device identifier to the machine that this one may be a copy of.
  case deviceLeft(LeftDevice)
  /// The record of a device identifier that was left was removed, by its number.
  case leftDeviceForgotten(Int64)
  /// The name of the account was set or removed.
  case accountSet(Text?)
  /// A device was added at the end of the account's device list.
  case deviceListed(ListedDevice)
  /// The name of a listed device, or the time it was last seen, changed.
  case deviceDescribed(ListedDevice)
  /// A listed device got another identifier and kept its place in the list.
  case deviceReplaced(previous: UUID, ListedDevice)
  /// A device was removed from the list.
  case deviceUnlisted(UUID)
  /// The fleet got a counter, a generation or a run.
  case fleetAdvanced(FleetStanding)
  /// The record or the tombstone of a device was stored.
  case fleetRecorded(FleetRecord)
  /// The record or the tombstone of a device was removed, because it belongs to another account.
  case fleetForgotten(UUID)
  /// A client read a backup to its end that was made at this time.
  case backupTaken(Timestamp)
  /// An item was added or changed.
  case itemStored(Item, SealedSecret, ItemChange)
  /// An item was deleted.
  case itemDeleted(Item)
  /// The versions of an app or of the system changed.
  case version(VersionChange)
  /// A push token was added or changed.
  case tokenStored(Token, TokenChange)
  /// A push token was deleted.
  case tokenDeleted(Token)
  /// A proof key was added, or another time was set at which it leaves the key set.
  case proofKeyStored(StoredProofKey)
  /// A proof key was removed.
  case proofKeyForgotten(StoredProofKey, ProofKeyEnd)
  /// The proof key cannot sign until the machine is back on which it was made.
  case proofKeyLocked(StoredProofKey)
  /// The store was sealed. No further change may follow, and the next start is a first start.
  case sealed
  /// A new epoch of event numbers began. A position in the previous epoch means nothing in the new one.
  case epochBegan(UUID)
}

/// The kind of change of an item that exists afterwards. The raw value is the name of the event.
package enum ItemChange: String, Sendable {
  case added
  case replaced
  case updated
}

/// A change and its event, which are committed in one transaction.
///
/// A class, so that moving it from list to list copies one reference.
package final class RecordedChange: Equatable, Sendable {
  /// The change.
  package let change: Change
  /// The event; nil if no event is published for the change.
  package let event: Event?
  /// The party that caused the change.
  package let originator: Originator

  package init(_ change: Change, event: Event?, by originator: Originator = .daemon) {
    self.change = change
    self.event = event
    self.originator = originator
  }

  package static func == (left: RecordedChange, right: RecordedChange) -> Bool {
    left.change == right.change && left.event == right.event && left.originator == right.originator
  }
}

/// The clock and the session lookup that an answer may need. The registry reads no clock, random source or file itself.
///
/// A class, so that a context, which is copied for each decision, retains one object.
package final class Surroundings: Sendable {
  /// Reads the clock.
  package let now: @Sendable () -> Timestamp
  /// Returns a UUID that identifies the session of a peer's app.
  package let session: @Sendable (Peer) throws(Refusal) -> UUID
  /// The settings about proofs.
  package let proofs: ProofSettings

  package init(
    now: @escaping @Sendable () -> Timestamp, session: @escaping @Sendable (Peer) throws(Refusal) -> UUID,
    proofs: ProofSettings = ProofSettings()
  ) {
    self.now = now
    self.session = session
    self.proofs = proofs
  }
}

/// The inputs of a decision, besides the registry and the command.
package struct Context {
  /// The peer that sent the request; nil if the daemon acts on its own.
  package var peer: Peer?
  /// The clock and the session lookup.
  package let surroundings: Surroundings
  /// The current time, read once for the whole decision.
  package let now: Timestamp
  /// Draws a random version 4 UUID.
  package let random: () throws(Refusal) -> UUID
  /// Derives the device identifier of a scope from the machine-id; nil without a usable machine-id.
  package let machine: (Scope) throws(Refusal) -> UUID?
  /// The limits that the administrator has set.
  package let limits: Limits
  /// Returns the secret of an item.
  package let secret: (Item) throws(Refusal) -> SealedSecret
  /// Returns the UUID in the text of a secret.
  package let identifier: (SealedSecret) throws(Refusal) -> UUID
  /// Returns the SHA-256 of a message that is given in Base64. The order of two results is that of their bytes.
  package let digest: (Text) -> Text
  /// Returns the fingerprint of a push token, which stands for the token in events.
  package let fingerprint: (Text) -> Text

  package init(
    peer: Peer?, in surroundings: Surroundings, limits: Limits = Limits(),
    random: @escaping () throws(Refusal) -> UUID, machine: @escaping (Scope) throws(Refusal) -> UUID?,
    digest: @escaping (Text) -> Text, fingerprint: @escaping (Text) -> Text,
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
    self.digest = digest
    self.fingerprint = fingerprint
  }

  /// The refusal of a context that cannot open secrets.
  package static var noSecrets: Refusal { .unavailable("secrets cannot be opened here") }
}

/// The outcome of a command: the changes to commit, and the reply to send afterwards.
package struct Decision: Sendable {
  /// The changes in order; empty if nothing has to change.
  package var changes: [Change]
  /// The reply, to be sent after the changes are durable.
  package var reply: Reply
  /// The rest of the request, which goes on after these changes, in the same transaction or in a later one; nil if
  /// nothing is left to do. Only the reply of the last decision is sent.
  var next: (any SearchRule)?

  /// The command for the rest of the request; see ``next``.
  package var nextCommand: RegistryCommand? { next.map { RegistryCommand($0) } }

  package init(changes: [Change] = [], reply: Reply) {
    self.changes = changes
    self.reply = reply
  }
}
