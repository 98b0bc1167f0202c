import CSodium
import IdentityCore
import LinuxSystem

/// Where a master key comes from.
package enum KeySource: String, Sendable {
  /// The service manager's credential `identityd.key`.
  case credential
  /// The file in the state directory.
  case file
}

/// Keys that the service manager handed over (systemd.exec(5), "Credentials"), as they came.
package struct KeyCredentials: Sendable {
  /// `identityd.key`.
  package var current: [UInt8]?
  /// `identityd.key.previous`, which `current` is to take the place of.
  package var previous: [UInt8]?

  /// Takes what was handed over.
  package init(current: [UInt8]? = nil, previous: [UInt8]? = nil) {
    self.current = current
    self.previous = previous
  }
}

/// A key that wraps the data key, and does nothing else.
final class MasterKey: Sendable {
  /// What fewer bytes than these cannot be a key.
  static let shortest = 32
  static let credentialName = "the credential identityd.key"
  static let fileName = "master.key"
  /// The file's successor, until the data key is wrapped in it.
  static let nextFileName = "master.key.next"

  let source: KeySource
  /// The file it is in, or the name of the credential.
  let name: String
  /// Tells which key wrapped something, and nothing of the key.
  let id: Text
  private let key: SealingKey

  /// Makes a key of at least ``shortest`` bytes and wipes the array they came in; nil for fewer.
  ///
  /// Any form will do, as digits or raw: the key is the BLAKE2b of all of it.
  init?(consuming content: inout [UInt8], source: KeySource, name: String) {
    guard content.count >= Self.shortest, sodium_init() >= 0 else { return nil }
    var key = keyedHash(content, key: Array("identityd master key".utf8))
    // libsodium leaves the last of what it hashed on the stack.
    sodium_stackzero(4_096)
    unsafe content.withUnsafeMutableBytes { buffer in
      if let start = buffer.baseAddress { unsafe sodium_memzero(start, buffer.count) }
    }
    id = Text(trusted: hexadecimal(keyedHash(key, key: Array("identityd key ID".utf8)).prefix(8)))
    sodium_stackzero(4_096)
    guard let sealing = SealingKey(consuming: &key) else { return nil }
    self.key = sealing
    self.source = source
    self.name = name
  }

  /// Wraps a data key.
  func wrap(_ dataKey: SealingKey, of store: UUID, created: Timestamp) -> WrappedKey {
    let sealed = unsafe dataKey.withBytes {
      unsafe key.seal($0, count: SealingKey.length, with: WrappedKey.associated(store))
    }
    return WrappedKey(master: id, source: source, created: created, sealed: sealed)
  }

  /// The data key that it wrapped; nil where it was another one.
  func unwrap(_ wrapped: WrappedKey, of store: UUID) -> DataKey? {
    guard wrapped.sealed.count == SealingKey.length + SealingKey.overhead else { return nil }
    var bytes = [UInt8](repeating: 0, count: SealingKey.length)
    guard unsafe key.open(wrapped.sealed[...], with: WrappedKey.associated(store), into: &bytes) != nil else {
      return nil
    }
    return DataKey(consuming: &bytes)
  }
}

/// The data key as it is stored.
struct WrappedKey: Equatable, Sendable {
  /// The ID of the master key that wrapped it.
  let master: Text
  /// Where that came from.
  let source: KeySource
  /// When it was wrapped.
  let created: Timestamp
  let sealed: [UInt8]

  /// It opens in its own store alone.
  fileprivate static func associated(_ store: UUID) -> [UInt8] { Array("identityd data key \(store)".utf8) }
}

/// The key that seals what is said of items, and their secrets.
final class DataKey: Sendable {
  let sealing: SealingKey

  /// Takes the key over and wipes the array it came in.
  init?(consuming bytes: inout [UInt8]) {
    guard let sealing = SealingKey(consuming: &bytes) else { return nil }
    self.sealing = sealing
  }

  /// Draws a key at random.
  static func random() throws(SystemError) -> DataKey? {
    var bytes = [UInt8](repeating: 0, count: SealingKey.length)
    try Entropy.fill(&bytes)
    return DataKey(consuming: &bytes)
  }

  /// Wraps it in a master key.
  func wrapped(in master: MasterKey, of store: UUID, created: Timestamp) -> WrappedKey {
    master.wrap(sealing, of: store, created: created)
  }
}
