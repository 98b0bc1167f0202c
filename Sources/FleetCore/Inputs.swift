package import FleetWire
package import IdentityCore

/// The membership of this device in an account, as it is stored.
package struct Membership: Sendable {
  /// The account.
  package let account: AccountID
  /// This device.
  package let device: UUID
  /// The tag of this device.
  package let tag: DeviceTag
  /// The number of times that this device has joined the account.
  package let generation: UInt32
  /// The run of this process.
  package let run: Run
  /// The runs of earlier processes of this device.
  package let pastRuns: [Run]
  /// The content of this device's record.
  package var description: DeviceDescription
  /// The epoch in which this device writes.
  package let epoch: Epoch
  /// The numbers of the keys that are stored for reading only.
  package let learned: Set<UInt32>

  package init(
    account: AccountID, device: UUID, tag: DeviceTag, generation: UInt32, run: Run, pastRuns: [Run],
    description: DeviceDescription, epoch: Epoch = .first, learned: Set<UInt32> = []
  ) {
    self.account = account
    self.device = device
    self.tag = tag
    self.generation = generation
    self.run = run
    self.pastRuns = pastRuns
    self.description = description
    self.epoch = epoch
    self.learned = learned
  }
}

/// A message to be written: given its counter, signed and sealed, and for `write` also stored before it is published.
package struct Draft: Equatable, Sendable {
  /// The counter of a message.
  package enum Counter: Equatable, Sendable {
    /// The device's next counter, which is greater than this one and on disk before it is used.
    case next(above: UInt64)
    /// This counter.
    case exactly(UInt64)
  }

  /// The kind: record, tombstone, grant, presence, the question who is connected, or a summary of the records.
  package let kind: MessageKind
  /// The device that the message is about.
  package let subject: UUID
  /// The tag of that device.
  package let tag: DeviceTag
  /// The generation of that device.
  package let generation: UInt32
  /// The counter.
  package let counter: Counter
  /// The number of the epoch whose key seals the message.
  package let epoch: UInt32
  /// The fields.
  package let fields: Fields
}

/// A deadline. Each has one at most: a new one replaces it.
package enum Deadline: Hashable, Sendable {
  /// The keys are looked for again.
  case keys
  /// The pause before an attempt to connect ends.
  case connect
  /// A subscription has to be acknowledged.
  case acknowledgement
  /// The retained messages of a subscription are complete.
  case quiet
  /// A step of a reading has taken long enough.
  case longestReading
  /// The roster is read again.
  case reread
  /// A change of the own record is written.
  case change
  /// No change of the own record has come for a while.
  case changeRest
  /// The own record is due without a change.
  case heartbeat
  /// The next step of getting a message to the broker.
  case posting(DeviceTag)
  /// A tombstone that could not be stored is written again.
  case removal(DeviceTag)
  /// Another run has been silent.
  case twinSilence
  /// A device that leaves has waited for its tombstone.
  case leaving
  /// A rotation that could not be stored is tried again.
  case rotation
  /// The next step of handing a key to a device.
  case grant(DeviceTag)
  /// The next step of getting a message to a reader.
  case offer(MessageTopic)
  /// The pause after a message for a reader is over.
  case offerRest(MessageTopic)
  /// A message for a reader is due without a change.
  case offerRefresh(MessageTopic)
  /// The others are told that this device is connected.
  case presence
  /// It is this device's turn to tell what it knows.
  case digest
  /// The code of an invitation expires.
  case invitation
  /// The next step of an invitation or an answer.
  case meeting
  /// A newcomer has looked for its invitation, or waited for a confirmation, long enough.
  case joining
  /// An allowance is refilled.
  case refill(Allowances.Purpose)
}

/// The content that a broker shows on a topic.
package enum Shown: Sendable {
  /// A message that was opened.
  case message(SignedMessage)
  /// The topic was emptied.
  case nothing
  /// A message that is dropped.
  case rejected(Rejection)
}

/// Something that happened.
package enum Input: Sendable {
  /// The service knows whether this device is in an account.
  case started(Start)
  /// The connection to a broker is ready for use.
  case connected
  /// The broker refused the credentials.
  case refused
  /// The connection ended, or the attempt failed.
  case disconnected
  /// The durations that the configuration sets changed.
  case configured(Settings)
  /// The network changed, so that an attempt to connect may succeed now. It may have changed for many devices at once.
  case reconsider
  /// A person waits for the attempt to connect, as after a join, or after a change of the configuration.
  case awaited
  /// The broker acknowledged a subscription.
  case subscribed(TopicFilter)
  /// The broker sent a message on the topic of a device: one that it had retained, or a live one.
  case heard(DeviceTag, Shown, isRetained: Bool)
  /// The broker sent a message on a topic that is not that of a device: one that it had retained, or a live one. A
  /// message contains no keys any more.
  case arrived(MessageTopic, Shown, isRetained: Bool)
  /// The present time, told at the start and once a day. Only the clean-up of old tombstones depends on it.
  case dated(Timestamp)
  /// A person wants the roster to be read now.
  case sync
  /// A person wants to know which devices are connected. They tell within two seconds.
  case askWho
  /// The present content for a reader outside of the account.
  case offer(Offer)
  /// A reader is told nothing more.
  case withdraw(MessageTopic)
  /// A message for a reader was signed and sealed; nil if that was not possible.
  case boxed(MessageTopic, SignedMessage?)
  /// A person wants a new key for the account, without some devices.
  case rotate(without: Set<DeviceTag>)
  /// The key of an epoch is stored, with what the rules said about the epoch.
  case entered(Epoch)
  /// The key of an epoch, of which this is the number, could not be opened or stored.
  case notEntered(UInt32)
  /// The key of another rotation is stored, so that this device can read what it seals.
  case learned
  /// The key of another rotation, of which this is the number, could not be opened or stored.
  case notLearned(UInt32)
  /// A person invites a newcomer with a code. The invitation contains no keys any more.
  case invite(SignedMessage, Rendezvous)
  /// The keys of an invitation are stored, and the answer was signed and sealed; nil if that was not possible.
  case answered(SignedMessage?)
  /// A draft was signed, sealed and stored.
  case wrote(DeviceTag, SignedMessage)
  /// A draft could not be stored.
  case notWritten(Draft)
  /// Nothing can be sealed to the X25519 key in the record of a device.
  case notSealable(DeviceTag)
  /// The content of this device's record changed.
  case described(DeviceDescription)
  /// A device was removed from the list at this device.
  case forgotten(DeviceTag)
  /// This device has another identifier.
  case renewed(Membership)
  /// This device leaves the account.
  case leave
  /// A deadline passed.
  case woke(Deadline)
}

/// The reason why the others do not get the present record of a device that is connected.
package enum Silence: Sendable {
  /// The broker does not keep the record, as if an access rule or a quota of it forbids that.
  case unkept
  /// This device has used its allowance of new records. The next one follows within five minutes.
  case tooOften
}

/// The state in which the service starts.
package enum Start: Sendable {
  /// This device is in no account.
  case noAccount
  /// The keys cannot be read at present.
  case noKeys
  /// This device joins an account with a code, from which the topics follow. Only the expiry of the invitation is
  /// compared with the time.
  case newcomer(Rendezvous, at: Timestamp)
  /// This device is in an account. The roster contains the stored messages.
  case member(Membership, Roster)
}

/// The way in which a membership ends.
package enum Ending: Equatable, Sendable {
  /// A tombstone of this device tells so. It is proven if the author is listed and has signed it.
  case removed(RemovalReason, by: UUID, isProven: Bool)
  /// Another machine has joined the account again in the name of this device.
  case superseded
}

/// Something to be done.
package enum Action: Equatable, Sendable {
  /// Look for the keys, and start again.
  case readKeys
  /// Connect to a broker.
  case connect
  /// Give the next connection a will: a message that the broker publishes if the connection ends. Not retained.
  case will(MessageTopic, Draft)
  /// Sign, seal and publish a message that is neither stored nor retained, with quality of service 0.
  case announce(MessageTopic, Draft)
  /// Close the connection. No `disconnected` follows.
  case disconnect
  /// Subscribe to topics, also if the subscription exists: the broker then sends the retained messages again.
  case subscribe(TopicFilter)
  /// Publish a retained message.
  case publish(MessageTopic, SignedMessage)
  /// Draw a key, store it with the epoch, and report whether the epoch is entered. There is always a report.
  case makeEpoch(Epoch)
  /// There is no rotation: this device is not connected, one is in progress, or the key could not be stored.
  case notRotated
  /// Seal the key of the epoch in the draft's field to this device, write the draft with it, and report as for another
  /// draft. The message is not stored.
  case grant(Draft, to: PublicKey)
  /// Open the key that a message hands to this device, store it with the epoch, and report whether the epoch is entered.
  /// There is always a report.
  case takeEpoch(Epoch, SignedMessage)
  /// Open the key of an epoch that a message hands to this device, store it for reading only, and report whether it is
  /// stored. Of these keys, the eight with the greatest numbers are kept.
  case learnEpoch(UInt32, SignedMessage)
  /// Give a draft its counter, sign it, seal it to a reader, and report. The message is not stored.
  case box(Draft, on: MessageTopic, to: PublicKey)
  /// There are too many readers.
  case notOffered(MessageTopic)
  /// Mark a push token as invalid, if the app still has it, and offer the tokens that are left.
  case invalidate(CarriedToken)
  /// Publish an empty retained message, which removes the retained one.
  case clear(MessageTopic)
  /// Tell the person that a newcomer has answered the invitation.
  case newcomer(SignedMessage)
  /// Warn that somebody else has used the code, too.
  case anotherNewcomer(SignedMessage)
  /// Tell the person that the code of the invitation was used or has expired.
  case invitationEnded(isUsed: Bool)
  /// Forget the code of the invitation, of which nothing is left at the broker.
  case invitationOver
  /// Store the keys of this invitation, write the answer, and report. There is always a report.
  case accept(SignedMessage)
  /// This device is a member. Start again as one.
  case joined(isConfirmed: Bool)
  /// This device did not join.
  case notJoined(JoinFailure)
  /// Write a draft, and report.
  case write(Draft)
  /// Store a message about a device, and its change of the list.
  case store(DeviceTag, SignedMessage)
  /// Report a deadline after a duration.
  case wake(Deadline, after: Delay)
  /// Forget a deadline.
  case cancel(Deadline)
  /// Another machine speaks for this device, or did so before this one was set back.
  case suspected(TwinWatch.State)
  /// Warn of a record that has come with another key than the one before, although this device knows of no removal.
  case rekeyed(SignedMessage)
  /// Count a dropped message.
  case dropped(Rejection)
  /// Count a device that the roster has no room for.
  case beyondBound
  /// Forget keys and list: this device is no longer in the account.
  case ended(Ending)
}
