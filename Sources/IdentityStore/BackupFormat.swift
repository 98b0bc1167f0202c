import IdentityCore

/// What a backup is made of: records, each sealed by itself with the key of the backup, the length of what is sealed in
/// four bytes before it, least significant first.
///
/// A record is a kind and the columns that the store has for it. It opens behind its own predecessor only, and the last one
/// as the last one only: none can be left out, moved, cut off, or come from another backup.
enum BackupFormat {
  /// Version 1 had no versions and no push tokens.
  static let version: Int64 = 2
  static let lengthSize = 4
  /// The longest secret, and all that may be said of its item.
  static let longestRecord = 262_144

  enum Kind: String {
    /// Format version, program version, time, salt of the marks, mark of the machine-id, mark of the hardware.
    case head
    case account
    case app
    case identifier
    case device
    case release
    case report
    case claim
    case token
    case item
    /// How many there were.
    case end
  }

  /// What a record is sealed with: its place, and the end of what is sealed before it, which no other backup has.
  static func associated(place: Int64, isLast: Bool, behind previous: ArraySlice<UInt8>) -> [UInt8] {
    Authenticator.message([
      .text("identityd backup"), .integer(place), .integer(isLast ? 1 : 0), .blob(Array(previous.suffix(tagLength))),
    ])
  }

  /// The tag of XChaCha20-Poly1305, in bytes.
  private static let tagLength = 16

  /// Reads values as ``Authenticator/message(_:behind:)`` writes them, the kind before them; nil for anything else.
  static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> (kind: Kind, values: [Value], secret: Range<Int>?)? {
    var place = 0
    var name: [UInt8]?
    var values: [Value] = []
    var secret: Range<Int>?
    while place < bytes.count {
      guard bytes.count - place >= 9 else { return nil }
      let form = unsafe bytes[place]
      var count: UInt64 = 0
      for offset in 0..<8 { count |= unsafe UInt64(bytes[place + 1 + offset]) << (8 * UInt64(offset)) }
      guard count <= UInt64(bytes.count - place - 9) else { return nil }
      let range = (place + 9)..<(place + 9 + Int(count))
      place = range.upperBound
      // A secret is not copied out of this memory.
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

  /// Stands before a secret, where other values have their own.
  static let secretForm: UInt8 = 6
}
