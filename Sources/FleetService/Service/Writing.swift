import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import LinuxSystem

/// The messages that this device writes.
struct Writing {
  let link: DaemonLink
  let account: Account
  /// The version of envelopes that all devices of the account read.
  let version: EnvelopeVersion

  /// Gives a draft its counter, signs, seals and stores it.
  ///
  /// - Returns: the message; nil if it cannot be sealed.
  func write(_ draft: Draft) throws(DaemonFault) -> SignedMessage? {
    let counter =
      switch draft.counter {
      case .next(let last): try link.counter(above: last)
      case .exactly(let counter): counter
      }
    guard let message = sealed(draft, counter, on: .device(account.membership.account, draft.tag)) else { return nil }
    if let fault = try link.store([(message, nil)]).first ?? nil { throw fault }
    return message
  }

  /// Seals the key of the epoch that a draft names to a device, and a message with it, which is not stored.
  func grant(_ draft: Draft, to boxKey: PublicKey) -> Input {
    var filled = draft.fields
    let number = filled[.epoch].map { UInt32(bigEndian: $0) }
    filled[.sealedBox] = number.flatMap { account.key(of: $0) }?.boxed(to: boxKey)
    let topic = MessageTopic.grant(account.membership.account, draft.tag)
    guard filled[.sealedBox] != nil, let message = sealed(draft, fields: filled, on: topic) else {
      return boxKey.takesBoxes ? .notWritten(draft) : .notSealable(draft.tag)
    }
    return .wrote(draft.tag, message)
  }

  /// Gives a draft its counter, signs it and seals it to a reader outside of the account.
  ///
  /// - Returns: the message; nil if it cannot be sealed.
  func boxed(_ draft: Draft, on topic: MessageTopic, to boxKey: PublicKey) throws(DaemonFault) -> SignedMessage? {
    func boxed(_ counter: UInt64) -> SignedMessage? {
      account.keys.box(draft.kind, body(draft, counter), to: boxKey, on: topic)
    }
    // A message that cannot be sealed is tried again and again, and must not use up counters.
    guard boxed(0) != nil else { return nil }
    return boxed(try link.counter(above: 0))
  }

  /// Signs and seals a message that is not stored; nil if that is not possible.
  func sealed(_ draft: Draft, fields: Fields? = nil, on topic: MessageTopic) -> SignedMessage? {
    guard case .exactly(let counter) = draft.counter else { return nil }
    return sealed(draft, counter, fields: fields, on: topic)
  }

  private func sealed(
    _ draft: Draft, _ counter: UInt64, fields: Fields? = nil, on topic: MessageTopic
  ) -> SignedMessage? {
    account.seal.seal(
      draft.kind, body(draft, counter, fields: fields), epoch: draft.epoch, version, on: topic, by: account.keys)
  }

  private func body(_ draft: Draft, _ counter: UInt64, fields: Fields? = nil) -> Body {
    Body(
      subject: draft.subject, generation: draft.generation, counter: counter, run: account.present.run,
      time: Timestamp(milliseconds: Clock.realtimeMilliseconds), author: account.present.device,
      fields: fields ?? draft.fields)
  }
}
