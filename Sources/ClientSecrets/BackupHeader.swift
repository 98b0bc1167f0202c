import CSodium
package import LinuxSystem

/// The first line of a backup, which says how to derive the key from the passphrase.
///
/// The line is `identityd-backup 2 argon2id ops=<N> memory=<bytes> salt=<32 hex digits> store=<32 hex digits>` and a
/// line feed. The daemon's data follow. Format 1 has no mark of the store. The mark is not proven: it protects against
/// a mistake, not against a person who can write to the file.
package struct BackupHeader: Equatable, Sendable {
  /// The reason why a line is not a usable header.
  package enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line is not a header of a backup.
    case notABackup
    /// The header has a version that this program does not know.
    case later(version: String)
    /// The header asks for more passes or memory than this program ever uses.
    case tooCostly

    /// The fault, as a predicate of the file.
    package var description: String {
      switch self {
      case .notABackup: "is not a backup of identityd"
      case .later(let version):
        "was made by a later identityd in format \(version), and this one reads formats 1 and 2"
      case .tooCostly: "demands too costly a key derivation; identityd does not make such backups"
      }
    }
  }

  /// The maximum length of the header with its line feed, in bytes. A file without a line feed within it is rejected.
  package static let longestLine = 256
  static let saltLength = 16
  private static let markLength = 16
  /// The maximum number of passes, more than libsodium's sensitive level. A foreign file must not keep the machine
  /// busy for hours.
  static let mostOperations = 10
  /// The maximum memory in bytes, equal to libsodium's sensitive level. See ``mostOperations``.
  static let mostMemory = 1 << 30
  /// The lower bounds that libsodium accepts for Argon2id.
  private static let leastOperations = 1
  private static let leastMemory = 8_192

  /// The number of passes over the memory.
  let operations: Int
  /// The memory that the derivation takes, in bytes.
  let memory: Int
  /// The salt, which gives each backup another key even with the same passphrase.
  let salt: [UInt8]
  /// The mark of the store that the backup is of; nil in format 1.
  let mark: [UInt8]?

  init(operations: Int, memory: Int, salt: [UInt8], mark: [UInt8]? = nil) {
    self.operations = operations
    self.memory = memory
    self.salt = salt
    self.mark = mark
  }

  /// Creates the header of a new backup: 3 passes over 256 MiB, libsodium's moderate level, which take about a second.
  ///
  /// - Parameter store: the identifier of the store; nil for format 1, which each release reads.
  package init(of store: [UInt8]? = nil) throws(SystemError) {
    var salt = [UInt8](repeating: 0, count: Self.saltLength)
    try Entropy.fill(&salt)
    self.init(
      operations: Int(crypto_pwhash_argon2id_OPSLIMIT_MODERATE), memory: Int(crypto_pwhash_argon2id_MEMLIMIT_MODERATE),
      salt: salt, mark: store.map { Self.mark(of: $0, salt) })
  }

  /// Whether the header names its store.
  package var namesStore: Bool { mark != nil }

  /// Returns whether the backup is of the store with this identifier. False in format 1.
  package func isOf(_ store: [UInt8]) -> Bool { mark == Self.mark(of: store, salt) }

  /// Returns the hash of an identifier with the salt. So two backups do not reveal that they are of one store.
  private static func mark(of store: [UInt8], _ salt: [UInt8]) -> [UInt8] {
    var mark = [UInt8](repeating: 0, count: markLength)
    let message = Array("identityd store ".utf8) + store
    // The lengths are within libsodium's bounds, so the call cannot fail.
    _ = unsafe crypto_generichash(&mark, mark.count, message, UInt64(message.count), salt, salt.count)
    return mark
  }

  /// Reads a header, given without its line feed.
  package init(parsing line: [UInt8]) throws(Fault) {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    guard words.count > 1, words[0] == "identityd-backup" else { throw .notABackup }
    guard words[1] == "1" || words[1] == "2" else {
      throw Self.isNumber(words[1]) && words[1].utf8.count <= 9 ? .later(version: words[1]) : .notABackup
    }
    guard words.count == (words[1] == "1" ? 6 : 7), words[2] == "argon2id",
      let operations = Self.value("ops", words[3]), let memory = Self.value("memory", words[4]),
      let salt = Self.bytes("salt", words[5], count: Self.saltLength)
    else { throw .notABackup }
    let mark = words.count == 7 ? Self.bytes("store", words[6], count: Self.markLength) : nil
    self.init(operations: operations, memory: memory, salt: salt, mark: mark)
    // Only the canonical form is accepted.
    guard line == self.line.dropLast() else { throw .notABackup }
    guard operations <= Self.mostOperations, memory <= Self.mostMemory else { throw .tooCostly }
    guard operations >= Self.leastOperations, memory >= Self.leastMemory else { throw .notABackup }
  }

  /// The header with its line feed.
  package var line: [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    func text(_ bytes: [UInt8]) -> [UInt8] { bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] } }
    let version = mark == nil ? 1 : 2
    return Array("identityd-backup \(version) argon2id ops=\(operations) memory=\(memory) salt=".utf8) + text(salt)
      + (mark.map { Array(" store=".utf8) + text($0) } ?? []) + [UInt8(ascii: "\n")]
  }

  private static func isNumber(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
      && text.utf8.first != UInt8(ascii: "0")
  }

  private static func value(_ name: String, _ word: String) -> Int? {
    guard word.hasPrefix("\(name)=") else { return nil }
    let digits = word.dropFirst(name.count + 1)
    return isNumber(digits) ? Int(digits) : nil
  }

  private static func bytes(_ name: String, _ word: String, count: Int) -> [UInt8]? {
    guard word.hasPrefix("\(name)="), word.utf8.count == name.utf8.count + 1 + 2 * count else { return nil }
    let digits = Array(word.utf8.dropFirst(name.utf8.count + 1))
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { offset in
      UInt8(String(decoding: digits[offset..<(offset + 2)], as: UTF8.self), radix: 16)
    }
    return bytes.count == count ? bytes : nil
  }
}
