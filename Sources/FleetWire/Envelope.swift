/// The outer form of every message: what a broker can see of it.
///
/// Two bytes of magic, the version, the kind, the epoch (4 bytes, big-endian), the nonce (24 bytes), the ciphertext. A
/// message for one reader has no nonce: its box has a key of its own.
package struct Envelope: Equatable, Sendable {
  /// The first two bytes of each message.
  static let magic: [UInt8] = [0x69, 0x46]
  /// The version of this format.
  static let version: UInt8 = 1
  /// The number of bytes before the nonce.
  package static let headerLength = 8
  /// The number of bytes of a nonce.
  package static let nonceLength = 24
  /// The number of bytes that the seal adds to the plaintext.
  package static let sealLength = 16
  /// The number of bytes of a message beyond its plaintext.
  package static let overhead = headerLength + nonceLength + sealLength
  /// The number of bytes that a box adds to its content (crypto_box_seal).
  package static let boxLength = 48
  /// The greatest number of bytes of a message for one reader.
  package static let longestBoxed = 32_768
  /// The greatest number of bytes of another message: a record with its longest fields fits, and ten others beside them.
  package static let longest = overhead + Body.longest

  /// The kind of the message.
  package let kind: MessageKind
  /// The number of the epoch whose key seals the message; 0 for a kind outside of epochs.
  package let epoch: UInt32
  /// The random nonce; empty in a message for one reader.
  package let nonce: [UInt8]
  /// The sealed plaintext. In a message for one reader, the associated data precedes the plaintext.
  package let ciphertext: [UInt8]

  /// Creates an envelope. The epoch of a kind outside of epochs has to be 0.
  package init(kind: MessageKind, epoch: UInt32, nonce: [UInt8], ciphertext: [UInt8]) {
    self.kind = kind
    self.epoch = epoch
    self.nonce = nonce
    self.ciphertext = ciphertext
  }

  /// Parses a message. Each message has one form only.
  package init(parsing message: [UInt8]) throws(Rejection) {
    guard message.count >= Self.headerLength, message.count <= Self.longestBoxed else { throw .length }
    guard message.starts(with: Self.magic) else { throw .magic }
    guard message[2] == Self.version else { throw .version }
    guard let kind = MessageKind(rawValue: message[3]) else { throw .kind }
    let epoch = UInt32(bigEndian: message[4..<8])
    guard !kind.isBoxed else {
      guard message.count > Self.headerLength + Self.boxLength + Self.headerLength + Body.shortest else {
        throw .length
      }
      guard epoch == 0 else { throw .epoch }
      self.init(kind: kind, epoch: 0, nonce: [], ciphertext: Array(message[Self.headerLength...]))
      return
    }
    guard message.count <= Self.longest else { throw .length }
    let plaintextLength = message.count - Self.overhead
    guard plaintextLength >= Body.shortest, plaintextLength.isMultiple(of: Body.blockLength) else { throw .length }
    guard (epoch == 0) == kind.isOutsideEpochs else { throw .epoch }
    self.init(kind: kind, epoch: epoch, nonce: Array(message[8..<32]), ciphertext: Array(message[32...]))
  }

  /// The first eight bytes, which the seal and the signature cover.
  package var header: [UInt8] { Self.magic + [Self.version, kind.rawValue] + epoch.bigEndianBytes }

  /// The message.
  package var bytes: [UInt8] { header + nonce + ciphertext }

  /// Returns the bytes that the seal covers beside the plaintext: the header and the topic.
  package func associatedData(on topic: MessageTopic) -> [UInt8] { header + Array(topic.text.utf8) }

  /// Returns the bytes that the signature covers.
  ///
  /// - Parameter plaintext: the plaintext up to the signature.
  package func signedBytes(on topic: MessageTopic, plaintext: some Collection<UInt8>) -> [UInt8] {
    let start = Array("identity-fleet/1".utf8) + associatedData(on: topic)
    var bytes: [UInt8] = []
    // A growing array would leave copies in memory, and the plaintext of an invitation contains keys.
    bytes.reserveCapacity(start.count + plaintext.count)
    bytes += start
    bytes += plaintext
    return bytes
  }
}
