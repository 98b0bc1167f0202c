/// A message that was opened, and whose signature is valid under the key that the message names.
///
/// Whether that key is the author's is for the rules to decide.
package struct SignedMessage: Equatable, Sendable {
  /// The kind of the message.
  package let kind: MessageKind
  /// The number of the epoch whose key sealed the message; 0 for a kind outside of epochs.
  package let epoch: UInt32
  /// The plaintext. Secrets can be taken out of its fields.
  package var body: Body
  /// The key that checks the signature.
  package let signer: PublicKey
  /// The SHA-256 of the message, 32 bytes.
  package let digest: [UInt8]
  /// The message as it is published.
  package let bytes: [UInt8]

  /// The version of the envelope.
  package var version: EnvelopeVersion {
    bytes.count > 2 ? EnvelopeVersion(rawValue: bytes[2]) ?? .one : .one
  }

  package init(
    kind: MessageKind, epoch: UInt32, body: Body, signer: PublicKey, digest: [UInt8], bytes: [UInt8]
  ) {
    self.kind = kind
    self.epoch = epoch
    self.body = body
    self.signer = signer
    self.digest = digest
    self.bytes = bytes
  }

  /// Two messages are equal if they are published as the same bytes.
  package static func == (left: Self, right: Self) -> Bool { left.digest == right.digest }
}
