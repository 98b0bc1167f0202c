import CSodium
package import LinuxSystem

/// The passphrase of a backup, which is needed again to open it.
///
/// Keyboards and systems differ in how they write a letter with an accent: as one code point, or as the letter and the
/// accent. The key is derived from the composed form (NFC), so that the passphrase is the same everywhere.
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

  /// The bytes as they were entered.
  private let bytes: GuardedBytes
  /// The composed form; nil if that is ``bytes``, or cannot be told.
  private let composed: GuardedBytes?

  /// Reads a passphrase up to the end of the line or of the file. Bytes after the line feed stay unread, and a carriage
  /// return before the line feed is part of the line end.
  package init(from file: borrowing InputFile) throws(Failure) {
    try self.init { take in
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
    try self.init { take in try terminal.readHidden(prompt, take) }
  }

  private init(_ source: ((UInt8) -> Void) throws -> Void) throws(Failure) {
    guard var bytes = GuardedBytes(capacity: Self.longest) else { throw .noMemory }
    var isTooLong = false
    do {
      try source { if !bytes.append($0) { isTooLong = true } }
    } catch {
      throw .unreadable("\(error)")
    }
    guard !isTooLong else { throw .tooLong }
    guard bytes.count > 0 else { throw .empty }
    composed = try Self.composed(bytes)
    self.bytes = bytes
  }

  /// Returns the composed form of a passphrase; nil if that is the passphrase itself, or cannot be told.
  private static func composed(_ bytes: borrowing GuardedBytes) throws(Failure) -> GuardedBytes? {
    let count = bytes.count
    // The composed form of ASCII is the same.
    guard unsafe bytes.withBytes({ unsafe UnsafeBufferPointer(start: $0, count: count).contains { $0 >= 0x80 } }) else {
      return nil
    }
    guard var composed = GuardedBytes(capacity: count * ComposedText.mostGrowth) else { throw .noMemory }
    let isComposed = unsafe composed.fill { target, room in
      unsafe bytes.withBytes { text in
        unsafe ComposedText.compose(
          UnsafeBufferPointer(start: text, count: count), into: UnsafeMutableBufferPointer(start: target, count: room))
      }
    }
    guard isComposed, !composed.matches(bytes) else { return nil }
    return composed
  }

  /// Returns whether two passphrases are equal. The comparison takes constant time if the lengths are equal.
  package func matches(_ other: borrowing Passphrase) -> Bool {
    withComposed { own in other.withComposed { own.matches($0) } }
  }

  private func withComposed<Outcome: ~Copyable, Reason>(
    _ body: (borrowing GuardedBytes) throws(Reason) -> Outcome
  ) throws(Reason) -> Outcome {
    switch composed {
    case .some(let composed): try body(composed)
    case nil: try body(bytes)
    }
  }

  /// Derives the key of a new backup, with as much time and memory as the header says.
  package func key(for header: BackupHeader) throws(Failure) -> BackupKey {
    try withComposed { bytes throws(Failure) in try Self.key(of: bytes, for: header) }
  }

  /// Derives the keys that may open a backup.
  package func keys(for header: BackupHeader) throws(Failure) -> BackupKeys {
    let key = try key(for: header)
    switch composed {
    case .some: return BackupKeys(key: key, former: try Self.key(of: bytes, for: header))
    case nil: return BackupKeys(key: key, former: nil)
    }
  }

  private static func key(
    of bytes: borrowing GuardedBytes, for header: BackupHeader
  ) throws(Failure) -> BackupKey {
    guard var key = GuardedBytes(capacity: BackupKey.length) else { throw .noMemory }
    let count = UInt64(bytes.count)
    let isMade = unsafe key.fill { target, length in
      let code = unsafe bytes.withBytes { passphrase in
        unsafe crypto_pwhash(
          target, UInt64(length), passphrase, count, header.salt, UInt64(header.operations), header.memory,
          crypto_pwhash_ALG_ARGON2ID13)
      }
      return code == 0 ? length : nil
    }
    // The header's parameters are within libsodium's bounds, so lack of memory is the only possible failure.
    guard isMade else { throw .noMemory }
    return BackupKey(bytes: key)
  }
}

/// The keys that a passphrase has for a backup.
package struct BackupKeys: ~Copyable {
  /// The key of the composed form, with which backups are made.
  package let key: BackupKey
  /// The key of the passphrase as it was entered; nil if it was entered in its composed form. Releases up to 0.2.0 made
  /// backups with such a key.
  package let former: BackupKey?

  /// Opens sealed bytes with the key that sealed them; nil if neither did, or if the bytes were altered. The caller wipes
  /// the result.
  package func open(_ sealed: [UInt8]) -> [UInt8]? {
    if let opened = key.open(sealed) { return opened }
    return switch former {
    case .some(let former): former.open(sealed)
    case nil: nil
    }
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
