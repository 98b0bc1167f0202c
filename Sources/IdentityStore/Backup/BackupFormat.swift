import IdentityCore

/// The format of a backup: a sequence of records, each encrypted separately with the key of the backup.
///
/// The length of each encrypted record stands before the record in four bytes, least significant first. A record consists
/// of a kind and the columns of the corresponding row of the store. Each record is bound to its predecessor and its
/// position, and the last record to being the last. So no record can be left out, moved, cut off, or taken from
/// another backup.
enum BackupFormat {
  /// The format version, which follows the schema version. Version 1 had no versions and no push tokens, version 2 no
  /// fleet.
  static let version = Schema.version + 1

  /// Returns the schema version whose columns the records of a format version have.
  static func schema(of version: Int64) -> Int64 { max(version - 1, 2) }

  static let lengthSize = 4
  /// The maximum length of a record, in bytes: room for the longest secret, and for label and attributes of its item.
  static let longestRecord = 262_144

  enum Kind: String {
    /// Format version, program version, time, salt of the marks, hashed machine-id, hashed mark of the hardware.
    case head
    case account
    case app
    case identifier
    case device
    /// The counter and the generation of the fleet.
    case fleet
    /// A message of the fleet.
    case record
    case release
    case report
    case claim
    case token
    case item
    /// The number of records before this one.
    case end
  }

  /// Returns the associated data of a record: its position, whether it is the last, and the tag of its predecessor.
  ///
  /// The tag is different in every backup.
  static func associated(index: Int64, isLast: Bool, behind previous: ArraySlice<UInt8>) -> [UInt8] {
    Authenticator.message([
      .text("identityd backup"), .integer(index), .integer(isLast ? 1 : 0), .blob(Array(previous.suffix(tagLength))),
    ])
  }

  /// The length of the tag of XChaCha20-Poly1305, in bytes.
  private static let tagLength = 16

  /// Decodes a record as ``Authenticator/message(_:behind:)`` encodes it, with the kind in place of the table name.
  ///
  /// - Returns: nil for malformed bytes. The secret is a range of `bytes`.
  static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> (kind: Kind, values: [Value], secret: Range<Int>?)? {
    var offset = 0
    var name: [UInt8]?
    var values: [Value] = []
    var secret: Range<Int>?
    while offset < bytes.count {
      guard bytes.count - offset >= 9 else { return nil }
      let form = unsafe bytes[offset]
      var count: UInt64 = 0
      for byte in 0..<8 { count |= unsafe UInt64(bytes[offset + 1 + byte]) << (8 * UInt64(byte)) }
      guard count <= UInt64(bytes.count - offset - 9) else { return nil }
      let range = (offset + 9)..<(offset + 9 + Int(count))
      offset = range.upperBound
      // A secret must not be copied out of guarded memory.
      if form == secretForm {
        guard secret == nil else { return nil }
        secret = range
        continue
      }
      let content = unsafe Array(bytes[range])
      switch form {
      case 1 where name == nil: name = content
      case 2 where content.isEmpty: values.append(.null)
      case 3 where content.count == 8:
        values.append(.integer(Int64(bitPattern: content.reversed().reduce(0) { $0 << 8 | UInt64($1) })))
      case 4:
        guard let text = Text(validating: content) else { return nil }
        values.append(.text(text.bytes))
      case 5: values.append(.blob(content))
      default: return nil
      }
    }
    guard let kind = name.flatMap({ Kind(rawValue: String(decoding: $0, as: UTF8.self)) }) else { return nil }
    return (kind, values, secret)
  }

  /// The byte that marks a secret. Other values are marked by their ``RowBytes/Kind``.
  static let secretForm: UInt8 = 6
}
