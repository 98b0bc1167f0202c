package import FleetWire

/// The push tokens that a sender was told: exactly one for each device, app and provider.
///
/// A sender knows no account. So the first valid message on a topic pins the device and its key for good, and a device
/// that lost its keys has to be forgotten before it is believed again.
package struct TokenLedger: Sendable {
  private let most: Int
  private var messages: [DeviceTag: SignedMessage] = [:]
  /// The tokens that the sender found invalid, until their devices have taken them back.
  private var invalid: [DeviceTag: [CarriedToken]] = [:]

  /// Creates an empty ledger.
  ///
  /// - Parameter most: the greatest number of devices.
  package init(most: Int) { self.most = most }

  /// The number of devices.
  package var devices: Int { messages.count }

  /// Takes the message of a device that outranks the known one, with which all its earlier tokens end.
  package mutating func take(_ message: SignedMessage, at tag: DeviceTag) throws(Rejection) {
    guard message.kind == .tokens, let tokens = message.body.fields.tokens(.token) else { throw .fields }
    guard message.body.author == message.body.subject else { throw .author }
    if let known = messages[tag] {
      guard known.signer == message.signer, known.body.subject == message.body.subject else { throw .author }
      guard Precedence(message) > Precedence(known) else { return }
    } else {
      guard messages.count < most else { throw .length }
    }
    messages[tag] = message
    let left = (invalid[tag] ?? []).filter { tokens.contains($0) }
    invalid[tag] = left.isEmpty ? nil : left
  }

  /// Returns the tokens of a device that are valid as far as the sender knows.
  package func tokens(at tag: DeviceTag) -> [CarriedToken] {
    (messages[tag]?.body.fields.tokens(.token) ?? []).filter { invalid[tag]?.contains($0) != true }
  }

  /// Notes that a token is invalid. Returns the draft that tells the device, and the key to seal it to; nil if the device
  /// has another token by now.
  ///
  /// - Parameters:
  ///   - sender: the name of the sender, whose bytes take the place of a device's.
  ///   - signingKey: the key of the sender.
  package mutating func invalidate(
    _ token: CarriedToken, at tag: DeviceTag, by sender: ReaderID, signingKey: PublicKey
  ) -> (draft: Draft, boxKey: PublicKey)? {
    guard let message = messages[tag], message.body.fields.tokens(.token)?.contains(token) == true,
      let boxKey = message.body.fields[.boxKey].flatMap({ PublicKey($0) })
    else { return nil }
    if invalid[tag]?.contains(token) != true { invalid[tag, default: []].append(token) }
    var fields = Fields()
    fields[.signingKey] = signingKey.bytes
    fields.set(.invalidToken, invalid[tag] ?? [])
    return (
      Draft(
        kind: .feedback, subject: message.body.subject, tag: tag, generation: message.body.generation,
        counter: .next(above: message.body.counter), epoch: 0, fields: fields), boxKey
    )
  }

  /// Forgets a device, also its key.
  package mutating func forget(_ tag: DeviceTag) {
    messages[tag] = nil
    invalid[tag] = nil
  }
}
