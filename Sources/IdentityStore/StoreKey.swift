import IdentityCore
import LinuxSystem

/// The file with the key of the proofs: 64 hexadecimal digits and a line feed, mode 0600, made at the first start.
///
/// It guards against damage and against files from elsewhere, not against somebody who can read the state directory.
enum StoreKey {
  static let fileName = "store.key"

  /// Reads the key; nil where the file is missing or holds something else.
  static func read(in folder: borrowing Folder) throws(SystemError) -> Authenticator? {
    // What is too long to be a key is read like a witness: as nonsense.
    guard let text = try Witness.read(fileName, in: folder), var key = parse(text) else { return nil }
    return Authenticator(key: &key)
  }

  /// Makes a key and stores it, keeping what stood in its place under `aside`.
  static func create(in folder: borrowing Folder, aside: String) throws(SystemError) -> Authenticator? {
    if try folder.status(of: fileName) != nil { try folder.rename(fileName, to: aside) }
    var key = try random()
    try folder.replace(fileName, with: Array((hexadecimal(key) + "\n").utf8), mode: 0o600)
    return Authenticator(key: &key)
  }

  /// A key that proves nothing that is stored.
  static func foreign() throws(SystemError) -> Authenticator? {
    var key = try random()
    return Authenticator(key: &key)
  }

  private static func random() throws(SystemError) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: Authenticator.length)
    try Entropy.fill(&key)
    return key
  }

  private static func parse(_ text: [UInt8]) -> [UInt8]? {
    guard text.count == 2 * Authenticator.length + 1, text.last == UInt8(ascii: "\n") else { return nil }
    var key: [UInt8] = []
    for index in stride(from: 0, to: 2 * Authenticator.length, by: 2) {
      guard let high = hexadecimalDigit(text[index]), let low = hexadecimalDigit(text[index + 1]) else { return nil }
      key.append(high << 4 | low)
    }
    return key
  }
}
