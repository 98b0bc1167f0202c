import CSodium
import FleetWire

/// An invitation in a file, for a newcomer that cannot meet the inviting device at a broker.
///
/// Four bytes `69 46 01` and 0 or 1, the sixteen bytes that name the topic, the key (32 bytes) unless the fourth byte
/// is 1, and the message as it would be published on that topic. With 1, the key is Argon2id of a passphrase, and the
/// name of the topic is the salt.
package struct InvitationFile: Sendable {
  private static let magic: [UInt8] = [0x69, 0x46, 1]
  /// The greatest number of bytes of a file.
  package static let longest = magic.count + 1 + JoinCode.Meeting.length + Envelope.longest

  private let rendezvous: Rendezvous
  /// The key; nil if a passphrase protects the invitation.
  private let key: SecretKey?
  /// The sealed invitation.
  package let message: [UInt8]

  /// Creates the file of an invitation that was sealed for a meeting.
  ///
  /// - Parameter isLocked: whether the key of the meeting comes from a passphrase, and so is not in the file.
  package init(_ message: [UInt8], for meeting: JoinCode.Meeting, isLocked: Bool) {
    rendezvous = meeting.rendezvous
    key = isLocked ? nil : meeting.key.key
    self.message = message
  }

  /// Parses a file; nil for other bytes. The caller wipes them.
  package init?(parsing bytes: [UInt8]) {
    let start = Self.magic.count + 1
    guard bytes.count >= start + 16, bytes.count <= Self.longest, bytes.starts(with: Self.magic),
      bytes[start - 1] <= 1, let rendezvous = Rendezvous(bytes: bytes[start..<start + 16])
    else { return nil }
    var rest = bytes[(start + 16)...]
    var key: SecretKey?
    if bytes[start - 1] == 0 {
      var secret = Array(rest.prefix(SecretKey.length))
      rest = rest.dropFirst(SecretKey.length)
      key = SecretKey(consuming: &secret)
      guard key != nil else { return nil }
    }
    self.rendezvous = rendezvous
    self.key = key
    message = Array(rest)
  }

  /// Whether a passphrase is needed.
  package var isLocked: Bool { key == nil }

  /// Returns the bytes of the file. The caller wipes them.
  package func bytes() -> [UInt8] {
    var bytes: [UInt8] = []
    // A growing array would leave copies of the key in memory.
    bytes.reserveCapacity(Self.longest)
    bytes += Self.magic + [isLocked ? 1 : 0] + rendezvous.bytes
    if var secret = key?.copy() {
      bytes += secret
      unsafe sodium_memzero(&secret, secret.count)
    }
    bytes += message
    return bytes
  }

  /// Returns the topic and the key of the message.
  ///
  /// - Parameter passphrase: the passphrase, if the file is locked. Argon2id takes about a second and 256 MiB.
  /// - Returns: nil if the file needs a passphrase and there is none, or without memory.
  package func meeting(passphrase: [UInt8]? = nil) -> JoinCode.Meeting? {
    if let key { return JoinCode.Meeting(rendezvous: rendezvous, key: key) }
    return passphrase.flatMap { JoinCode.Meeting(passphrase: $0, at: rendezvous) }
  }
}

extension JoinCode.Meeting {
  /// Draws a meeting for a file. With a passphrase, only the topic is drawn, and the key is Argon2id of the passphrase.
  ///
  /// - Returns: nil without memory, or if libsodium cannot be initialized.
  package static func random(passphrase: [UInt8]? = nil) -> Self? {
    guard sodium_init() >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: length)
    unsafe randombytes_buf(&bytes, bytes.count)
    guard let drawn = Self(consuming: &bytes) else { return nil }
    return passphrase.map { Self(passphrase: $0, at: drawn.rendezvous) } ?? drawn
  }

  /// Derives the key from a passphrase.
  fileprivate init?(passphrase: [UInt8], at rendezvous: Rendezvous) {
    guard var secret = stretched(passphrase, salt: rendezvous.bytes, length: SecretKey.length),
      let key = SecretKey(consuming: &secret)
    else { return nil }
    self.init(rendezvous: rendezvous, key: key)
  }
}
