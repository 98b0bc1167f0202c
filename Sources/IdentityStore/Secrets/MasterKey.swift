import CSodium
import IdentityCore
import LinuxSystem

/// The source of a master key.
package enum KeySource: String, StoredWord, Sendable {
  /// The credential `identityd.key` of the service manager.
  case credential
  /// The file in the state directory.
  case file
}

/// The content of keys that the service manager handed over (systemd.exec(5), "Credentials").
package struct KeyCredentials: Sendable {
  /// The content of `identityd.key`.
  package var current: [UInt8]?
  /// The content of `identityd.key.previous`, the key that `current` is to replace.
  package var previous: [UInt8]?

  /// Takes the content of the credentials.
  package init(current: [UInt8]? = nil, previous: [UInt8]? = nil) {
    self.current = current
    self.previous = previous
  }
}

/// A key that wraps the data key and has no other use.
final class MasterKey: Sendable {
  /// The minimum length of a key, in bytes.
  static let shortest = 32
  static let credentialName = "the credential identityd.key"
  static let fileName = "master.key"
  /// The file of the next master key, until the data key is wrapped in it.
  static let nextFileName = "master.key.next"

  let source: KeySource
  /// The name of the file, or of the credential, that contains the key.
  let name: String
  /// Identifies the key without revealing anything about it.
  let id: Text
  private let key: CipherKey

  /// Makes a key of at least ``shortest`` bytes and wipes the array.
  ///
  /// Nil for fewer bytes, or if guarded memory cannot be allocated. The bytes may have any form, such as digits or raw:
  /// the key is the BLAKE2b hash of all of them.
  init?(consuming content: inout [UInt8], source: KeySource, name: String) {
    guard content.count >= Self.shortest, sodium_init() >= 0 else { return nil }
    var key = keyedHash(content, key: Array("identityd master key".utf8))
    // libsodium leaves the last part of its input on the stack.
    sodium_stackzero(4_096)
    unsafe content.withUnsafeMutableBytes { buffer in
      if let start = buffer.baseAddress { unsafe sodium_memzero(start, buffer.count) }
    }
    id = Text(trusted: hexadecimal(keyedHash(key, key: Array("identityd key ID".utf8)).prefix(8)))
    sodium_stackzero(4_096)
    guard let cipherKey = CipherKey(consuming: &key) else { return nil }
    self.key = cipherKey
    self.source = source
    self.name = name
  }

  /// Wraps a data key.
  func wrap(_ dataKey: CipherKey, of store: UUID, created: Timestamp) -> WrappedKey {
    let ciphertext = unsafe dataKey.withBytes {
      unsafe key.encrypt($0, count: CipherKey.length, with: WrappedKey.associated(store))
    }
    return WrappedKey(master: id, source: source, created: created, ciphertext: ciphertext)
  }

  /// Unwraps a data key; nil if another master key wrapped it.
  func unwrap(_ wrapped: WrappedKey, of store: UUID) -> DataKey? {
    guard wrapped.ciphertext.count == CipherKey.length + CipherKey.overhead else { return nil }
    var bytes = [UInt8](repeating: 0, count: CipherKey.length)
    guard unsafe key.decrypt(wrapped.ciphertext[...], with: WrappedKey.associated(store), into: &bytes) != nil else {
      return nil
    }
    return DataKey(consuming: &bytes)
  }
}

/// The data key as it is stored, wrapped in a master key.
struct WrappedKey: StoredRecord, Equatable {
  static let table = RecordTable("data_key", of: Self.self, digestIndex: 5, .items)

  /// The ID of the master key that wrapped the data key.
  private(set) var master = Text("")
  /// The source of that master key.
  private(set) var source = KeySource.file
  /// The time at which the data key was wrapped.
  private(set) var created = Timestamp(milliseconds: 0)
  private(set) var ciphertext: [UInt8] = []

  init() {}

  init(master: Text, source: KeySource, created: Timestamp, ciphertext: [UInt8]) {
    self.master = master
    self.source = source
    self.created = created
    self.ciphertext = ciphertext
  }

  mutating func visit(_ fields: inout some FieldVisitor) {
    fields.only()
    fields.field("master", &master)
    fields.field("source", &source)
    fields.field("created", &created)
    fields.field("sealed", &ciphertext)
  }

  /// Returns the associated data, which binds the wrapped data key to its store.
  fileprivate static func associated(_ store: UUID) -> [UInt8] { Array("identityd data key \(store)".utf8) }
}

/// The key that encrypts the labels, attributes and secrets of items.
final class DataKey: Sendable {
  let key: CipherKey

  /// Moves the key into guarded memory and wipes the array.
  ///
  /// Nil if the key has another length, or if guarded memory cannot be allocated.
  init?(consuming bytes: inout [UInt8]) {
    guard let key = CipherKey(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// Draws a random key; nil if guarded memory cannot be allocated.
  static func random() throws(SystemError) -> DataKey? {
    var bytes = [UInt8](repeating: 0, count: CipherKey.length)
    try Entropy.fill(&bytes)
    return DataKey(consuming: &bytes)
  }

  /// Wraps the data key in a master key.
  func wrapped(in master: MasterKey, of store: UUID, created: Timestamp) -> WrappedKey {
    master.wrap(key, of: store, created: created)
  }
}
