import Glibc
import IdentityCore
import LinuxSystem

/// A second record of the store, outside the database: an empty, deleted, truncated or older database is then never
/// taken for a first start, which would hand out a second identity.
///
/// One line of text: `identityd-witness 1 <store> <revision> <proof>`.
struct Witness: Equatable {
  static let fileName = "witness"

  /// The store it belongs to; ``UUID/zero`` where only that there was one is known.
  let store: UUID
  /// The store had reached this revision; it may have gone further since.
  let revision: Int64

  /// More bytes than there are in a line of this form.
  static let longestLength = 256

  /// The content of the file.
  func bytes(_ authenticator: borrowing Authenticator) -> [UInt8] {
    var row = RowBytes(behind: Self.fileName)
    row.append(store)
    row.append(revision)
    var line: [UInt8] = []
    line.reserveCapacity(Self.longestLength)
    line.append(contentsOf: "identityd-witness 1 ".utf8)
    store.append(to: &line)
    // Not interpolated, which costs as much as all else of the line: there is one behind each commit.
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

  /// Reads the content of a witness file, which may turn out not to be a witness.
  ///
  /// - Returns: nil if the file is missing; one zero byte, which is no witness, if the file is longer than `limit` bytes.
  static func read(
    _ name: String, in folder: borrowing Folder, limit: Int = longestLength
  ) throws(SystemError) -> [UInt8]? {
    do {
      return try folder.read(name, limit: limit)
    } catch  where error.code == EFBIG {
      return [0]
    }
  }

  /// Reads the content of the file; nil where it is not what this store wrote.
  init?(_ content: [UInt8], _ authenticator: borrowing Authenticator) {
    let words = content.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Array($0) }
    guard words.count == 5, let store = UUID(Text(trusted: words[2])),
      let revision = Int64(String(decoding: words[3], as: UTF8.self))
    else { return nil }
    self.init(store: store, revision: revision)
    guard bytes(authenticator) == content else { return nil }
  }
}

/// Two digits a byte, lower case.
func hexadecimal(_ bytes: some Collection<UInt8>) -> [UInt8] {
  var digits: [UInt8] = []
  digits.append(hexadecimal: bytes)
  return digits
}

extension [UInt8] {
  /// Appends two digits a byte, lower case.
  mutating func append(hexadecimal bytes: some Collection<UInt8>) {
    // Swift 6.3 writes into the storage that all empty arrays share where nothing is appended to one.
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
