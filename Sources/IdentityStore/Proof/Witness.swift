import Glibc
import IdentityCore
import LinuxSystem

/// A record of the store outside the database: the ID of the store and a revision that it has reached.
///
/// The record prevents an empty, deleted, truncated or older database from being taken for a first start, which would
/// hand out a second identity. The file is one line of text: `identityd-witness 1 <store> <revision> <proof>`.
struct Witness: Equatable {
  static let fileName = "witness"

  /// The ID of the store; ``UUID/zero`` if nothing but the existence of a store is known.
  let store: UUID
  /// A revision that the store has reached. The store may be at a later revision.
  let revision: Int64

  /// An upper bound for the length of a line, in bytes.
  static let longestLength = 256

  /// Returns the content of the file.
  func bytes(_ authenticator: borrowing Authenticator) -> [UInt8] {
    var row = RowBytes(behind: Self.fileName)
    row.append(store)
    row.append(revision)
    var line: [UInt8] = []
    line.reserveCapacity(Self.longestLength)
    line.append(contentsOf: "identityd-witness 1 ".utf8)
    store.append(to: &line)
    // Not interpolated: interpolation costs as much as the rest of the line, and every commit writes a witness.
    line.append(UInt8(ascii: " "))
    line.append(contentsOf: String(revision).utf8)
    line.append(UInt8(ascii: " "))
    unsafe authenticator.proof(of: row).withBytes { unsafe line.append(hexadecimal: $0) }
    line.append(UInt8(ascii: "\n"))
    return line
  }

  init(store: UUID, revision: Int64) {
    self.store = store
    self.revision = revision
  }

  /// Reads a witness file; nil if it is missing. The content need not be a witness.
  ///
  /// A file of more than `limit` bytes is returned as one invalid byte.
  static func read(
    _ name: String, in folder: borrowing Folder, limit: Int = longestLength
  ) throws(SystemError) -> [UInt8]? {
    do {
      return try folder.read(name, limit: limit)
    } catch  where error.code == EFBIG {
      return [0]
    }
  }

  /// Parses and verifies the content of a file; nil if this store did not write it.
  init?(_ content: [UInt8], _ authenticator: borrowing Authenticator) {
    let words = content.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Array($0) }
    guard words.count == 5, let store = UUID(Text(trusted: words[2])),
      let revision = Int64(String(decoding: words[3], as: UTF8.self))
    else { return nil }
    self.init(store: store, revision: revision)
    guard bytes(authenticator) == content else { return nil }
  }
}

/// Returns two lower-case hexadecimal digits for each byte.
func hexadecimal(_ bytes: some Collection<UInt8>) -> [UInt8] {
  var digits: [UInt8] = []
  digits.append(hexadecimal: bytes)
  return digits
}

extension [UInt8] {
  /// Appends two lower-case hexadecimal digits for each byte.
  mutating func append(hexadecimal bytes: some Collection<UInt8>) {
    // Swift 6.3 writes into the shared storage of empty arrays if nothing is appended to an empty array.
    if bytes.isEmpty { return }
    func digit(_ value: UInt8) -> UInt8 { value &+ (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) }
    append(addingCapacity: 2 * bytes.count) { digits in
      for byte in bytes {
        digits.append(digit(byte >> 4))
        digits.append(digit(byte & 0xf))
      }
    }
  }
}
