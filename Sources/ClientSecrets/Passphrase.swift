import CSodium
package import LinuxSystem

/// What has to be said again to open a backup.
package struct Passphrase: ~Copyable {
  /// Why there is none, or no key for it.
  package enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    case empty
    case tooLong
    /// It was asked for twice, and was not the same.
    case different
    case unreadable(String)
    /// Making the key takes more memory than there is.
    case noMemory

    /// What is wrong.
    package var description: String {
      switch self {
      case .empty: "the passphrase is empty"
      case .tooLong: "the passphrase is longer than \(Passphrase.longest) bytes"
      case .different: "the passphrases are not the same"
      case .unreadable(let why): "the passphrase cannot be read: \(why)"
      case .noMemory: "there is not enough memory to make a key from the passphrase"
      }
    }
  }

  /// The longest, in bytes: nobody types as much, and a file that is meant is not read by mistake.
  package static let longest = 1_024

  private let bytes: GuardedBytes

  /// Reads up to the end of the line, or of the file. Nothing behind that is taken from it.
  package init(from file: borrowing InputFile) throws(Failure) {
    bytes = try Self.read { take in
      var byte: [UInt8] = [0]
      defer { byte.wipe() }
      // Byte by byte, so that nothing behind it is gone.
      for _ in 0...Self.longest {
        guard try file.fill(&byte) == 1, byte[0] != UInt8(ascii: "\n") else { return }
        take(byte[0])
      }
    }
  }

  /// Asks for it at the terminal.
  package init(at terminal: borrowing Terminal, _ prompt: String) throws(Failure) {
    bytes = try Self.read { take in try terminal.readHidden(prompt, take) }
  }

  private static func read(_ source: ((UInt8) -> Void) throws -> Void) throws(Failure) -> GuardedBytes {
    guard var bytes = GuardedBytes(capacity: longest) else { throw .noMemory }
    var isTooLong = false
    do {
      try source { if !bytes.append($0) { isTooLong = true } }
    } catch {
      throw .unreadable("\(error)")
    }
    guard !isTooLong else { throw .tooLong }
    guard bytes.count > 0 else { throw .empty }
    return bytes
  }

  /// Whether the other is the same.
  package func matches(_ other: borrowing Passphrase) -> Bool {
    guard bytes.count == other.bytes.count else { return false }
    let count = bytes.count
    return unsafe bytes.withBytes { own in
      unsafe other.bytes.withBytes { unsafe sodium_memcmp(own, $0, count) == 0 }
    }
  }

  /// Makes the key of a backup. This takes as much time and memory as the header says.
  package func key(for header: BackupHeader) throws(Failure) -> BackupKey {
    guard var key = GuardedBytes(capacity: BackupKey.length) else { throw .noMemory }
    let count = UInt64(bytes.count)
    let isMade = unsafe key.fill { place in
      unsafe bytes.withBytes { passphrase in
        unsafe crypto_pwhash(
          place, UInt64(BackupKey.length), passphrase, count, header.salt, UInt64(header.operations), header.memory,
          crypto_pwhash_ALG_ARGON2ID13) == 0
      }
    }
    // The bounds of the header are within libsodium's, so that nothing else can be wrong.
    guard isMade else { throw .noMemory }
    return BackupKey(bytes: key)
  }
}

/// The key of a backup.
package struct BackupKey: ~Copyable {
  /// In bytes: what the daemon encrypts with (XChaCha20-Poly1305) takes as many.
  package static let length = 32

  private let bytes: GuardedBytes

  init(bytes: consuming GuardedBytes) { self.bytes = bytes }

  /// Appends it as Base64. The array does not move in memory where it has room for that.
  package func appendBase64(to text: inout [UInt8]) {
    unsafe bytes.withBytes { unsafe Base64.append($0, count: Self.length, to: &text) }
  }
}
