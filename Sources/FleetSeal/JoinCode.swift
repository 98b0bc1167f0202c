import CSodium
package import FleetWire

/// A code that a person types to join an account: fifteen random letters (75 bits) and one that checks them.
///
/// The letters are Crockford's base32, <https://www.crockford.com/base32.html>.
package struct JoinCode: Equatable, Sendable, CustomStringConvertible {
  /// The reason why a text is no code.
  package enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The text does not have sixteen letters and digits.
    case length
    /// The text has a character that no code has.
    case character
    /// The last letter does not match the others.
    case mistyped

    /// The cause and the remedy.
    package var description: String {
      switch self {
      case .length: "a code has 16 letters and digits, like 7KQ2-M4XD-9TRW-A3Z9; enter it again"
      case .character: "a code has only letters and digits, and no U; enter it again"
      case .mistyped: "the code is mistyped; compare it with the one at the other device, and enter it again"
      }
    }
  }

  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
  private static let randomLetters = 15

  /// The letters, without hyphens.
  let letters: [UInt8]

  private init(_ numbers: some Sequence<UInt8>) {
    let letters = numbers.map { Self.alphabet[Int($0)] }
    self.letters = letters + [Self.checkLetter(of: letters)]
  }

  /// Draws a code; nil if libsodium cannot be initialized.
  package static func random() -> JoinCode? {
    guard sodium_init() >= 0 else { return nil }
    var numbers = [UInt8](repeating: 0, count: randomLetters)
    defer { unsafe sodium_memzero(&numbers, numbers.count) }
    unsafe randombytes_buf(&numbers, numbers.count)
    return JoinCode(numbers.lazy.map { $0 & 31 })
  }

  /// Parses a code in either case, with hyphens or spaces anywhere. `I` and `L` are read as 1, and `O` as 0.
  package init(parsing text: String) throws(Fault) {
    var numbers: [UInt8] = []
    for byte in text.utf8 where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
      let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte
      let read =
        switch upper {
        case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
        case UInt8(ascii: "O"): UInt8(ascii: "0")
        default: upper
        }
      guard let number = Self.alphabet.firstIndex(of: read) else { throw .character }
      guard numbers.count <= Self.randomLetters else { throw .length }
      numbers.append(UInt8(number))
    }
    guard numbers.count == Self.randomLetters + 1 else { throw .length }
    self.init(numbers.prefix(Self.randomLetters))
    guard letters.last == Self.alphabet[Int(numbers[Self.randomLetters])] else { throw .mistyped }
  }

  /// The code as it is shown: four groups of four letters.
  package var description: String {
    stride(from: 0, to: letters.count, by: 4).map { String(decoding: letters[$0..<$0 + 4], as: UTF8.self) }
      .joined(separator: "-")
  }

  /// The topics and the key of an invitation.
  package struct Meeting: Sendable {
    /// The number of bytes from which topics and key are made.
    package static let length = 16 + SecretKey.length

    /// The name of the topics.
    package let rendezvous: Rendezvous
    /// The key, which belongs to epoch 0.
    package let key: EpochKey

    init(rendezvous: Rendezvous, key: SecretKey) {
      self.rendezvous = rendezvous
      self.key = EpochKey(number: 0, key: key)
    }

    /// Makes the topics from the first sixteen bytes and the key from the others, and wipes the array; nil for another
    /// number of bytes, or without memory.
    package init?(consuming bytes: inout [UInt8]) {
      defer { unsafe sodium_memzero(&bytes, bytes.count) }
      guard bytes.count == Self.length, let rendezvous = Rendezvous(bytes: bytes.prefix(16)) else { return nil }
      var key = Array(bytes.dropFirst(16))
      guard let key = SecretKey(consuming: &key) else { return nil }
      self.init(rendezvous: rendezvous, key: key)
    }

    /// Draws topics and a key, for an invitation that is handed over in a file; nil if there is not enough memory.
    package static func random() -> Meeting? {
      guard sodium_init() >= 0 else { return nil }
      var bytes = [UInt8](repeating: 0, count: length)
      unsafe randombytes_buf(&bytes, bytes.count)
      return Meeting(consuming: &bytes)
    }

    /// Returns a copy of the bytes, to be handed over. The caller wipes them.
    package func copy() -> [UInt8] {
      var secret = key.key.copy()
      defer { unsafe sodium_memzero(&secret, secret.count) }
      var bytes: [UInt8] = []
      // A growing array would leave copies in memory.
      bytes.reserveCapacity(Self.length)
      bytes += rendezvous.bytes
      bytes += secret
      return bytes
    }
  }

  /// Derives the topics and the key; nil as for ``stretched()``.
  package func meeting() -> Meeting? {
    guard var bytes = stretched() else { return nil }
    return Meeting(consuming: &bytes)
  }

  /// Derives the bytes of a ``Meeting`` with Argon2id, which takes about a second and 256 MiB. A program for a person
  /// does that, because the service has less memory. The caller wipes the bytes.
  ///
  /// - Returns: nil if there is not enough memory, or if libsodium cannot be initialized.
  package func stretched() -> [UInt8]? {
    guard sodium_init() >= 0 else { return nil }
    var secret = [UInt8](repeating: 0, count: Meeting.length)
    var password = letters.map { CChar(bitPattern: $0) }
    defer { unsafe sodium_memzero(&password, password.count) }
    // Lack of memory is the only possible failure.
    let code = unsafe crypto_pwhash(
      &secret, UInt64(secret.count), password, UInt64(password.count), Array("identity-fleet/1".utf8),
      UInt64(crypto_pwhash_argon2id_OPSLIMIT_MODERATE), Int(crypto_pwhash_argon2id_MEMLIMIT_MODERATE),
      crypto_pwhash_ALG_ARGON2ID13)
    return code == 0 ? secret : nil
  }

  /// Returns the letter that checks the others: the first five bits of their hash.
  private static func checkLetter(of letters: [UInt8]) -> UInt8 {
    var hash = [UInt8](repeating: 0, count: 16)
    // Fails only for lengths out of range. Without `sodium_init`, the hash is the same, only slower.
    _ = unsafe crypto_generichash(&hash, hash.count, letters, UInt64(letters.count), nil, 0)
    return alphabet[Int(hash[0] >> 3)]
  }
}
