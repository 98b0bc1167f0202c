import CSodium
package import LinuxSystem

/// The passphrase of a backup, which is needed again to open it.
package struct Passphrase: ~Copyable {
  /// The reason why there is no passphrase, or no key derived from it.
  package enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    case empty
    case tooLong
    /// The two passphrases entered at the terminal differ.
    case different
    case unreadable(String)
    /// The memory does not suffice to derive the key.
    case noMemory

    /// The cause, as a sentence without a full stop.
    package var description: String {
      switch self {
      case .empty: "the passphrase is empty"
      case .tooLong: "the passphrase is longer than \(Passphrase.longest) bytes"
      case .different: "the two passphrases differ"
      case .unreadable(let why): "the passphrase cannot be read: \(why)"
      case .noMemory: "not enough memory to derive the key from the passphrase"
      }
    }
  }

  /// The maximum length in bytes: more than a person types, and a bound on reading a large file by mistake.
  package static let longest = 1_024

  private let bytes: GuardedBytes

  /// Reads a passphrase up to the end of the line or of the file. Bytes after the line feed stay unread, and a carriage
  /// return before the line feed is part of the line end.
  package init(from file: borrowing InputFile) throws(Failure) {
    bytes = try Self.read { take in
      var byte: [UInt8] = [0]
      defer { byte.wipe() }
      // Reads single bytes, so that the data after the passphrase stay in the file.
      var holdsReturn = false
      for _ in 0...(Self.longest + 1) {
        let isEnd = try file.fill(&byte) == 0
        guard !isEnd, byte[0] != UInt8(ascii: "\n") else {
          if holdsReturn, isEnd { take(UInt8(ascii: "\r")) }
          return
        }
        if holdsReturn { take(UInt8(ascii: "\r")) }
        holdsReturn = byte[0] == UInt8(ascii: "\r")
        if !holdsReturn { take(byte[0]) }
      }
    }
  }

  /// Asks for a passphrase at the terminal, without echo.
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

  /// Returns whether two passphrases are equal. The comparison takes constant time if the lengths are equal.
  package func matches(_ other: borrowing Passphrase) -> Bool {
    guard bytes.count == other.bytes.count else { return false }
    let count = bytes.count
    return unsafe bytes.withBytes { own in
      unsafe other.bytes.withBytes { unsafe sodium_memcmp(own, $0, count) == 0 }
    }
  }

  /// Derives the key of a backup, with as much time and memory as the header says.
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
    // The header's parameters are within libsodium's bounds, so lack of memory is the only possible failure.
    guard isMade else { throw .noMemory }
    return BackupKey(bytes: key)
  }
}

/// The key of a backup.
package struct BackupKey: ~Copyable {
  /// The length in bytes, as the daemon's cipher (XChaCha20-Poly1305) requires.
  package static let length = 32

  let bytes: GuardedBytes

  init(bytes: consuming GuardedBytes) { self.bytes = bytes }

  /// Calls `body` with the bytes, which are valid only during the call.
  package func withBytes<Outcome>(_ body: (borrowing Span<UInt8>) -> Outcome) -> Outcome {
    unsafe bytes.withBytes { unsafe body(Span(_unsafeStart: $0, count: Self.length)) }
  }
}
