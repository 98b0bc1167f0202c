import CSodium
import Glibc
import IdentityCore
import LinuxSystem

/// The key of the proofs and its file, which has mode 0600 and is created at the first start.
///
/// The file is one line of text, `identityd-key 1 <key> <checksum>`, with key and checksum in hexadecimal digits. The
/// key protects against damage and against foreign files, but not against a user who can read the state directory.
struct StoreKey: ~Copyable {
  static let fileName = "store.key"

  let authenticator: Authenticator
  /// Whether this is the key of the store. An unknown key verifies nothing that is stored.
  let isKnown: Bool

  /// Reads the key. If the file is missing or contains something else, returns a key that verifies nothing.
  static func read(in folder: borrowing Folder) throws(SystemError) -> StoreKey {
    // A file that is too long is read like a witness: as one invalid byte.
    if var text = try Witness.read(fileName, in: folder) {
      let parsed = parse(text)
      text.wipe()
      if var key = parsed { return StoreKey(authenticator: try authenticator(&key), isKnown: true) }
    }
    return try unknown()
  }

  /// Returns a random key, which verifies nothing that is stored.
  static func unknown() throws(SystemError) -> StoreKey {
    var key = try random()
    return StoreKey(authenticator: try authenticator(&key), isKnown: false)
  }

  /// Creates a key for a new store and writes it to its file, which is durable only after a sync of the folder.
  ///
  /// An existing key is replaced: nothing is verified by it any more, and it may belong to a sealed store, whose
  /// identifiers could be computed from it.
  ///
  /// - Parameter aside: the new name for an existing file that is no key; nil to replace that file as well.
  static func create(in folder: borrowing Folder, aside: String?) throws(SystemError) -> StoreKey {
    if let aside, try folder.status(of: fileName) != nil { try folder.rename(fileName, to: aside) }
    var key = try random()
    let authenticator = try authenticator(&key)
    try write(authenticator, in: folder, isDurable: false)
    return StoreKey(authenticator: authenticator, isKnown: true)
  }

  /// Writes a key to its file, replacing the content.
  ///
  /// - Parameter isDurable: false if the file is durable only after a sync of the folder.
  static func write(_ authenticator: borrowing Authenticator, in folder: borrowing Folder, isDurable: Bool = true)
    throws(SystemError)
  {
    var key = authenticator.keyBytes
    defer { key.wipe() }
    var text = line(key)
    defer { text.wipe() }
    try folder.replace(fileName, with: text, mode: 0o600, isDurable: isDurable)
  }

  private static let head = Array("identityd-key 1 ".utf8)

  private static func line(_ key: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(Witness.longestLength)
    text += head
    text.append(hexadecimal: key)
    text.append(UInt8(ascii: " "))
    text.append(hexadecimal: checksum(key))
    text.append(UInt8(ascii: "\n"))
    return text
  }

  private static func checksum(_ key: [UInt8]) -> [UInt8] {
    let whole = keyedHash(key, key: Array("identityd key checksum".utf8))
    // libsodium leaves the last part of its input on the stack.
    sodium_stackzero(4_096)
    return Array(whole.prefix(16))
  }

  /// Derives a separate key for computed identifiers; nil if this is not the key of the store.
  func derivation() throws(SystemError) -> IdentifierDerivation? {
    guard isKnown else { return nil }
    guard let derivation = IdentifierDerivation(authenticator) else { throw Self.noMemory }
    return derivation
  }

  private static let noMemory = SystemError(call: "lock memory for the key of the store", code: ENOMEM)

  private static func authenticator(_ key: inout [UInt8]) throws(SystemError) -> Authenticator {
    guard let authenticator = Authenticator(key: &key) else { throw noMemory }
    return authenticator
  }

  private static func random() throws(SystemError) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: Authenticator.length)
    try Entropy.fill(&key)
    return key
  }

  /// Parses the content of the file.
  ///
  /// - Returns: nil if it is no key, or if the checksum is wrong.
  private static func parse(_ text: [UInt8]) -> [UInt8]? {
    let digits = text.dropFirst(head.count).prefix(2 * Authenticator.length)
    guard text.starts(with: head), var key = bytes(digits) else { return nil }
    var whole = line(key)
    defer { whole.wipe() }
    guard whole == text else {
      key.wipe()
      return nil
    }
    return key
  }

  private static func bytes(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard digits.count == 2 * Authenticator.length else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Authenticator.length)
    for index in stride(from: digits.startIndex, to: digits.endIndex, by: 2) {
      guard let high = hexadecimalDigit(digits[index]), let low = hexadecimalDigit(digits[index + 1]) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return bytes
  }
}

/// Returns two lower-case hexadecimal digits for each byte, and a line feed.
///
/// For keys: a `String` of a key would stay in memory.
func hexadecimalLine(_ bytes: [UInt8]) -> [UInt8] {
  var line: [UInt8] = []
  line.reserveCapacity(2 * bytes.count + 1)
  line.append(hexadecimal: bytes)
  line.append(UInt8(ascii: "\n"))
  return line
}
