import Glibc
import IdentityCore
import LinuxSystem

/// The key of the proofs, and the file it is kept in: 64 hexadecimal digits and a line feed, mode 0600, made at the first
/// start.
///
/// It guards against damage and against files from elsewhere, not against somebody who can read the state directory.
struct StoreKey: ~Copyable {
  static let fileName = "store.key"

  let authenticator: Authenticator
  /// Whether it is the key of this store, or one that proves nothing that is stored.
  let isKnown: Bool

  /// Reads the key. Where the file is missing or holds something else, the key is one that proves nothing.
  static func read(in folder: borrowing Folder) throws(SystemError) -> StoreKey {
    // What is too long to be a key is read like a witness: as nonsense.
    if var text = try Witness.read(fileName, in: folder) {
      let parsed = parse(text)
      text.wipe()
      if var key = parsed { return StoreKey(authenticator: try authenticator(&key), isKnown: true) }
    }
    var key = try random()
    return StoreKey(authenticator: try authenticator(&key), isKnown: false)
  }

  /// Makes a key for a new store and stores it.
  ///
  /// A key in its place is replaced: nothing is proven by it any more, and it may be a sealed store's, from which the
  /// identifiers of that one could be computed.
  /// - Parameter aside: the name for something in its place that is no key; nil to replace that as well.
  static func create(in folder: borrowing Folder, aside: String?) throws(SystemError) -> StoreKey {
    if let aside, try folder.status(of: fileName) != nil { try folder.rename(fileName, to: aside) }
    var key = try random()
    var text = hexadecimalLine(key)
    defer { text.wipe() }
    try folder.replace(fileName, with: text, mode: 0o600)
    return StoreKey(authenticator: try authenticator(&key), isKnown: true)
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

  private static func parse(_ text: [UInt8]) -> [UInt8]? {
    guard text.count == 2 * Authenticator.length + 1, text.last == UInt8(ascii: "\n") else { return nil }
    var key: [UInt8] = []
    key.reserveCapacity(Authenticator.length)
    for index in stride(from: 0, to: 2 * Authenticator.length, by: 2) {
      guard let high = hexadecimalDigit(text[index]), let low = hexadecimalDigit(text[index + 1]) else { return nil }
      key.append(high << 4 | low)
    }
    return key
  }
}

/// Two digits a byte, lower case, and a line feed: for keys, of which no string may be left in memory.
func hexadecimalLine(_ bytes: [UInt8]) -> [UInt8] {
  let digits = Array("0123456789abcdef".utf8)
  var line: [UInt8] = []
  line.reserveCapacity(2 * bytes.count + 1)
  for byte in bytes { line += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
  line.append(UInt8(ascii: "\n"))
  return line
}
