import CSodium
import Glibc
import IdentityCore
import LinuxSystem

/// The key of the proofs, and the file it is kept in, mode 0600, made at the first start. One line of text:
/// `identityd-key 1 <key> <checksum>`, both in hexadecimal digits.
///
/// It guards against damage and against files from elsewhere, not against somebody who can read the state directory.
struct StoreKey: ~Copyable {
  static let fileName = "store.key"

  let authenticator: Authenticator
  /// Whether it is the key of this store, or one that proves nothing that is stored.
  let isKnown: Bool
  /// Whether the file has the key's checksum, which those of earlier versions lack.
  let hasChecksum: Bool

  /// Reads the key. Where the file is missing or holds something else, the key is one that proves nothing.
  static func read(in folder: borrowing Folder) throws(SystemError) -> StoreKey {
    // What is too long to be a key is read like a witness: as nonsense.
    if var text = try Witness.read(fileName, in: folder) {
      let parsed = parse(text)
      text.wipe()
      if var parsed {
        return StoreKey(
          authenticator: try authenticator(&parsed.key), isKnown: true, hasChecksum: parsed.hasChecksum)
      }
    }
    return try unknown()
  }

  /// A key that proves nothing.
  static func unknown() throws(SystemError) -> StoreKey {
    var key = try random()
    return StoreKey(authenticator: try authenticator(&key), isKnown: false, hasChecksum: false)
  }

  /// Makes a key for a new store and stores it.
  ///
  /// A key in its place is replaced: nothing is proven by it any more, and it may be a sealed store's, from which the
  /// identifiers of that one could be computed.
  /// - Parameter aside: the name for something in its place that is no key; nil to replace that as well.
  static func create(in folder: borrowing Folder, aside: String?) throws(SystemError) -> StoreKey {
    if let aside, try folder.status(of: fileName) != nil { try folder.rename(fileName, to: aside) }
    var key = try random()
    let authenticator = try authenticator(&key)
    try write(authenticator, in: folder)
    return StoreKey(authenticator: authenticator, isKnown: true, hasChecksum: true)
  }

  /// Stores a key, in the place of what is there.
  static func write(_ authenticator: borrowing Authenticator, in folder: borrowing Folder) throws(SystemError) {
    var key = authenticator.keyBytes
    defer { key.wipe() }
    var text = line(key)
    defer { text.wipe() }
    try folder.replace(fileName, with: text, mode: 0o600)
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
    // libsodium leaves the last of what it hashed on the stack.
    sodium_stackzero(4_096)
    return Array(whole.prefix(16))
  }

  /// Makes a key of its own for computed identifiers; nil where this is not the key of the store.
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

  /// - Returns: nil for what is no key, or not the one that its checksum is of.
  private static func parse(_ text: [UInt8]) -> (key: [UInt8], hasChecksum: Bool)? {
    let digits = 2 * Authenticator.length
    // As versions up to 0.1 wrote it: the digits and a line feed.
    if text.count == digits + 1 {
      guard text.last == UInt8(ascii: "\n"), let key = bytes(text[..<digits]) else { return nil }
      return (key, false)
    }
    guard text.starts(with: head), var key = bytes(text.dropFirst(head.count).prefix(digits)) else { return nil }
    var whole = line(key)
    defer { whole.wipe() }
    guard whole == text else {
      key.wipe()
      return nil
    }
    return (key, true)
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

/// Two digits a byte, lower case, and a line feed: for keys, of which no string may be left in memory.
func hexadecimalLine(_ bytes: [UInt8]) -> [UInt8] {
  var line: [UInt8] = []
  line.reserveCapacity(2 * bytes.count + 1)
  line.append(hexadecimal: bytes)
  line.append(UInt8(ascii: "\n"))
  return line
}
