import ConfigurationFiles
import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import LinuxSystem

/// The account that this device belongs to, with its keys.
struct Account {
  /// The name in identityd.
  let name: Text
  /// The seal of its messages.
  private(set) var seal: MessageSeal
  /// The present epoch, and the keys of those after the first.
  private(set) var epochs: StoredEpochs
  /// The keys of this device.
  let keys: DeviceKeys
  /// The membership that the rules start with.
  private(set) var membership: Membership
  /// The identifier that this device has now, if its last record has an earlier one.
  private(set) var renewed: Membership?
  /// The stored messages.
  let roster: Roster
  /// The devices that were removed from the list while no service ran.
  let forgotten: [DeviceTag]
  /// Whether this device has not written a record yet, so that it does not know its generation for sure.
  var isNewcomer: Bool
  /// Whether the name in identityd is another one, so that this device leaves.
  private(set) var isEnding = false

  /// Reads the account's stored messages, and derives its state.
  ///
  /// - Parameter least: the generation that a device without a record of its own has at least.
  /// - Returns: nil if there is not enough memory for the keys.
  init?(
    _ name: Text, root: SecretKey, seed: SecretKey, _ epochs: StoredEpochs, _ run: Run, generation least: UInt32,
    _ opening: DaemonLink.Opening, _ listed: [DaemonLink.ListedDevice], _ link: DaemonLink
  ) throws(DaemonFault) {
    guard let account = AccountKeys(root: root), let keys = DeviceKeys(seed: seed) else { return nil }
    let seal = MessageSeal(account, epochs: epochs.keys)
    var messages: [DeviceTag: SignedMessage] = [:]
    let names = Dictionary(listed.map { ($0.device, $0.name) }) { $1 }
    var unlisted: [DeviceTag] = []
    var page = try link.records(after: nil)
    while let last = page.last {
      for one in page {
        let tag = account.tag(of: one.device)
        // A message that cannot be opened is of no use. The broker shows the device's next one.
        if let message = try? seal.open(one.bytes, on: .device(account.id, tag)) { messages[tag] = message }
        if !one.isGone, names[one.device] == nil { unlisted.append(tag) }
      }
      page = try link.records(after: last.device)
    }
    let proofKeys = try link.proofKeys()
    func description(joined: Timestamp?) -> DeviceDescription {
      // A name for people. Without one, other devices show none.
      let system = try? OSRelease()?.value(of: "PRETTY_NAME", limit: 64)
      return DeviceDescription(
        name: HostName.deviceName(names[opening.device] ?? nil), signingKey: keys.signingKey, boxKey: keys.boxKey,
        joined: joined ?? Timestamp(milliseconds: Clock.realtimeMilliseconds), home: opening.home,
        system: system.map { Text($0) }, proofKeys: proofKeys, readableVersion: EnvelopeVersion.two.rawValue)
    }
    // A record with another key is from a backup, which has no keys.
    func own(_ tag: DeviceTag) -> SignedMessage? {
      messages[tag].flatMap { $0.kind == .tombstone || $0.signer == keys.signingKey ? $0 : nil }
    }
    func membership(of device: UUID, _ generation: UInt32) -> Membership {
      let tag = account.tag(of: device)
      let own = own(tag)
      // A device without a record of its own joins with the next generation, which outranks an earlier message.
      let last = max(generation, messages[tag]?.body.generation ?? 0)
      let present = own?.body.generation ?? max(last < .max ? last + 1 : .max, least)
      return Membership(
        account: account.id, device: device, tag: tag, generation: present, run: run, pastRuns: opening.pastRuns,
        description: description(joined: own.flatMap { DeviceDescription($0.body.fields)?.joined }),
        epoch: epochs.present, learned: epochs.learned)
    }
    let present = membership(of: opening.device, opening.generation)
    // A record that this device signed under another identifier is from before a renewal.
    let former = messages.values.first { message in
      message.kind == .record && message.signer == keys.signingKey && message.body.subject != opening.device
    }
    self.name = name
    self.seal = seal
    self.epochs = epochs
    self.keys = keys
    self.membership = former.map { membership(of: $0.body.subject, $0.body.generation) } ?? present
    renewed = former == nil ? nil : present
    isNewcomer = own(present.tag) == nil
    roster = Roster(messages)
    let ownTags = Set([present.tag, self.membership.tag])
    forgotten = unlisted.filter { !ownTags.contains($0) }
  }

  /// The membership under the identifier that this device has now.
  var present: Membership { renewed ?? membership }

  /// Returns the content of this device's record with another name.
  func described(name: Text) -> DeviceDescription {
    var description = present.description
    description.name = name
    return description
  }

  /// Returns the content of this device's record with other proof keys.
  func described(proofKeys: PublishedKeys?) -> DeviceDescription {
    var description = present.description
    description.proofKeys = proofKeys
    return description
  }

  /// Returns whether this device leaves now, because somebody has taken it out of the account in identityd: once.
  ///
  /// - Parameter name: the name of the account in identityd; nil for no account.
  mutating func ends(in name: Text?) -> Bool {
    guard !isEnding else { return false }
    isEnding = name != self.name
    return isEnding
  }

  /// Takes another content of this device's record.
  mutating func describe(_ description: DeviceDescription) {
    membership.description = description
    renewed?.description = description
  }

  /// Returns whether a roster has a record of a device.
  func hasRecord(of device: UUID, in roster: Roster) -> Bool { roster[seal.account.tag(of: device)]?.kind == .record }

  // MARK: Epochs

  /// The key of the present epoch.
  var presentKey: EpochKey { key(of: epochs.present.number) ?? seal.account.firstEpoch }

  /// The epochs whose passwords a broker may have: the present one, then those before it, the latest first, and those of
  /// other rotations. The admin of the broker enters another password some time after a rotation.
  var passwordEpochs: [EpochKey] {
    let present = presentKey
    let first = seal.account.firstEpoch
    // An invitation to the first epoch has its key, which is stored, too.
    let known = [first] + epochs.keys.filter { $0.number != first.number }
    let others = known.filter { $0.number != present.number }
    let former = others.filter { !epochs.learned.contains($0.number) }.sorted { $0.number > $1.number }
    return [present] + former + others.filter { epochs.learned.contains($0.number) }
  }

  /// Returns the key of an epoch after the first; nil if it is not known.
  func key(of number: UInt32) -> EpochKey? { epochs.keys.first { $0.number == number } }

  /// Returns the epochs with another present one; nil without a key.
  func entering(_ epoch: Epoch, _ key: SecretKey?) -> StoredEpochs? { key.map { epochs.entering(epoch, $0) } }

  /// Returns the epochs with the key of another one; nil without a key.
  func learning(_ number: UInt32, _ key: SecretKey?) -> StoredEpochs? { key.map { epochs.learning(number, $0) } }

  /// Returns the key that a message hands to this device; nil for any other message, or without memory.
  func key(in message: SignedMessage) -> SecretKey? { message.body.fields[.sealedBox].flatMap { keys.unboxed($0) } }

  /// Uses these epochs from now on.
  mutating func use(_ epochs: StoredEpochs) {
    self.epochs = epochs
    seal = MessageSeal(seal.account, epochs: epochs.keys)
  }

  // MARK: Topics

  /// Returns whether a topic is one of the account.
  func has(_ topic: MessageTopic) -> Bool {
    switch topic {
    case .device(let id, _), .grant(let id, _), .presence(let id, _), .who(let id), .digest(let id):
      id == membership.account
    case .invitation, .answer, .report, .tokens, .feedback: false
    }
  }
}

extension HostName {
  /// The name of a device: the one in the list, or else that of its machine.
  static func deviceName(_ listed: Text?) -> Text { listed ?? current.map { Text($0) } ?? "device" }
}
