import FleetWire
import IdentityCore

@testable import FleetCore

/// The push tokens that a played sender was told: exactly one for each device, app and provider.
///
/// The first valid message on a topic pins the device and its key for good.
struct TokenLedger {
  private var messages: [DeviceTag: SignedMessage] = [:]
  /// The tokens that the sender found invalid, until their devices have taken them back.
  private var invalid: [DeviceTag: [CarriedToken]] = [:]

  /// Takes the message of a device that outranks the known one, with which all its earlier tokens end.
  ///
  /// - Returns: whether the device still has a token that the sender found invalid, and has to be told again.
  mutating func take(_ message: SignedMessage, at tag: DeviceTag) throws(Rejection) -> Bool {
    guard message.kind == .tokens, let tokens = message.body.fields.tokens(.token) else { throw .fields }
    guard message.body.author == message.body.subject else { throw .author }
    if let known = messages[tag] {
      guard known.signer == message.signer, known.body.subject == message.body.subject else { throw .author }
      guard Precedence(message) > Precedence(known) else { return false }
    }
    messages[tag] = message
    let left = (invalid[tag] ?? []).filter { tokens.contains($0) }
    invalid[tag] = left.isEmpty ? nil : left
    return !left.isEmpty
  }

  /// Returns the tokens of a device that are valid as far as the sender knows.
  func tokens(at tag: DeviceTag) -> [CarriedToken] {
    (messages[tag]?.body.fields.tokens(.token) ?? []).filter { invalid[tag]?.contains($0) != true }
  }

  /// Notes that a token is invalid. Returns whether the device still has it, and has to be told.
  mutating func invalidate(_ token: CarriedToken, at tag: DeviceTag) -> Bool {
    guard messages[tag]?.body.fields.tokens(.token)?.contains(token) == true else { return false }
    if invalid[tag]?.contains(token) != true { invalid[tag, default: []].append(token) }
    return true
  }

  /// Returns the draft that tells a device its invalid tokens, and the key to seal it to; nil if it has none.
  ///
  /// - Parameter signingKey: the key of the sender.
  func feedback(at tag: DeviceTag, signingKey: PublicKey) -> (draft: Draft, boxKey: PublicKey)? {
    guard let message = messages[tag], let invalid = invalid[tag],
      let boxKey = message.body.fields[.boxKey].flatMap({ PublicKey($0) })
    else { return nil }
    var fields = Fields()
    fields[.signingKey] = signingKey.bytes
    fields.set(.invalidToken, invalid)
    // The counter is that of the message in which the device told the tokens.
    let draft = Draft(
      kind: .feedback, subject: message.body.subject, tag: tag, generation: message.body.generation,
      counter: .exactly(message.body.counter), epoch: 0, fields: fields)
    return (draft, boxKey)
  }
}
