/// The versions of the outer form of a message.
package enum EnvelopeVersion: UInt8, Sendable, Comparable, CaseIterable {
  /// Every release reads this one.
  case one = 1
  /// The message commits to the key that seals it, and all that is sealed, signed or hashed has its length in front. Only
  /// for messages that the key of an epoch seals, and only while all members tell that they read this version.
  case two = 2

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// The text in front of all bytes that are signed or hashed.
  package var label: [UInt8] { Array("identity-fleet/\(rawValue)".utf8) }

  /// The number of bytes of the commitment.
  package var commitmentLength: Int { self == .one ? 0 : 32 }
}

/// The outer form of every message: what a broker can see of it.
///
/// Two bytes of magic, the version, the kind and the epoch (4 bytes, big-endian), which all versions have, the nonce (24
/// bytes), in version 2 the commitment to the key (32 bytes), the ciphertext. A message for one reader has no nonce: its box
/// has a key of its own.
package struct Envelope: Equatable, Sendable {
  /// The first two bytes of each message.
  static let magic: [UInt8] = [0x69, 0x46]
  /// The number of bytes before the nonce.
  package static let headerLength = 8
  /// The number of bytes of a nonce.
  package static let nonceLength = 24
  /// The number of bytes that the seal adds to the plaintext.
  package static let sealLength = 16
  /// The number of bytes of a message beyond its plaintext.
  package static func overhead(_ version: EnvelopeVersion) -> Int {
    headerLength + nonceLength + version.commitmentLength + sealLength
  }
  /// The number of bytes that a box adds to its content (crypto_box_seal).
  package static let boxLength = 48
  /// The greatest number of bytes of a message for one reader.
  package static let longestBoxed = 32_768
  /// The greatest number of bytes of another message: a record with its longest fields fits, and ten others beside them.
  package static let longest = overhead(.one) + Body.longest

  /// The version.
  package let version: EnvelopeVersion
  /// The kind of the message.
  package let kind: MessageKind
  /// The number of the epoch whose key seals the message; 0 for a kind outside of epochs.
  package let epoch: UInt32
  /// The random nonce; empty in a message for one reader.
  package let nonce: [UInt8]
  /// The commitment to the key; empty in version 1.
  package var commitment: [UInt8]
  /// The sealed plaintext. In a message for one reader, the associated data precedes the plaintext.
  package var ciphertext: [UInt8]

  /// Creates an envelope. The epoch of a kind outside of epochs has to be 0.
  package init(
    _ version: EnvelopeVersion = .one, kind: MessageKind, epoch: UInt32, nonce: [UInt8], commitment: [UInt8] = [],
    ciphertext: [UInt8] = []
  ) {
    self.version = version
    self.kind = kind
    self.epoch = epoch
    self.nonce = nonce
    self.commitment = commitment
    self.ciphertext = ciphertext
  }

  /// Parses a message. Each message has one form only.
  package init(parsing message: [UInt8]) throws(Rejection) {
    guard message.count >= Self.headerLength, message.count <= Self.longestBoxed else { throw .length }
    guard message.starts(with: Self.magic) else { throw .magic }
    guard let version = EnvelopeVersion(rawValue: message[2]) else { throw .version }
    guard let kind = MessageKind(rawValue: message[3]) else { throw .kind }
    // A later release may write these in another version, too.
    guard version == .one || !kind.isOutsideEpochs else { throw .version }
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
    let plaintextLength = message.count - Self.overhead(version)
    guard plaintextLength >= Body.shortest, plaintextLength.isMultiple(of: Body.blockLength) else { throw .length }
    guard (epoch == 0) == kind.isOutsideEpochs else { throw .epoch }
    let start = Self.headerLength + Self.nonceLength
    let end = start + version.commitmentLength
    self.init(
      version, kind: kind, epoch: epoch, nonce: Array(message[Self.headerLength..<start]),
      commitment: Array(message[start..<end]), ciphertext: Array(message[end...]))
  }

  /// The first eight bytes, which the seal and the signature cover.
  package var header: [UInt8] { Self.magic + [version.rawValue, kind.rawValue] + epoch.bigEndianBytes }

  /// The message.
  package var bytes: [UInt8] { header + nonce + commitment + ciphertext }

  /// Returns the bytes that the seal covers beside the plaintext: the header and the topic.
  package func associatedData(on topic: MessageTopic) -> [UInt8] {
    lengthened(header) + lengthened(Array(topic.text.utf8))
  }

  /// Returns the bytes that the key of the message and the commitment follow from, besides the seal key. They cover all
  /// that the seal takes, so no other key, nonce, header or topic leads to the same message.
  package func committedBytes(on topic: MessageTopic) -> [UInt8] {
    version.label + associatedData(on: topic) + lengthened(nonce)
  }

  /// Returns the bytes that the signature covers: in version 2 also the nonce and the commitment, so that nobody else with
  /// the key of the epoch can seal the signed plaintext anew.
  ///
  /// - Parameter plaintext: the plaintext up to the signature.
  package func signedBytes(on topic: MessageTopic, plaintext: some Collection<UInt8>) -> [UInt8] {
    let seal = version == .one ? [] : lengthened(nonce) + lengthened(commitment)
    let start = version.label + associatedData(on: topic) + seal + length(of: plaintext.count)
    var bytes: [UInt8] = []
    // A growing array would leave copies in memory, and the plaintext of an invitation contains keys.
    bytes.reserveCapacity(start.count + plaintext.count)
    bytes += start
    bytes += plaintext
    return bytes
  }

  /// Returns bytes with their number in front; in version 1 the bytes alone.
  private func lengthened(_ bytes: [UInt8]) -> [UInt8] { length(of: bytes.count) + bytes }

  private func length(of count: Int) -> [UInt8] {
    version == .one ? [] : UInt32(truncatingIfNeeded: count).bigEndianBytes
  }
}
